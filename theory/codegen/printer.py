"""Prints SymPy expressions as Python that numba compiles and the interpreter runs alike."""

from __future__ import annotations

import sympy as sp
from sympy.printing.codeprinter import CodePrinter
from sympy.printing.pycode import PythonCodePrinter

from theory.errors import DerivationError, ModelError
from theory.nodes import (
    AtProximal,
    GaussianExpectation,
    Moreau,
    ProximalForce,
    ProximalSlope,
)

HELPERS = '''
@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def logistic(x):
    """1 / (1 + exp(-x)), cut off where exp would overflow."""
    return 1.0 / (1.0 + math.exp(min(-x, 708.0)))


@njit(cache=True, nogil=True, error_model="numpy")
def softplus(x):
    """log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@njit(cache=True, nogil=True, error_model="numpy")
def log_gaussian_tail(x):
    """log(erfc(x / sqrt 2) / 2), by a continued fraction where erfc loses its digits."""
    if x < 8.0:
        return math.log(0.5 * math.erfc(x / math.sqrt(2.0)))
    fraction = x
    for k in range(40, 0, -1):
        fraction = x + k / fraction
    return -0.5 * x * x - math.log(fraction) - 0.9189385332046727


@njit(cache=True, nogil=True, error_model="numpy")
def softmax(j, logits):
    """Entry j of the softmax of a tuple of logits."""
    total = 0.0
    for x in logits:
        total += math.exp(min(x - logits[j], 709.0))
    return 1.0 / total
'''

_SYMBOLIC_NODES = (GaussianExpectation, Moreau, ProximalForce, ProximalSlope, AtProximal)


class KernelPrinter(PythonCodePrinter):
    """Scalar Python with ``math`` functions; floats with all their digits; no guessing.

    Parameters
    ----------
    names : mapping of Symbol to str
        How each symbol is written; any other symbol is an error.
    """

    def __init__(self, names):
        super().__init__({"fully_qualified_modules": True})
        self._names = dict(names)

    def declare(self, symbol: sp.Symbol) -> None:
        """A local variable that the code has assigned."""
        self._names[symbol] = symbol.name

    def _print_Symbol(self, expr):
        if expr not in self._names:
            raise DerivationError(f"generated code would use the undeclared symbol {expr}")
        return self._names[expr]

    _print_Dummy = _print_Symbol

    def _print_Integer(self, expr):
        return f"{int(expr)}.0"

    def _print_Rational(self, expr):
        return repr(int(expr.p) / int(expr.q))

    def _print_Half(self, expr):
        return "0.5"

    def _print_Float(self, expr):
        return repr(float(expr))

    def _print_NumberSymbol(self, expr):
        return repr(float(expr.evalf(25)))

    _print_Pi = _print_Exp1 = _print_EulerGamma = _print_NumberSymbol

    def _print_Infinity(self, expr):
        return "math.inf"

    def _print_Pow(self, expr, rational=False):
        base, exponent = expr.base, expr.exp
        if base.is_number and exponent.is_number:
            return repr(float(expr.evalf(25)))
        if exponent.is_Integer and 2 <= abs(int(exponent)) <= 4:
            factor = self.parenthesize(base, 1000)
            product = "*".join([factor] * abs(int(exponent)))
            return f"({product})" if exponent > 0 else f"(1.0/({product}))"
        if exponent == -1:
            return f"(1.0/{self.parenthesize(base, 1000)})"
        if exponent == sp.S.Half:
            return f"math.sqrt({self._print(base)})"
        if exponent == -sp.S.Half:
            return f"(1.0/math.sqrt({self._print(base)}))"
        if exponent.is_Integer:
            return f"({self.parenthesize(base, 1000)})**{int(exponent)}"
        return f"({self._print(base)})**({self._print(exponent)})"

    def _print_Logistic(self, expr):
        return f"logistic({self._print(expr.args[0])})"

    def _print_Softplus(self, expr):
        return f"softplus({self._print(expr.args[0])})"

    def _print_LogGaussianTail(self, expr):
        return f"log_gaussian_tail({self._print(expr.args[0])})"

    def _print_Softmax(self, expr):
        logits = ", ".join(self._print(x) for x in expr.args[1:])
        return f"softmax({int(expr.args[0])}, ({logits},))"

    def _print_Max(self, expr):
        return f"max({', '.join(self._print(a) for a in expr.args)})"

    def _print_Min(self, expr):
        return f"min({', '.join(self._print(a) for a in expr.args)})"

    def _print_Abs(self, expr):
        return f"abs({self._print(expr.args[0])})"

    def _print_sign(self, expr):
        return f"math.copysign(1.0, {self._print(expr.args[0])})"

    def _print_kink(self, expr):
        raise ModelError(
            f"the free energy has a kink where {expr.args[0]} = 0 (Abs, sign, Max, Min, Heaviside "
            "or Piecewise): its second derivative is not finite there; smooth it, such as "
            "sqrt(x**2 + 1/10**6) for Abs(x), or Softplus(100*x)/100 for Max(x, 0)"
        )

    def _print_not_supported(self, expr):
        raise DerivationError(
            f"no code can be generated for {type(expr).__name__} in {expr}; rewrite the model with "
            "elementary functions or the nodes of theory"
        )

    emptyPrinter = _print_not_supported
    _print_Derivative = _print_Integral = _print_Sum = _print_not_supported
    _print_DiracDelta = _print_Heaviside = _print_kink

    def _print_Function(self, expr):
        return self._print_not_supported(expr)

    def _print_GaussianExpectation(self, expr):
        raise DerivationError(f"{expr} must be integrated before code is printed")

    _print_Moreau = _print_ProximalForce = _print_ProximalSlope = _print_AtProximal = (
        _print_GaussianExpectation
    )


assert issubclass(KernelPrinter, CodePrinter)
