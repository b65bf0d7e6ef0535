"""Functions whose textbook form overflows: declared as nodes, so that code never sees that form.

Each node knows its derivative in terms of other nodes and its textbook form
(``node.rewrite(sympy.exp)``), which serves arbitrary precision and the tests.
"""

from __future__ import annotations

import sympy as sp


class Stable(sp.Function):
    """Common behaviour: real-valued, rewritable to the textbook form, evaluated through it."""

    is_real = True

    def textbook(self) -> sp.Expr:
        raise NotImplementedError

    def _eval_rewrite_as_exp(self, *args, **hints):
        return self.textbook()

    def _eval_evalf(self, prec):
        from mpmath.libmp import prec_to_dps

        return self.textbook().evalf(prec_to_dps(prec))


class Logistic(Stable):
    r"""The logistic sigmoid :math:`1/(1+e^{-x})`; its argument is kept expanded."""

    nargs = 1
    is_positive = True

    @classmethod
    def eval(cls, x):
        if x.is_zero:
            return sp.Rational(1, 2)
        expanded = sp.expand(x)
        if expanded != x:
            return cls(expanded)
        return None

    def fdiff(self, argindex=1):
        return self * (1 - self)

    def textbook(self):
        return 1 / (1 + sp.exp(-self.args[0]))

    def _latex(self, printer, exp=None):
        body = rf"\operatorname{{sig}}\left({printer._print(self.args[0])}\right)"
        return body if exp is None else rf"{{{body}}}^{{{exp}}}"


class Softplus(Stable):
    r""":math:`\log(1+e^x)`, the antiderivative of :class:`Logistic`."""

    nargs = 1
    is_positive = True

    def fdiff(self, argindex=1):
        return Logistic(self.args[0])

    def textbook(self):
        return sp.log(1 + sp.exp(self.args[0]))


class LogGaussianTail(Stable):
    r""":math:`\log\tfrac12\operatorname{erfc}(x/\sqrt2)`, the log probability that a standard
    normal variable exceeds ``x``."""

    nargs = 1
    is_negative = True

    def fdiff(self, argindex=1):
        x = self.args[0]
        return -sp.exp(-(x**2) / 2 - self) / sp.sqrt(2 * sp.pi)

    def textbook(self):
        return sp.log(sp.erfc(self.args[0] / sp.sqrt(2)) / 2)


class Softmax(Stable):
    """``Softmax(j, x_0, ..., x_{n-1})``: entry ``j`` of the softmax of the logits ``x``."""

    is_positive = True

    @classmethod
    def eval(cls, j, *logits):
        if not (j.is_Integer and 0 <= j < len(logits)):
            raise ValueError(f"Softmax entry {j} of {len(logits)} logits")
        expanded = [sp.expand(x) for x in logits]
        if list(logits) != expanded:
            return cls(j, *expanded)
        return None

    def fdiff(self, argindex=1):
        j, logits = self.args[0], self.args[1:]
        k = argindex - 2
        return self * ((1 if k == j else 0) - Softmax(sp.Integer(k), *logits))

    def _eval_derivative(self, s):
        return sp.Add(
            *(self.fdiff(k + 2) * x.diff(s) for k, x in enumerate(self.args[1:]) if x.has(s))
        )

    def textbook(self):
        j, logits = self.args[0], self.args[1:]
        return 1 / sp.Add(*(sp.exp(x - logits[j]) for x in logits))
