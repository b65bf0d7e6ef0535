"""Curves of singular points as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numerics.solvers.solution import _finite
from numerics.status import Status


@dataclass(frozen=True)
class SpecialPoint:
    """A cusp on a fold curve, or a tricritical point on a curve of branch points."""

    kind: str
    values: dict[str, float]
    errors: dict[str, float]
    state: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass
class SingularCurve:
    """A curve in two parameters: of folds (spinodal line), of branch points, of equal observables.

    Attributes
    ----------
    kind : str
        "fold", "branch point", or the condition that holds on it.
    parameters : (str, str)
        The one in which the event was found, and the second one.
    values : (points, 2) array
        Of both parameters.
    states : (points, unknowns) array
    residuals : (points,) array
    special : list of SpecialPoint
    ends : list of Status
        Why each end was reached.
    errors : (points,) array
        Of the first parameter; empty where the curve is known to rounding.
    """

    kind: str
    parameters: tuple[str, str]
    unknowns: tuple[str, ...]
    values: np.ndarray
    states: np.ndarray
    residuals: np.ndarray
    special: list[SpecialPoint] = field(default_factory=list)
    ends: list[Status] = field(default_factory=list)
    errors: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> np.ndarray:
        """A parameter or an unknown along the curve."""
        if name in self.parameters:
            return self.values[:, self.parameters.index(name)]
        return self.states[:, self.unknowns.index(name)]

    def to_dict(self) -> dict[str, Any]:
        errors = self.errors if len(self.errors) else np.zeros(len(self))
        rows = [
            {**dict(zip(self.parameters, map(float, p), strict=True)),
             "state": dict(zip(self.unknowns, map(float, x), strict=True)),
             "residual": _finite(float(r)), "error": _finite(float(e))}
            for p, x, r, e in zip(self.values, self.states, self.residuals, errors, strict=True)
        ]  # fmt: skip
        return {
            "kind": self.kind,
            "parameters": list(self.parameters),
            "points": rows,
            "special": [s.to_dict() for s in self.special],
            "end_reason": [e.name.lower() for e in self.ends],
        }
