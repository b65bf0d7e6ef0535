"""What became of one task, as plain data that any process can send and any table can hold."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from numerics.solvers import Solution, belongs

FOUND, ABSENT, UNSOLVED, FAILED = "found", "absent", "unsolved", "failed"


@dataclass(frozen=True)
class Outcome:
    """Result of one branch at one point.

    Attributes
    ----------
    verdict : {"found", "absent", "unsolved", "failed"}
        On the branch; a solution of another branch, to which the equations fell back; a solve that
        ended without a solution (its status says how); an exception.
    kind, status : str or None
        Of the solution.
    energy, energy_error : float or None
    solution : str or None
        `Solution.to_dict` as JSON, exact to the last bit; NaN and infinity are null.
    failure : str or None
        The exception.
    seconds : float
        Time it took.
    """

    verdict: str
    kind: str | None = None
    status: str | None = None
    energy: float | None = None
    energy_error: float | None = None
    solution: str | None = None
    failure: str | None = None
    seconds: float = 0.0

    @classmethod
    def of(cls, solution: Solution, seconds: float) -> Outcome:
        data = _plain(solution.to_dict())
        absent = ABSENT if solution.status.usable else UNSOLVED
        return cls(
            FOUND if belongs(solution) else absent,
            solution.kind,
            data["status"],
            data["energy"],
            data["energy_error"],
            json.dumps(data, allow_nan=False),
            seconds=seconds,
        )

    @classmethod
    def failed(cls, failure: str, seconds: float = 0.0) -> Outcome:
        return cls(FAILED, failure=failure, seconds=seconds)

    @property
    def data(self) -> dict[str, Any]:
        """The solution as plain data; empty after an exception."""
        return {} if self.solution is None else json.loads(self.solution)


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {k: _plain(v) for k, v in data.items()}
    if hasattr(data, "item"):
        data = data.item()
    return None if isinstance(data, float) and not math.isfinite(data) else data
