"""Arbitrary precision: the same expressions evaluated by mpmath, the reference for everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import sympy as sp

from theory.errors import DerivationError
from theory.nodes import GaussianExpectation, Moreau
from theory.nodes.stable import Stable
from theory.system import SaddlePointSystem


def evaluate(expression: sp.Expr, values: Mapping[sp.Symbol, float], digits: int = 30) -> Any:
    """Value of ``expression`` at ``values`` with about ``digits`` digits.

    Expectations of smooth integrands over one or two variables are integrated adaptively.

    Raises
    ------
    DerivationError
        For an expectation with a Moreau envelope or over more than two variables.
    """
    with mpmath.workdps(digits + 10):
        numbers = {k: _number(v) for k, v in values.items()}
        expectations = {
            node: sp.Dummy(f"e{i}")
            for i, node in enumerate(
                sorted(expression.atoms(GaussianExpectation), key=sp.default_sort_key)
            )
        }
        for node, symbol in expectations.items():
            numbers[symbol] = _expectation(node, numbers)
        masked = expression.xreplace(expectations)
        result = _function(masked, list(numbers))(*numbers.values())
        return +mpmath.mpf(result)


def _number(value) -> Any:
    return value if isinstance(value, mpmath.mpf) else mpmath.mpf(value)


def _function(expression, symbols):
    """An mpmath function; nodes in their textbook form, which high precision can afford."""
    plain = sp.sympify(expression).replace(lambda e: isinstance(e, Stable), lambda e: e.textbook())
    return sp.lambdify(symbols, plain, modules="mpmath", cse=True)


def _expectation(node: GaussianExpectation, numbers) -> Any:
    n = len(node.variables)
    if node.has(Moreau) or n > 2:
        raise DerivationError(
            f"no arbitrary-precision value for an expectation over {n} variables"
            f"{' of a Moreau envelope' if node.has(Moreau) else ''}; compare with "
            "quasi-Monte-Carlo instead (numerics.quadrature.SobolRule)"
        )
    symbols = [s for s in numbers if not isinstance(s, sp.Dummy)]
    known = [numbers[s] for s in symbols]
    mean = [_function(sp.sympify(m), symbols)(*known) for m in node.mean]
    covariance = mpmath.matrix(n)
    for i in range(n):
        for j in range(n):
            covariance[i, j] = _function(node.covariance[i, j], symbols)(*known)
    root = mpmath.cholesky(covariance)
    integrand = _function(node.integrand, [*node.variables, *symbols])

    def weighted(*xi):
        x = [mean[i] + sum(root[i, j] * xi[j] for j in range(i + 1)) for i in range(n)]
        density = mpmath.exp(-sum(t * t for t in xi) / 2) / mpmath.sqrt(2 * mpmath.pi) ** n
        return integrand(*x, *known) * density

    # the density is below 10^-(dps) outside
    reach = mpmath.sqrt(2 * mpmath.log(10) * mpmath.mp.dps) + 1
    breaks = [-reach, -reach / 3, 0, reach / 3, reach]
    return mpmath.quad(weighted, *[breaks] * n)


def residual(
    system: SaddlePointSystem, x: Sequence[float], params: Mapping[str, float], digits: int = 30
) -> list[Any]:
    """Residual of the saddle-point equations in arbitrary precision."""
    values = dict(zip(system.unknowns, x, strict=True))
    values |= {p.symbol: params[p.name] for p in system.parameters}
    conjugates = {h: evaluate(e, values, digits) for h, e in system.conjugates.items()}
    full = {**values, **conjugates}
    updates = [evaluate(e, full, digits) for e in system.updates.values()]
    if system.form == "gradient":
        return updates
    return [u - _number(values[s]) for u, s in zip(updates, system.unknowns, strict=True)]


def refine(
    system: SaddlePointSystem, x: Sequence[float], params: Mapping[str, float], digits: int = 30
) -> tuple[list[Any], Any]:
    """Polish a solution by Newton in arbitrary precision.

    Returns
    -------
    x : list of mpf
        The polished state.
    residual : mpf
        Its largest residual component.
    """
    with mpmath.workdps(digits + 10):

        def function(*state):
            return residual(system, state, params, digits)

        start = [_number(v) for v in x]
        root = mpmath.findroot(
            function, start, tol=mpmath.mpf(10) ** (-digits), solver="mdnewton", verify=False
        )
        state = list(root) if len(start) > 1 else [mpmath.mpf(root[0])]
        return state, max(abs(r) for r in function(*state))
