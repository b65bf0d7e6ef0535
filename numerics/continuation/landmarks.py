"""What a model declares to be of interest along a branch: equal observables, limits of trust."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from numerics.continuation.branch import Branch
from numerics.continuation.event import Event
from numerics.continuation.root import difference_of, root
from numerics.solvers.derivatives import differentiable
from numerics.status import Status


def equalities(branch: Branch, accuracy: float | None = None) -> list[Event]:
    """Where two observables that the model compares are equal on a branch.

    Parameters
    ----------
    branch : Branch
        With its problem.
    accuracy : float, optional
        Of the expectations: 1e-10 for smooth systems, else 1e-6.
    """
    problem = branch.problem
    model = getattr(problem, "model", None)
    if problem is None or model is None or len(branch) < 2:
        return []
    accuracy = accuracy or (1e-10 if differentiable(problem) else 1e-6)
    found = []
    for key, (a, b) in model.comparisons.items():
        gap, values = branch[a] - branch[b], branch.values
        for k in np.flatnonzero(gap[1:] * gap[:-1] < 0):
            share = gap[k] / (gap[k] - gap[k + 1])
            at = root(
                problem, difference_of(a, b), branch.params, branch.parameter,
                tuple(sorted(values[k : k + 2])), start=branch.points[k], accuracy=accuracy,
                guess=values[k] + share * (values[k + 1] - values[k]),
            )  # fmt: skip
            if at.status is Status.CONVERGED:
                found.append(Event(
                    "equality", branch.parameter, at.value, at.error, at.interval,
                    abs(at.residual), "polished", at.states, branch.params,
                    message=f"{key}: {a} = {b}", details={"slope": at.slope},
                ))  # fmt: skip
    return found


@dataclass(frozen=True)
class Trust:
    """Diagnostics of a model along a branch, against its limits.

    Attributes
    ----------
    values, errors : dict of str to (points,) array
        NaN where a diagnostic cannot be computed.
    limits : dict of str to float
    """

    values: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    limits: dict[str, float]

    def beyond(self, name: str | None = None) -> np.ndarray:
        """Whether the size of a diagnostic (or any) exceeds its limit by more than its error.

        A point at which the error is larger than the value is taken to be like its neighbours where
        these agree (a ratio whose denominator passes zero).
        """
        if name is None:
            return np.any([self.beyond(n) for n in self.limits], axis=0)
        size, error = np.abs(self.values[name]), self.errors[name]
        found = size - error > self.limits[name]
        for k in range(1, len(found) - 1):
            if size[k] > self.limits[name] and error[k] >= size[k]:
                found[k] = found[k] or (found[k - 1] and found[k + 1])
        return found


def trust(branch: Branch, accuracy: float = 1e-4) -> Trust | None:
    """The diagnostics with limits at the points of a branch; None for a model without."""
    problem: Any = branch.problem
    limits = getattr(getattr(problem, "model", None), "limits", {})
    if not limits or not len(branch) or not hasattr(problem, "diagnostics"):
        return None
    values: dict[str, list[float]] = {k: [] for k in limits}
    errors: dict[str, list[float]] = {k: [] for k in limits}
    for point in branch.points:
        numbers, doubts = problem.diagnostics(point.x, point.params, accuracy)
        for k in limits:
            values[k].append(numbers.get(k, np.nan))
            errors[k].append(doubts.get(k, np.nan))
    return Trust({k: np.array(v) for k, v in values.items()},
                 {k: np.array(v) for k, v in errors.items()}, dict(limits))  # fmt: skip


def stretches_beyond(branch: Branch, beyond: np.ndarray) -> list[tuple[float, float]]:
    """Ranges of the parameter in which points are marked; ends halfway to the next point."""
    order = np.argsort(branch.values)
    x, marked = branch.values[order], np.asarray(beyond)[order]
    found = []
    for same, group in itertools.groupby(range(len(x)), key=lambda k: bool(marked[k])):
        if not same:
            continue
        places = list(group)
        first, last = places[0], places[-1]
        low = x[first] if first == 0 else 0.5 * (x[first] + x[first - 1])
        high = x[last] if last == len(x) - 1 else 0.5 * (x[last] + x[last + 1])
        found.append((float(low), float(high)))
    return found
