r"""The Jacobian of the saddle-point equations, by the chain rule through the conjugates.

For explicit equations :math:`x = F(\hat x)`, :math:`\hat x = G(x)` with expectations in G,

.. math::
    \frac{dF}{dy} = \frac{\partial F}{\partial y}
        + \sum_{\hat x} \frac{\partial F}{\partial \hat x} \frac{\partial G}{\partial y} .

Derivatives of expectations fall onto the Gaussian density (`theory.scores`), so that jumps of the
proximal point do no harm. What that leaves, the dependence of quadratic moments such as
:math:`E[g_i g_j]` on the response or on the loss, has a term on the surface of the jumps; those
entries of :math:`\partial G / \partial y` are left to differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp
from sympy.core.function import ArgumentIndexError

from theory.errors import DerivationError
from theory.nodes import GaussianExpectation
from theory.scores import Scores
from theory.symmetry import closure

if TYPE_CHECKING:
    from theory.system import SaddlePointSystem

KINKED = (sp.Abs, sp.sign, sp.Max, sp.Min, sp.Heaviside, sp.Piecewise, sp.floor, sp.ceiling)
UNKNOWN = (sp.Derivative, sp.Subs, sp.DiracDelta)


@dataclass(frozen=True)
class Jacobian:
    """Total derivatives of the updates (or of the gradient).

    Attributes
    ----------
    entries : mapping of (Symbol, Symbol) to Expr
        Derivative of the update of the first with respect to the second, an unknown or a
        parameter; parameters that only differences can serve are left out.
    missing : mapping of Symbol to (Symbol, Symbol)
        Symbols in ``entries`` that stand for the derivative of a conjugate with respect to an
        unknown, to be found by differences.
    """

    entries: Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr]
    missing: Mapping[sp.Symbol, tuple[sp.Symbol, sp.Symbol]]


def jacobian(system: SaddlePointSystem) -> Jacobian | None:
    """Derivatives of the equations of ``system``; None where only differences can serve.

    Parameters
    ----------
    system : SaddlePointSystem
    """
    nodes = set().union(*(e.atoms(GaussianExpectation) for e in _equations(system)))
    if any(n.integrand.has(*KINKED) for n in nodes):
        return None
    basis = Scores(closure(system.symmetries))
    conjugates = {h: basis(e) for h, e in system.conjugates.items()}
    updates = {x: basis(e) for x, e in system.updates.items()}
    missing: dict[sp.Symbol, tuple[sp.Symbol, sp.Symbol]] = {}
    entries = {}
    try:
        by_hats = {(x, h): _slope(basis, e, h) for x, e in updates.items() for h in conjugates}
        for y in system.unknowns:
            hats = {}
            for h, e in conjugates.items():
                try:
                    hats[h] = _slope(basis, e, y)
                except DerivationError:
                    hats[h] = sp.Symbol(f"slopes[{len(missing)}]", real=True)
                    missing[hats[h]] = (h, y)
            entries |= _column(basis, updates, y, hats, by_hats)
    except DerivationError:
        return None
    for p in (p.symbol for p in system.parameters):
        try:
            hats = {h: _slope(basis, e, p) for h, e in conjugates.items()}
            entries |= _column(basis, updates, p, hats, by_hats)
        except DerivationError:
            continue
    return Jacobian(entries, missing)


def _column(basis, updates, y, hats, by_hats):
    return {
        (x, y): _slope(basis, e, y) + sp.Add(*(by_hats[x, h] * s for h, s in hats.items()))
        for x, e in updates.items()
    }


def _slope(basis: Scores, expression: sp.Expr, y: sp.Symbol) -> sp.Expr:
    """The derivative; `DerivationError` where it is not a function that can be integrated."""
    try:
        slope = basis.derivative(expression, y)
    except (ArgumentIndexError, NotImplementedError) as error:
        raise DerivationError(f"no derivative of {expression} with respect to {y}") from error
    if any(n.integrand.has(*UNKNOWN) for n in slope.atoms(GaussianExpectation)):
        raise DerivationError(f"no derivative of {expression} with respect to {y}")
    return slope


def _equations(system: SaddlePointSystem) -> list[sp.Expr]:
    return [*system.conjugates.values(), *system.updates.values()]
