r"""Expectation over jointly Gaussian variables, with its differentiation rules.

For :math:`x \sim N(\mu, \Sigma)` (Bonnet, Price)

.. math::
    \frac{d}{ds} E[f] = E[\partial_s f] + \mu_i' E[\partial_i f]
        + \tfrac12 \Sigma_{ij}' E[\partial_i \partial_j f].

Derivatives that the integrand does not have are moved onto the density (Stein):
:math:`E[\partial_i f] = E[f s_i]` with the score :math:`s = \Sigma^{-1}(x-\mu)`. How many
derivatives it has is read off its nodes: a Moreau envelope has one, a function of the proximal
point has none, everything else has all.
"""

from __future__ import annotations

import functools

import sympy as sp
from sympy.matrices.immutable import ImmutableDenseMatrix

from theory.errors import ModelError
from theory.nodes.moreau import Moreau, ProximalForce, _Jumping


class GaussianExpectation(sp.Expr):
    """``E[integrand]`` over ``variables ~ N(mean, covariance)``.

    Parameters
    ----------
    integrand : Expr
    variables : sequence of Symbol
        Bound variables.
    mean : sequence of Expr
    covariance : Matrix
        Symmetric; a symbol may stand in any entry.
    """

    is_commutative = True
    is_real = True

    def __new__(cls, integrand, variables, mean, covariance):
        variables, mean = sp.Tuple(*variables), sp.Tuple(*mean)
        covariance = ImmutableDenseMatrix(covariance)
        n = len(variables)
        if len(mean) != n or covariance.shape != (n, n):
            raise ModelError(
                f"an expectation over {n} variables needs {n} means and a {n} x {n} covariance, "
                f"not {len(mean)} and {covariance.shape[0]} x {covariance.shape[1]}"
            )
        if covariance != covariance.T:
            raise ModelError(f"the covariance of {tuple(variables)} is not symmetric")
        return super().__new__(cls, sp.sympify(integrand), variables, mean, covariance)

    integrand = property(lambda self: self.args[0])
    variables = property(lambda self: self.args[1])
    mean = property(lambda self: self.args[2])
    covariance = property(lambda self: self.args[3])

    @property
    def bound_symbols(self):
        return list(self.variables)

    @property
    def free_symbols(self):
        inner = self.integrand.free_symbols - set(self.variables)
        return inner | self.mean.free_symbols | self.covariance.free_symbols

    @property
    def measure(self) -> tuple:
        """What distinguishes one Gaussian measure from another."""
        return self.args[1:]

    def over(self, integrand) -> sp.Expr:
        """The expectation of another integrand over the same measure."""
        if integrand.free_symbols & set(self.variables):
            return GaussianExpectation(integrand, *self.measure)
        return integrand

    @property
    def scores(self) -> tuple[sp.Expr, ...]:
        """``Sigma^{-1}(x - mu)``, the score of the density with its sign changed."""
        return _scores(*self.measure)

    def _eval_subs(self, old, new):
        return self if old in self.bound_symbols else None

    def _eval_derivative(self, s):
        if s in self.variables or s not in self.free_symbols:
            return sp.S.Zero
        f, x = self.integrand, self.variables
        terms = [self.over(f.diff(s))] if f.has(s) else []
        by_mean = [mu.diff(s) for mu in self.mean]
        by_covariance = self.covariance.diff(s)
        for i in range(len(x)):
            if by_mean[i] != 0:
                terms.append(by_mean[i] * self.over(self._first(i)))
            for j in range(i, len(x)):
                if by_covariance[i, j] != 0:
                    twice = 2 if i != j else 1
                    weight = by_covariance[i, j] * twice / 2
                    terms.append(weight * self.over(self._second(i, j)))
        return sp.Add(*terms)

    def _first(self, i):
        """An integrand with the expectation of the first derivative."""
        f, x = self.integrand, self.variables
        if _regularity(f, x[i]) == 0:
            return f * self.scores[i]
        return f.diff(x[i])

    def _second(self, i, j):
        """An integrand with the expectation of the mixed second derivative."""
        f, x = self.integrand, self.variables
        regular = {k: _regularity(f, x[k]) for k in (i, j)}
        if min(regular.values()) > 1:
            return f.diff(x[i], x[j])
        # differentiate once, in the more convenient direction; the density takes the other
        fields = set().union(*(m.field.free_symbols for m in f.atoms(Moreau)))
        for a, b in ((i, j), (j, i)):
            if regular[a] >= 1 and x[a] in fields:
                return f.diff(x[a]) * self.scores[b]
        for a, b in ((i, j), (j, i)):
            if regular[a] >= 1:
                return f.diff(x[a]) * self.scores[b]
        s = self.scores
        inverse = s[i].diff(x[j])
        return f * (s[i] * s[j] - inverse)

    def _latex(self, printer, exp=None):
        body = rf"\mathbb{{E}}\left[{printer._print(self.integrand)}\right]"
        return body if exp is None else rf"{{{body}}}^{{{exp}}}"

    def _sympystr(self, printer):
        return f"E[{printer._print(self.integrand)}]"


