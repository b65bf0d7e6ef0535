"""What happens along a branch, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numerics.solvers import Solution
from numerics.solvers.solution import _finite

KINDS = ("fold", "branch point", "pitchfork", "transcritical", "oscillatory", "user", "bound",
         "first-order", "equality")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Event:
    """A point where something changes.

    Attributes
    ----------
    kind : str
        "fold" (a spinodal), "pitchfork", "transcritical" or "branch point" (one that is neither, or
        could not be told), "oscillatory" (a pair of complex rates crosses), "first-order",
        "equality" (of two observables that the model compares, named in ``message``), "user",
        "bound".
    parameter : str
    value, error : float
    interval : (float, float)
        Encloses the value.
    residual : float
        Of the equations that define it, in natural units.
    status : {"polished", "located", "guessed"}
        Solved for by Newton; bracketed on the corrected curve; or interpolated.
    states : dict of str to Solution
        One, or two at a first-order transition.
    params : dict
        The other parameters.
    label : str
        Unique on its branch.
    direction : array or None
        Null vector of the full system (unknowns only): the direction that becomes soft.
    transverse : bool
        The soft direction leaves the (reduced) branch's own unknowns.
    message : str
    details : dict
        Further numbers: normal-form coefficients, gain of stability, ...
    """

    kind: str
    parameter: str
    value: float
    error: float
    interval: tuple[float, float]
    residual: float
    status: str
    states: dict[str, Solution]
    params: dict[str, float] = field(default_factory=dict)
    label: str = ""
    direction: np.ndarray | None = None
    transverse: bool = False
    message: str = ""
    details: dict[str, float] = field(default_factory=dict)

    @property
    def state(self) -> Solution:
        """The (first) state."""
        return next(iter(self.states.values()))

    def __str__(self) -> str:
        text = f"{self.label + ': ' if self.label else ''}{self.kind} at {self.parameter} = "
        return f"{text}{self.value:.12g} +- {self.error:.1e} ({self.status})"

    def to_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            "kind": self.kind,
            "label": self.label,
            "parameter": self.parameter,
            "value": _finite(self.value),
            "error": _finite(self.error),
            "interval": [_finite(v) for v in self.interval],
            "residual": _finite(self.residual),
            "status": self.status,
            "parameters": self.params,
            "transverse": self.transverse,
            "direction": None if self.direction is None else [float(v) for v in self.direction],
            "message": self.message,
            "details": {k: _finite(v) for k, v in self.details.items()},
            "states": {name: s.to_dict() for name, s in self.states.items()},
        }
