"""What a map shows: a number of a branch, or a difference of two, written as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numerics.sweep import Sweep
from numerics.sweep.outcome import ABSENT, FOUND
from theory.errors import ParameterError
from theory.free_energy import FreeEnergy

LOWER = "lower"
UNSOLVED = "not solved"
MINUS = "\N{MINUS SIGN}"
FORM = "NAME, NAME: BRANCH, or NAME: BRANCH - BRANCH"


@dataclass(frozen=True)
class Term:
    """A column of the table, on a branch or on the one with the lowest energy."""

    column: str
    branch: str

    def values(self, result: Sweep) -> tuple[np.ndarray, np.ndarray]:
        """Numbers, one a point (NaN where there is none), and why there is none."""
        branches = list(result.branches) if self.branch == LOWER else [self.branch]
        nothing = FOUND not in result.counts  # then the table has no columns of numbers
        column = "energy" if nothing else self.column
        values = np.array([result.array(column, b) for b in branches])
        verdicts = np.array([result.array("verdict", b) for b in branches])
        unknown = np.any(~np.isin(verdicts, (FOUND, ABSENT)), axis=0)
        gone = np.all(verdicts == ABSENT, axis=0)
        if self.branch == LOWER:
            energies = np.array([result.array("energy", b) for b in branches])
            energies = np.where(np.isfinite(energies), energies, np.inf)
            values = np.take_along_axis(values, energies.argmin(axis=0)[None], axis=0)
        words = {1: f"no {branches[0]} branch", 2: f"neither {' nor '.join(branches)} branch"}
        reasons = np.where(gone, words.get(len(branches), "no branch"), "no value").astype(object)
        reasons[unknown] = UNSOLVED
        return np.where(unknown | gone, np.nan, values[0]), reasons


@dataclass(frozen=True)
class Quantity:
    """One panel of a map."""

    first: Term
    second: Term | None = None

    @property
    def difference(self) -> bool:
        return self.second is not None

    def values(self, result: Sweep) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and, where they are NaN, the reason; in the shape of the grid."""
        values, reasons = self.first.values(result)
        if self.second is None:
            return values, reasons
        others, why = self.second.values(result)
        joined = np.where(np.isnan(values), reasons, why).astype(object)
        both = np.isnan(values) & np.isnan(others) & (reasons != why)
        ordered = [b for b in result.branches if b in (self.first.branch, self.second.branch)]
        joined[both] = f"neither {' nor '.join(ordered)} branch"
        joined[(reasons == UNSOLVED) | (why == UNSOLVED)] = UNSOLVED
        return values - others, joined

    @property
    def label(self) -> str:
        """For the colour bar."""
        if self.second is None:
            return _said(self.first.column)
        if self.first.column == self.second.column:
            return f"{_said(self.first.column)} difference"
        return f"{_said(self.first.column)} {MINUS} {_said(self.second.column)}"

    @property
    def title(self) -> str:
        def of(term: Term) -> str:
            where = {LOWER: " of the lower-energy branch", "": ""}.get(
                term.branch, f" ({term.branch})"
            )
            return _said(term.column) + where

        if self.second is None:
            return of(self.first)
        if self.first.column == self.second.column == "energy":
            return f"$E$({self.first.branch}) {MINUS} $E$({self.second.branch})"
        short = self.first.branch == self.second.branch
        return f"{of(self.first)} {MINUS} {_said(self.second.column) if short else of(self.second)}"

    @property
    def ends(self) -> tuple[str, str] | tuple[()]:
        """What the negative and the positive end of the colour bar mean."""
        if self.second is None or LOWER in (self.first.branch, self.second.branch):
            return ()
        if self.first.column == self.second.column == "energy":
            return f"{self.first.branch}\nis lower", f"{self.second.branch}\nis lower"
        return ()


def _said(name: str) -> str:
    return name.replace("_", " ")


def standard(model: FreeEnergy, branches: Sequence[str]) -> list[str]:
    """The energy difference of two branches, and what the model compares on the lower one."""
    pair = list(branches)
    between = list(model.transition.get("between", ()))
    if set(between) <= set(branches) and between:
        pair = between
    panels = [f"energy: {pair[1]} - {pair[0]}" if len(pair) == 2 else "energy"]
    return panels + [f"{a}: lower - {b}" for a, b in model.comparisons.values()]


def parse(text: str, model: FreeEnergy, branches: Sequence[str]) -> Quantity:
    """``NAME``, ``NAME: TERM`` or ``NAME: TERM - TERM``.

    Raises
    ------
    ParameterError
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    columns = _columns(model)
    if name not in columns:
        raise ParameterError(
            f"{text!r}: {model.name} has no {name!r}; it has: {', '.join(columns)}"
        )
    here = branches[0] if len(branches) == 1 else LOWER
    if not colon:
        return Quantity(Term(name, here))
    terms = [b for b in (*branches, LOWER) if b]
    if rest in terms:
        return Quantity(Term(name, _branch(rest, branches)))
    for k, letter in enumerate(rest):
        first, second = rest[:k].strip(), rest[k + 1 :].strip()
        if letter == "-" and first in terms and second in (*terms, *columns):
            left = _branch(first, branches)
            if second in terms:
                return Quantity(Term(name, left), Term(name, _branch(second, branches)))
            return Quantity(Term(name, left), Term(second, left))
    raise ParameterError(
        f"{text!r} is not of the form {FORM}; the branches of the sweep: {', '.join(terms)}"
    )


def _branch(name: str, branches: Sequence[str]) -> str:
    return branches[0] if name == LOWER and len(branches) == 1 else name


def _columns(model: FreeEnergy) -> list[str]:
    """Names a table may have; reductions rename order parameters."""
    reduced = [
        s.name
        for r in model.reductions
        for u in model.unknowns
        for s in getattr(r.substitution.get(u), "free_symbols", ())
    ]
    names = ["energy", *reduced, *(u.name for u in model.unknowns), *model.observables]
    return list(dict.fromkeys([*names, *model.diagnostics]))
