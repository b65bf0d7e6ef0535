r"""The Moreau envelope of a symbolic loss and quantities at its proximal point.

.. math::
    M_V(W; Z) = \min_H \tfrac12 (H-W)^T V^{-1} (H-W) + \ell(H, Z), \qquad
    g = V^{-1}(H^\star - W) = -\nabla_H \ell(H^\star, Z).

The minimum is global; where two minima exchange, :math:`M` has a kink and :math:`g` jumps. The
envelope theorem is the differentiation rule of :class:`Moreau`; the other two nodes refuse to be
differentiated, because what a derivative of them leaves out (the surface of the jumps) is not
small. Move such a derivative onto the Gaussian density instead (Stein), which
:class:`~theory.nodes.gaussian.GaussianExpectation` does by itself.
"""

from __future__ import annotations

import sympy as sp
from sympy.matrices.immutable import ImmutableDenseMatrix

from theory.errors import DerivationError, ModelError


class _Bound(sp.Expr):
    """An expression whose minimisation variables ``H`` are bound."""

    is_commutative = True
    is_real = True

    def _eval_subs(self, old, new):
        return self if old in self.bound_symbols else None

    @property
    def bound_symbols(self) -> list[sp.Symbol]:
        raise NotImplementedError


class Moreau(_Bound):
    """Moreau envelope.

    Parameters
    ----------
    loss : Expr
        Loss as a function of ``minimiser`` and any other symbols.
    minimiser : sequence of Symbol
        The ``n`` bound variables H over which the minimum is taken.
    field : sequence of Expr
        The ``n`` arguments W.
    response : Matrix
        The symmetric positive ``n`` x ``n`` matrix V.
    """

    def __new__(cls, loss, minimiser, field, response):
        minimiser, field = sp.Tuple(*minimiser), sp.Tuple(*field)
        response = ImmutableDenseMatrix(response)
        n = len(minimiser)
        if len(field) != n or response.shape != (n, n):
            raise ModelError(
                f"Moreau envelope over {n} variables needs {n} fields and a {n} x {n} response, "
                f"not {len(field)} and {response.shape[0]} x {response.shape[1]}"
            )
        return super().__new__(cls, sp.sympify(loss), minimiser, field, response)

    loss = property(lambda self: self.args[0])
    minimiser = property(lambda self: self.args[1])
    field = property(lambda self: self.args[2])
    response = property(lambda self: self.args[3])

    @property
    def bound_symbols(self):
        return list(self.minimiser)

    @property
    def free_symbols(self):
        inner = self.loss.free_symbols - set(self.minimiser)
        return inner | self.field.free_symbols | self.response.free_symbols

    def force(self, i: int) -> ProximalForce:
        """Component ``i`` of ``g``; minus the derivative with respect to ``W_i``."""
        return ProximalForce(self, sp.Integer(i))

    def slope(self, i: int, j: int) -> ProximalSlope:
        """Smooth part of the derivative of ``g_i`` with respect to ``W_j``."""
        return ProximalSlope(self, sp.Integer(i), sp.Integer(j))

    def _eval_derivative(self, s):
        n = len(self.minimiser)
        g = [self.force(i) for i in range(n)]
        by_field = -sp.Add(*(self.field[i].diff(s) * g[i] for i in range(n)))
        slope = self.response.diff(s)
        by_response = -sp.Add(*(slope[i, j] * g[i] * g[j] for i in range(n) for j in range(n))) / 2
        by_loss = at_proximal(self.loss.diff(s), self)
        return by_field + by_response + by_loss

    def _latex(self, printer, exp=None):
        field = ", ".join(printer._print(w) for w in self.field)
        body = rf"\mathcal{{M}}_V\left({field}; Z\right)"
        return body if exp is None else rf"{{{body}}}^{{{exp}}}"

    def _sympystr(self, printer):
        return f"M_V({', '.join(printer._print(w) for w in self.field)})"