def _regularity(f: sp.Expr, x: sp.Symbol) -> float:
    """How many derivatives ``f`` has in ``x``: 0, 1 or infinitely many."""
    if any(x in node.free_symbols for node in f.atoms(_Jumping)):
        return 0
    if any(x in node.free_symbols for node in f.atoms(Moreau)):
        return 1
    return float("inf")


@functools.cache
def _scores(variables, mean, covariance):
    """Scores, block by block of independent variables (each block inverted by its adjugate)."""
    scores = [sp.S.Zero] * len(variables)
    for block in covariance.as_mutable().connected_components():
        sub = covariance.extract(block, block)
        determinant = sp.factor(sub.det())
        adjugate = sub.adjugate()
        for row, i in enumerate(block):
            centred = [variables[j] - mean[j] for j in block]
            top = sp.Add(*(adjugate[row, k] * centred[k] for k in range(len(block))))
            scores[i] = top / determinant
    return tuple(scores)


def expand_expectations(expression: sp.Expr) -> sp.Expr:
    """Use linearity: every expectation is split into terms, factors that are constant leave it."""

    def split(node):
        bound = set(node.variables)
        terms = []
        for term in sp.Add.make_args(sp.expand(node.integrand)):
            constant, rest = term.as_independent(*bound, as_Add=False)
            terms.append(constant * node.over(rest))
        return sp.Add(*terms)

    nodes = expression.atoms(GaussianExpectation)
    return sp.expand(expression.xreplace({node: split(node) for node in nodes}))


def tidy_expectations(expression: sp.Expr) -> sp.Expr:
    """Constant factors in front of each expectation, its integrand ordered by jumping nodes."""

    def tidy(node):
        constant, rest = sp.factor_terms(node.integrand).as_independent(
            *node.variables, as_Add=False
        )
        rest = _ordered(rest)
        if rest.could_extract_minus_sign():
            constant, rest = -constant, -rest
        number, rest = rest.as_coeff_Mul()
        return constant * number * node.over(rest)

    nodes = expression.atoms(GaussianExpectation)
    return expression.xreplace({node: tidy(node) for node in nodes})


def _ordered(integrand: sp.Expr) -> sp.Expr:
    """``sum_i c_i g_i`` with one factored coefficient for each force, where it has that form."""
    forces = sorted(integrand.atoms(ProximalForce), key=sp.default_sort_key)
    if not forces or not integrand.is_Add:
        return integrand
    masks = {g: sp.Dummy(f"g{i}") for i, g in enumerate(forces)}
    masked = sp.expand(integrand.xreplace(masks))
    coefficients = {g: masked.coeff(d) for g, d in masks.items()}
    rest = masked - sp.expand(sp.Add(*(c * masks[g] for g, c in coefficients.items())))
    if sp.expand(rest) != 0 or any(c.has(*masks.values()) for c in coefficients.values()):
        return integrand
    terms = [sp.factor_terms(c) * g for g, c in coefficients.items()]
    return sp.factor_terms(sp.Add(*terms), sign=True)
