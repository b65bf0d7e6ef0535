"""A branch: solutions at increasing values of one parameter."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numerics.solvers import Solution
from numerics.status import Status


@dataclass
class Branch:
    """Solutions followed in one parameter.

    Attributes
    ----------
    parameter : str
    points : list of Solution
        In the order in which they were computed.
    status : Status
        Why it ended.
    """

    parameter: str
    points: list[Solution] = field(default_factory=list)
    status: Status = Status.CONVERGED

    def __len__(self) -> int:
        return len(self.points)

    @property
    def values(self) -> np.ndarray:
        """Values of the parameter."""
        return np.array([p.params[self.parameter] for p in self.points])

    def __getitem__(self, name: str) -> np.ndarray:
        """An unknown, an observable or ``energy`` along the branch."""
        return np.array([p[name] for p in self.points])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Parameter, unknowns, energy and observables as columns."""
        if not self.points:
            return {}
        first = self.points[0]
        names = [*first.state, "energy", *first.observables]
        return {self.parameter: self.values, **{n: self[n] for n in names}}