class _Jumping(_Bound):
    """A function of the proximal point: it jumps where two minima exchange."""

    @property
    def moreau(self) -> Moreau:
        raise NotImplementedError

    def _eval_derivative(self, s):
        if s not in self.free_symbols:
            return sp.S.Zero
        raise DerivationError(
            f"{self} jumps where two proximal points exchange, so its derivative with respect to "
            f"{s} has a surface term; move the derivative onto the Gaussian density (Stein)"
        )

    @property
    def bound_symbols(self):
        return self.moreau.bound_symbols


class ProximalForce(_Jumping):
    """Component ``i`` of ``g = V^{-1}(H* - W)``, equal to minus ``dM/dW_i``."""

    def __new__(cls, moreau, index):
        return super().__new__(cls, moreau, sp.sympify(index))

    moreau = property(lambda self: self.args[0])
    index = property(lambda self: int(self.args[1]))

    @property
    def expression(self) -> sp.Expr:
        """The same quantity as a function of the proximal point (by its stationarity)."""
        return -self.moreau.loss.diff(self.moreau.minimiser[self.index])

    @property
    def free_symbols(self):
        return self.moreau.free_symbols

    def _latex(self, printer, exp=None):
        body = rf"g_{{{self.index + 1}}}"
        return body if exp is None else rf"{body}^{{{exp}}}"

    def _sympystr(self, printer):
        return f"g{self.index + 1}"


class ProximalSlope(_Jumping):
    """``dg_i/dW_j`` where it exists: the smooth part, without the jumps of ``g``.

    With L the Hessian of the loss at the proximal point it is ``-(1 + L V)^{-1} L``.
    """

    def __new__(cls, moreau, i, j):
        return super().__new__(cls, moreau, sp.sympify(i), sp.sympify(j))

    moreau = property(lambda self: self.args[0])
    indices = property(lambda self: (int(self.args[1]), int(self.args[2])))

    def given(self, hessian: sp.Matrix) -> sp.Expr:
        """The same quantity in terms of the Hessian of the loss at the proximal point."""
        matrix = sp.eye(hessian.rows) + hessian * self.moreau.response
        i, j = self.indices
        return -(matrix.adjugate() * hessian)[i, j] / matrix.det()

    @property
    def expression(self) -> sp.Expr:
        """The same quantity as a function of the proximal point."""
        return self.given(sp.hessian(self.moreau.loss, list(self.moreau.minimiser)))

    @property
    def free_symbols(self):
        return self.moreau.free_symbols

    def _latex(self, printer, exp=None):
        i, j = self.indices
        body = rf"\partial_{{W_{{{j + 1}}}}} g_{{{i + 1}}}"
        return body if exp is None else rf"\left({body}\right)^{{{exp}}}"

    def _sympystr(self, printer):
        i, j = self.indices
        return f"dg{i + 1}/dW{j + 1}"


class AtProximal(_Jumping):
    """``expression``, a function of H, at the proximal point of ``moreau``."""

    def __new__(cls, expression, moreau):
        return super().__new__(cls, sp.sympify(expression), moreau)

    expression = property(lambda self: self.args[0])
    moreau = property(lambda self: self.args[1])

    @property
    def free_symbols(self):
        inner = self.expression.free_symbols - set(self.moreau.minimiser)
        return inner | self.moreau.free_symbols

    def _latex(self, printer, exp=None):
        body = rf"\left.{printer._print(self.expression)}\right|_{{H^\star}}"
        return body if exp is None else rf"{{{body}}}^{{{exp}}}"

    def _sympystr(self, printer):
        return f"At[{printer._print(self.expression)}]"


def at_proximal(expression: sp.Expr, moreau: Moreau) -> sp.Expr:
    """``expression`` at the proximal point; itself where H does not enter it."""
    if expression.free_symbols & set(moreau.minimiser):
        return AtProximal(expression, moreau)
    return expression
