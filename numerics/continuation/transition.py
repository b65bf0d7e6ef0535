"""A transition as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from numerics.solvers import Solution
from numerics.solvers.solution import _finite
from numerics.status import Status


@dataclass(frozen=True)
class Transition:
    """Where something happens as a parameter changes, and how well that is known.

    Attributes
    ----------
    kind : str
        "first-order" (energies cross) or "observable" (a function of the state vanishes).
    parameter : str
    value, error : float
        NaN where there is none.
    interval : (float, float)
        Encloses the value.
    status : Status
    states : dict of str to Solution
        By branch name, at the value.
    residual : float
        Energy difference (or function value) left there.
    slope : float
        Derivative of that with respect to the parameter.
    message : str
    params : dict
        The other parameters.
    scanned : list of (parameter value, residual)
        All points at which both branches were compared.
    evaluations : int
        Evaluations of integrands behind the states computed on the way.
    problems : tuple of Problem
        Behind the states, in their order.
    """

    kind: str
    parameter: str
    value: float
    error: float
    interval: tuple[float, float]
    status: Status
    states: dict[str, Solution]
    residual: float
    slope: float
    message: str
    params: dict[str, float]
    scanned: list[tuple[float, float]] = field(default_factory=list)
    evaluations: int = 0
    problems: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        settings = ", ".join(f"{k} = {v:g}" for k, v in self.params.items())
        names = " and ".join(self.states) or "nothing found"
        lines = [f"{self.kind} transition, {names}, at {settings}"]
        if math.isfinite(self.value):
            lines.append(f"  {self.parameter} = {self.value:.10g} +- {self.error:.1e}")
        return "\n".join([*lines, self.message])

    def to_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON."""
        return {
            "kind": self.kind,
            "parameter": self.parameter,
            f"{self.parameter}_c": _finite(self.value),
            f"{self.parameter}_c_error": _finite(self.error),
            "interval": [_finite(v) for v in self.interval],
            "status": self.status.name.lower(),
            "message": self.message,
            "energy_difference": _finite(self.residual),
            "slope": _finite(self.slope),
            "parameters": self.params,
            "evaluations": self.evaluations,
            "branches": {name: s.to_dict() for name, s in self.states.items()},
        }
