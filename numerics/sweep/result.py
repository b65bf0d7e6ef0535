"""What a sweep found: counts, a table, an array over the grid."""

from __future__ import annotations

import csv
import functools
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sympy import Expr, Symbol, sympify

from numerics.sweep.grid import Grid, Points
from numerics.sweep.outcome import FAILED, FOUND, Outcome
from numerics.sweep.store import Key, Store
from theory.errors import ParameterError
from theory.free_energy import FreeEnergy

FACTS = ("verdict", "kind", "status")


@dataclass(frozen=True)
class Sweep:
    """Outcomes of all tasks of a sweep.

    Attributes
    ----------
    model : FreeEnergy
    grid : Grid or Points
    branches : tuple of str
        The empty name is the system without reduction to a branch.
    outcomes : dict of Key to Outcome
        Points in the order of the grid, the branches of a point beside each other.
    computed : int
        How many of them this run has added to the store.
    """

    model: FreeEnergy
    grid: Grid | Points
    branches: tuple[str, ...]
    outcomes: dict[Key, Outcome]
    computed: int

    @classmethod
    def read(
        cls, model: FreeEnergy, grid: Grid | Points, branches: Sequence[str], keys: Iterable[Key],
        store: Store, *, computed: int = 0,
    ) -> Sweep:  # fmt: skip
        """Collect what a store holds for these keys."""
        by_branch: dict[str, dict[str, Outcome]] = {}
        outcomes = {}
        for key in keys:
            if key.branch not in by_branch:
                by_branch[key.branch] = store.outcomes(key)
            outcomes[key] = by_branch[key.branch][key.point]
        return cls(model, grid, tuple(branches), outcomes, computed)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def counts(self) -> dict[str, int]:
        """Number of tasks by verdict."""
        return dict(Counter(o.verdict for o in self.outcomes.values()))

    @property
    def failures(self) -> list[tuple[dict[str, float], str, str]]:
        """Parameters, branch and message of every task that raised an exception."""
        return [
            (json.loads(k.point), k.branch, o.failure or "")
            for k, o in self.outcomes.items() if o.verdict == FAILED
        ]  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """Counts as plain data."""
        counts = self.counts
        return {
            "model": self.model.name,
            "parameters": list(self.grid.parameters),
            "points": len(self.grid),
            "branches": [b or None for b in self.branches],
            "tasks": len(self),
            "computed": self.computed,
            "from_store": len(self) - self.computed,
            **{v: counts.get(v, 0) for v in ("found", "absent", "unsolved", "failed")},
        }

    def table(self) -> list[dict[str, Any]]:
        """One row a task: parameters, branch, verdict, then numbers with their errors.

        Numbers are NaN where the branch was not found: a state of another branch, to which the
        equations fell back, is no value of this one (its ``kind`` says which it was). An order
        parameter that the branch fixes by symmetry has that value, with error zero.
        """
        numbers = [self._numbers(k, o) for k, o in self.outcomes.items()]
        found = dict.fromkeys(name for row in numbers for name in row)
        fixed = {name: self._imposed(name) for name in self.branches}
        rows = []
        for (key, outcome), own in zip(self.outcomes.items(), numbers, strict=True):
            values = {name: own.get(name, math.nan) for name in ("energy", "energy_error", *found)}
            if own:
                values.update(_by_symmetry(fixed[key.branch], own, values))
            facts = {f: getattr(outcome, f) or "" for f in FACTS}
            rows.append({**_ordered(key, self.grid.parameters), "branch": key.branch, **facts,
                         **values, "failure": outcome.failure or ""})  # fmt: skip
        return rows

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters that are the same at all points."""
        points = [json.loads(k.point) for k in self.outcomes]
        return {k: v for k, v in points[0].items() if all(p[k] == v for p in points)}

    def array(self, name: str, branch: str | None = None) -> np.ndarray:
        """A column of the table for one branch, in the shape of the grid.

        Parameters
        ----------
        branch : str, optional
            May be left out where the sweep has one only.

        Raises
        ------
        ParameterError
            For an unknown name or branch.
        """
        if branch is None and len(self.branches) == 1:
            branch = self.branches[0]
        if branch not in self.branches:
            raise ParameterError(f"the sweep has no branch {branch!r}; it has: "
                                 f"{', '.join(self.branches)}")  # fmt: skip
        rows = self._rows
        if name not in rows[0]:
            raise ParameterError(f"the sweep has no {name!r}; it has: {', '.join(rows[0])}")
        values = [row[name] for row in rows if row["branch"] == branch]
        return np.array(values).reshape(self.grid.shape)

    @functools.cached_property
    def _rows(self) -> list[dict[str, Any]]:
        return self.table()

    def plot(
        self,
        path: str | Path,
        quantity: str | Sequence[str] | None = None,
        lines: Iterable[Any] | Mapping[str, Any] = (),
    ) -> None:
        """Draw a map over both parameters, see `numerics.maps.map_plot`."""
        from numerics.maps import map_plot

        map_plot(self, quantity, path, lines)

    def _numbers(self, key: Key, outcome: Outcome) -> dict[str, float]:
        """Everything with an error bar, by name."""
        if outcome.verdict != FOUND:
            return {}
        data = outcome.data
        pairs = {
            "energy": data["energy_error"], **data["errors"], **data["observable_errors"]
        }  # fmt: skip
        out = {}
        for name, error in pairs.items():
            out[name] = _number(data[name])
            out[f"{name}_error"] = _number(error)
        return out

    def _imposed(self, branch: str) -> dict[str, Expr]:
        if branch not in self.model.branches:
            return {}
        image = self.model.branches[branch].substitution
        return {str(k): sympify(v) for k, v in image.items()}

    def to_csv(self, path: str | Path) -> None:
        """Write `table`; exact floats, ``nan`` where there is none.

        Raises
        ------
        ParameterError
            If the file cannot be written.
        """
        rows = self.table()
        try:
            with Path(path).open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        except OSError as error:
            raise ParameterError(f"cannot write {path}: {error.strerror}") from None

    def to_xarray(self):
        """The table as an `xarray.Dataset`.

        Returns
        -------
        xarray.Dataset
            Dimensions are those of the grid (``point`` for a list of points), then ``branch``;
            fixed parameters are attributes.

        Raises
        ------
        ParameterError
            If xarray is not installed.
        """
        try:
            import xarray
        except ImportError:
            raise ParameterError("to_xarray needs xarray: pip install 'spinodal[sweep]'") from None
        rows = self.table()
        key = next(iter(self.outcomes))
        fixed = {k: v for k, v in json.loads(key.point).items() if k not in self.grid.parameters}
        dims, shape = (*self.grid.dims, "branch"), (*self.grid.shape, len(self.branches))
        skipped = {*json.loads(key.point), "branch", "failure"}
        return xarray.Dataset(
            {
                name: (dims, np.array([row[name] for row in rows]).reshape(shape))
                for name in rows[0] if name not in skipped
            },
            {**self.grid.coordinates(), "branch": np.array(self.branches)},
            {"model": self.model.name, "accuracy": key.accuracy, "version": key.version, **fixed},
        )  # fmt: skip

    def to_netcdf(self, path: str | Path) -> None:
        """Write `to_xarray` as NetCDF.

        Raises
        ------
        ParameterError
            If xarray is not installed, or the file cannot be written.
        """
        data = self.to_xarray()
        try:
            data.to_netcdf(path, engine="scipy")
        except OSError as error:
            raise ParameterError(f"cannot write {path}: {error.strerror or error}") from None


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _ordered(key: Key, first: Sequence[str]) -> dict[str, float]:
    values = json.loads(key.point)
    return {**{k: values[k] for k in first}, **values}


def _by_symmetry(
    imposed: dict[str, Expr], own: dict[str, float], wanted: dict[str, float]
) -> Iterator[tuple[str, float]]:
    """Order parameters that other branches have and this one fixes: a constant times another."""
    for name, image in imposed.items():
        if name not in wanted or name in own:
            continue
        symbols = [s for s in image.free_symbols if isinstance(s, Symbol)]
        yield name, float(image.xreplace({s: own[s.name] for s in symbols}))
        yield (
            f"{name}_error",
            sum((abs(float(image.diff(s))) * own[f"{s.name}_error"] for s in symbols), 0.0),
        )
