"""A branch: a curve of solutions in one parameter, with what happens along it."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.continuation.event import Event
from numerics.solvers import Solution
from numerics.status import Status
from theory.errors import ParameterError
from theory.joint import value_of, without

if TYPE_CHECKING:
    from numerics.protocol import ProblemLike


@dataclass(eq=False)
class Branch:
    """Solutions followed in one parameter.

    Attributes
    ----------
    parameter : str
    points : list of Solution
        Along the curve; at a fold the parameter turns.
    status, start_status : Status
        Why it ended, and (followed both ways) why it ended on the other side.
    curve, tangents : (points, unknowns + 1) arrays
        States and parameter as they were computed (a Solution shows one of the mirror images), and
        unit tangents in natural units.
    unstable : list of int
        Number of growing directions of each point in the full system; -1 where not known.
    events : list of Event
    problem : Problem or None
        None for a branch read from a file, until `Branch.load` is given one.
    """

    parameter: str
    points: list[Solution] = field(default_factory=list)
    status: Status = Status.CONVERGED
    start_status: Status | None = None
    curve: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    tangents: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    unstable: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    problem: ProblemLike | None = field(default=None, repr=False)
    name: str = ""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def values(self) -> np.ndarray:
        """Values of the parameter."""
        return np.array([value_of(p.params, self.parameter) for p in self.points])

    @property
    def params(self) -> dict[str, float]:
        """The other parameters."""
        return without(self.points[0].params, self.parameter)

    @property
    def stable(self) -> np.ndarray:
        return np.array([u == 0 for u in self.unstable])

    def __getitem__(self, name: str) -> np.ndarray:
        """An unknown, an observable or ``energy`` along the branch."""
        return np.array([p[name] for p in self.points])

    def labelled(self, label: str) -> Solution:
        """State of the event with this label, or of point number ``label``."""
        for event in self.events:
            if event.label == label:
                return event.state
        if label.isdigit() and int(label) < len(self.points):
            return self.points[int(label)]
        known = ", ".join(e.label for e in self.events) or "none"
        raise ParameterError(f"the branch has no event {label!r}; its events are: {known}")

    def stretches(self) -> list[tuple[int, int]]:
        """Ranges of points between turns of the parameter, each at least two points long."""
        steps = np.sign(np.diff(self.values))
        cuts = [0]
        for k in range(1, len(steps)):
            if steps[k] and steps[k - 1] and steps[k] != steps[k - 1]:
                cuts.append(k)
        cuts.append(len(self.points) - 1)
        return [(a, b + 1) for a, b in itertools.pairwise(cuts) if b > a]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Parameter, unknowns, energy and observables as columns."""
        if not self.points:
            return {}
        first = self.points[0]
        names = [*first.state, "energy", *first.observables]
        columns = {self.parameter: self.values, **{n: self[n] for n in names}}
        if len(self.unstable) == len(self.points):
            columns["unstable"] = np.array(self.unstable)
        return columns

    def to_xarray(self):
        """Columns and errors as an `xarray.Dataset` over the point number (needs xarray)."""
        try:
            import xarray
        except ImportError:
            raise ParameterError("to_xarray needs xarray: pip install 'spinodal[sweep]'") from None
        columns = {k: ("point", v) for k, v in self.to_arrays().items()}
        first = self.points[0]
        for name in first.state:
            columns[f"{name}_error"] = ("point", np.array([p.errors[name] for p in self.points]))
        columns["energy_error"] = ("point", np.array([p.energy_error for p in self.points]))
        columns["residual"] = ("point", np.array([p.residual for p in self.points]))
        facts = {"model": first.model, "branch": self.name, "parameter": self.parameter,
                 "status": self.status.name.lower()}  # fmt: skip
        events = json.dumps([e.to_dict() for e in self.events])
        return xarray.Dataset(columns, attrs={**facts, **self.params, "events": events})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "name": self.name,
            "parameter": self.parameter,
            "status": self.status.name.lower(),
            "start_status": None if self.start_status is None else self.start_status.name.lower(),
            "message": self.status.message(),
            "points": [p.to_dict() for p in self.points],
            "unstable": list(self.unstable),
            "curve": self.curve.tolist(),
            "tangents": self.tangents.tolist(),
            "events": [e.to_dict() for e in self.events],
        }

    def save(self, path: str | Path) -> None:
        """Write as JSON: readable, exact (numbers are written to the last bit), no pickle."""
        from numerics.continuation.storage import write

        write(self, Path(path))

    @staticmethod
    def load(path: str | Path, problem: ProblemLike | None = None) -> Branch:
        """Read a saved branch; with its problem it can be continued from any point or event."""
        from numerics.continuation.storage import read

        return read(Path(path), problem)

    def plot(self, path: str | Path, quantity: str = "energy") -> None:
        """Draw a quantity along the branch: stable solid, unstable dashed, events marked."""
        from numerics.plotting import plot_branches

        plot_branches([self], Path(path), quantity)
