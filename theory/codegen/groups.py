"""Expectations grouped by Gaussian measure: one integration for all moments of a measure."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import sympy as sp

from theory.errors import DerivationError
from theory.nodes import AtProximal, GaussianExpectation, Moreau, ProximalForce, ProximalSlope
from theory.plan import PlanarPlan
from theory.system import SaddlePointSystem


@dataclass
class Group:
    """All expectations over one measure."""

    variables: sp.Tuple
    mean: sp.Tuple
    covariance: sp.Matrix
    integrands: list[sp.Expr] = field(default_factory=list)
    slopes: list[sp.Expr] = field(default_factory=list)
    further: list[sp.Expr] = field(default_factory=list)

    @property
    def everything(self) -> list[sp.Expr]:
        """Integrands that are always needed, then those of the Jacobian, then of diagnostics."""
        return [*self.integrands, *self.slopes, *self.further]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many integrands there are up to each of the three extents."""
        always, slopes = len(self.integrands), len(self.slopes)
        return always, always + slopes, always + slopes + len(self.further)

    @functools.cached_property
    def moreau(self) -> Moreau | None:
        """The envelope in the integrands (asked for once they are all there)."""
        nodes = set().union(*(f.atoms(Moreau) for f in self.everything))
        if len(nodes) > 1:
            raise DerivationError("one expectation may contain one Moreau envelope only")
        return next(iter(nodes), None)

    @property
    def envelope(self) -> Moreau:
        """The envelope of a group that has one."""
        moreau = self.moreau
        assert moreau is not None
        return moreau

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """Symbols that the integration depends on."""
        inner = set().union(*(f.free_symbols for f in self.everything)) - set(self.variables)
        return inner | self.mean.free_symbols | self.covariance.free_symbols

    def kind(self, plan) -> str:
        """``planar``, ``proximal`` or ``smooth``."""
        if self.moreau is None:
            return "smooth"
        return "planar" if isinstance(plan, PlanarPlan) else "proximal"

    @property
    def sources(self) -> list[sp.Symbol]:
        """Integration variables that are not fields of the envelope."""
        fields = set(self.moreau.field) if self.moreau else set()
        return [x for x in self.variables if x not in fields]

    def at_minimiser(self, integrand: sp.Expr, hessian: sp.Matrix) -> sp.Expr:
        """The integrand as a function of W, Z and the proximal point H (now free symbols).

        ``hessian`` stands for the Hessian of the loss there.
        """
        moreau = self.moreau
        if moreau is None:
            return integrand
        h = sp.Matrix(list(moreau.minimiser))
        displacement = h - sp.Matrix(list(moreau.field))
        quadratic = (displacement.T * _block_inverse(moreau.response) * displacement)[0] / 2
        value = quadratic + moreau.loss
        inner = {n: n.expression for n in integrand.atoms(ProximalForce, AtProximal)}
        inner |= {n: n.given(hessian) for n in integrand.atoms(ProximalSlope)}
        # no node may shadow the free H of the result, hence one replacement for all
        return integrand.xreplace({**inner, moreau: value})


def _block_inverse(matrix: sp.Matrix) -> sp.Matrix:
    """Inverse, one independent block at a time."""
    inverse = sp.zeros(*matrix.shape)
    for block in matrix.as_mutable().connected_components():
        sub = matrix.extract(block, block)
        part = sub.adjugate() / sub.det()
        for i, row in enumerate(block):
            for j, column in enumerate(block):
                inverse[row, column] = part[i, j]
    return inverse


Symbols = dict[GaussianExpectation, sp.Symbol]


def collect(system: SaddlePointSystem) -> tuple[list[Group], list[Symbols]]:
    """Groups of the system's expectations, and the symbol that stands for each moment.

    Three times: where only the moments that are always needed are computed, where those of the
    Jacobian are, too, and where all are.
    """
    groups: dict[tuple, Group] = {}
    placed = []
    stages = (system.expectations, system.slope_expectations, system.further_expectations)
    for extent, nodes in enumerate(stages):
        for node in nodes:
            group = groups.setdefault(node.measure, Group(*node.measure))
            if node.integrand not in group.everything:
                (group.integrands, group.slopes, group.further)[extent].append(node.integrand)
            placed.append((node, group))
    found: list[Symbols] = [{}, {}, {}]
    for extent, symbols in enumerate(found):
        offsets, total = {}, 0
        for key, group in groups.items():
            offsets[key], total = total, total + group.counts[extent]
        for node, group in placed:
            place = group.everything.index(node.integrand)
            if place < group.counts[extent]:
                symbols[node] = _moment(offsets[node.measure] + place)
    return list(groups.values()), found


def _moment(place: int) -> sp.Symbol:
    return sp.Symbol(f"moments[{place}]", real=True)
