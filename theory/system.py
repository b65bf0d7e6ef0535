"""The saddle-point system: what `derive` returns."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from theory.errors import ModelError, near
from theory.free_energy import Ansatz, FreeEnergy, Parameter
from theory.jacobian import Jacobian, jacobian
from theory.nodes import GaussianExpectation
from theory.symmetry import Symmetry, closure, symmetrise

if TYPE_CHECKING:
    from numerics.problem import Problem


@dataclass(frozen=True, eq=False)
class SaddlePointSystem:
    """Explicit saddle-point equations of a model (possibly under ansaetze).

    Attributes
    ----------
    model : FreeEnergy
    unknowns : tuple of Symbol
        Order parameters that are solved for.
    conjugates : mapping of Symbol to Expr
        Each conjugate as an expectation (channel side).
    updates : mapping of Symbol to Expr
        Each order parameter as a function of the conjugates (entropic side); for a model without
        conjugates, the derivative of the free energy with respect to it.
    energy : Expr
        The free energy as a function of unknowns, conjugates and parameters.
    parameters : tuple of Parameter
    observables : mapping of str to Expr
    diagnostics : mapping of str to Expr
    transverse : mapping of (Symbol, Symbol) to Expr
        Derivative of the update (or slope) of the first with respect to the second, for order
        parameters that vanish on the branch: whether the branch is stable against them.
    domain : tuple of Expr
        Positive inside the domain.
    ansaetze : tuple of Ansatz
        What has been imposed, in order.
    """

    model: FreeEnergy
    unknowns: tuple[sp.Symbol, ...]
    conjugates: Mapping[sp.Symbol, sp.Expr]
    updates: Mapping[sp.Symbol, sp.Expr]
    energy: sp.Expr
    parameters: tuple[Parameter, ...]
    observables: Mapping[str, sp.Expr]
    diagnostics: Mapping[str, sp.Expr]
    transverse: Mapping[tuple[sp.Symbol, sp.Symbol], sp.Expr]
    domain: tuple[sp.Expr, ...]
    scales: Mapping[sp.Symbol, sp.Expr]
    ansaetze: tuple[Ansatz, ...]

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def form(self) -> str:
        """``"fixed_point"`` (explicit updates) or ``"gradient"``."""
        return "fixed_point" if self.conjugates else "gradient"

    @property
    def free_energy(self) -> sp.Expr:
        return self.energy

    @property
    def equations(self) -> list[sp.Eq]:
        """The saddle-point equations: conjugates first, then order parameters."""
        if self.form == "gradient":
            return [sp.Eq(g, 0, evaluate=False) for g in self.updates.values()]
        sides = [*self.conjugates.items(), *self.updates.items()]
        return [sp.Eq(x, right, evaluate=False) for x, right in sides]

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Generators of the symmetries of loss and measure that the ansaetze rely on."""
        return tuple(s for a in self.ansaetze for s in a.symmetries)

    @functools.cached_property
    def parameter_slopes(self) -> dict[sp.Symbol, sp.Expr]:
        """dE/d(parameter): at a stationary point the partial derivative is the total one."""
        group = closure(self.symmetries)
        return {p.symbol: symmetrise(self.energy.diff(p.symbol), group) for p in self.parameters}

    @functools.cached_property
    def jacobian(self) -> Jacobian | None:
        """Derivatives of the equations; None where only differences can serve."""
        return jacobian(self)

    @property
    def branches(self) -> tuple[str, ...]:
        """Names of the branches of the model, distinguished by symmetry."""
        return tuple(self.model.branches)

    @property
    def expectations(self) -> list[GaussianExpectation]:
        """All expectations in equations, energy and observables."""
        everything = [
            *self.conjugates.values(),
            *self.updates.values(),
            self.energy,
            *self.observables.values(),
            *self.parameter_slopes.values(),
        ]
        return _expectations(everything)

    @functools.cached_property
    def slope_expectations(self) -> list[GaussianExpectation]:
        """Those that only the Jacobian needs."""
        known = set(self.expectations)
        entries = self.jacobian.entries.values() if self.jacobian else ()
        return [node for node in _expectations(entries) if node not in known]

    @property
    def further_expectations(self) -> list[GaussianExpectation]:
        """Those that only diagnostics and transverse stability need."""
        known = {*self.expectations, *self.slope_expectations}
        found = _expectations([*self.diagnostics.values(), *self.transverse.values()])
        return [node for node in found if node not in known]

    def branch(self, name: str) -> SaddlePointSystem:
        """The reduced system of one branch; its consistency is checked.

        Raises
        ------
        ModelError
            For a name that the model does not have.
        AnsatzError
            If an eliminated equation does not vanish identically.
        """
        from theory.derive import reduce

        if name not in self.model.branches:
            there = ", ".join(self.model.branches) or "none"
            close = near(name, self.model.branches)
            raise ModelError(f"{self.name} has no branch {name!r}{close}; there are: {there}")
        ansatz = self.model.branches[name]
        present = {*self.unknowns, *self.conjugates}
        kept = {k: v for k, v in ansatz.substitution.items() if k in present}
        if not kept:
            return self
        restricted = Ansatz(
            ansatz.name, kept, ansatz.symmetries, {}, ansatz.description, ansatz.nonzero
        )
        return reduce(self, restricted)

    def compile(self, *, branch: str | None = None, mode: str = "numba") -> Problem:
        """Generate code for the system and load it.

        Parameters
        ----------
        branch : str, optional
            Compile the reduced system of this branch.
        mode : {"numba", "python"}
            Compiled and cached on disk, or the same source run by the interpreter.

        Returns
        -------
        numerics.problem.Problem
        """
        from numerics.kernels import kernel_sources
        from numerics.problem import Problem
        from theory.codegen import write_module

        system = self if branch is None else self.branch(branch)
        source = write_module(system, kernel_sources())
        whole = None if branch is None else lambda: self.compile(mode=mode)
        return Problem(
            self.model, source, lambda: system, mode=mode, branch=branch, whole=whole,
            reduce=None if branch else lambda name: self.compile(branch=name, mode=mode),
        )  # fmt: skip

    def latex(self) -> str:
        """Free energy and equations as a LaTeX ``align`` environment."""
        from theory.explain import latex

        return latex(self)

    def explain(self) -> str:
        """The derivation step by step, as Markdown with LaTeX formulas."""
        from theory.explain import explain

        return explain(self)

    def __repr__(self) -> str:
        imposed = ", ".join(a.name for a in self.ansaetze) or "none"
        unknowns = ", ".join(map(str, self.unknowns))
        return f"SaddlePointSystem({self.name!r}, unknowns=[{unknowns}], ansatz: {imposed})"


def _expectations(expressions) -> list[GaussianExpectation]:
    nodes = set().union(*(e.atoms(GaussianExpectation) for e in expressions))
    return sorted(nodes, key=sp.default_sort_key)
