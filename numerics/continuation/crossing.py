"""Where the energies of two branches cross: the first-order transition.

The slope of the difference is known at every point without differencing (envelope theorem), so
Newton in the parameter takes a few steps. States need only be good to 1e-3 for energies good to
1e-6: the search is cheap, only its end is accurate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numerics.branches import belongs, locate
from numerics.continuation.transition import Transition
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, solve
from numerics.status import Status

SEARCH = 4e-5


class _Pair:
    """Two branches at the same parameter value."""

    def __init__(self, problems, params, parameter):
        self.problems: tuple[ProblemLike, ProblemLike] = problems
        self.params, self.parameter = dict(params), parameter
        self.states: list[Solution | None] = [None, None]
        self.names = tuple(p.branch or f"branch {i + 1}" for i, p in enumerate(problems))
        self.scanned: list[tuple[float, float]] = []

    def at(self, value: float, accuracy: float, *, refine=False, carry=False) -> bool:
        """Solve both; False if one of them does not exist here."""
        params = {**self.params, self.parameter: value}
        new: list[Solution | None] = []
        for problem, last in zip(self.problems, self.states, strict=True):
            solution = None
            if last is not None and problem.in_domain(last.x, params):
                solution = solve(problem, params, last, accuracy=accuracy, refine=refine,
                                 raise_on_failure=False)  # fmt: skip
            if solution is None or not belongs(solution):
                solution = locate(problem, params, accuracy=accuracy, refine=refine, carry=carry,
                                  raise_on_failure=False)  # fmt: skip
            new.append(solution if belongs(solution) else None)
        found = all(s is not None for s in new)
        if found:
            self.states = new
            self.scanned.append((value, self.difference))
        self.latest = new
        return found

    @property
    def difference(self) -> float:
        a, b = self.both
        return a.energy - b.energy

    @property
    def slope(self) -> float:
        a, b = self.both
        return a.gradient[self.parameter] - b.gradient[self.parameter]

    @property
    def error(self) -> float:
        a, b = self.both
        return a.energy_error + b.energy_error

    @property
    def both(self) -> tuple[Solution, Solution]:
        a, b = self.states
        assert a is not None and b is not None
        return a, b


def crossing(
    problem_a: ProblemLike,
    problem_b: ProblemLike,
    params: Mapping[str, float] | None = None,
    parameter: str = "alpha",
    span: tuple[float, float] = (0.3, 10.0),
    *,
    accuracy: float = 1e-7,
    guess: float | None = None,
    max_steps: int = 30,
    callback: Callable[[dict], Any] | None = None,
) -> Transition:
    """Find where the energies of two branches are equal.

    Parameters
    ----------
    problem_a, problem_b : Problem
        Compiled branches of one model.
    params : mapping
        The other parameters.
    parameter : str
    span : (low, high)
        Range searched; nothing outside is looked at.
    accuracy : float
        Relative accuracy of the expectations at the end; the search itself is cheaper.
    guess : float, optional
        Where to start; by default the value in ``params`` or the middle.
    callback : callable, optional
        Called with a dict at each step.

    Returns
    -------
    Transition
        With status CONVERGED, or NO_CROSSING / LOWER_FROM_BIRTH / BRANCH_LOST and a message that
        says what was found over the range. The error bar is the quadrature error of both energies
        divided by the slope difference, plus the last Newton step left undone.
    """
    values = problem_a.values(params)
    pair = _Pair((problem_a, problem_b), values, parameter)
    low, high = span

    def tell(stage, **numbers):
        if callback is not None:
            callback({"stage": stage, **numbers})

    here = guess if guess is not None else values.get(parameter, math.nan)
    if not low <= here <= high:
        here = math.sqrt(low * high) if low > 0 else 0.5 * (low + high)
    found = _newton_search(pair, here, span, max_steps, tell)
    if found is None:
        found = _scan(pair, span, tell)
    if found is None:
        return _absent(pair, span)
    return _polish(pair, found, span, accuracy, tell)


def _newton_search(pair: _Pair, here, span, max_steps, tell) -> float | None:
    """Newton with limited steps at low accuracy; None if it leaves the range or loses a branch."""
    low, high = span
    longest = 0.35 * (high - low) if low <= 0 else None
    for _ in range(max_steps):
        if not pair.at(here, SEARCH, carry=not pair.scanned):
            return None
        tell("searching", **{pair.parameter: here, "energy difference": pair.difference})
        if not pair.slope:
            return None
        step = -pair.difference / pair.slope
        limit = longest if longest is not None else 0.4 * here
        step = float(np.clip(step, -limit, limit))
        if not math.isfinite(step):
            return None
        if abs(step) <= 1e-4 * max(abs(here), 0.01 * (high - low)):
            return here + step if low <= here + step <= high else None
        if here in span and (here + step - here) * (1 if here == high else -1) > 0:
            return None  # pushed out through the same end twice
        here = float(np.clip(here + step, low, high))
    return None


def _scan(pair: _Pair, span, tell, points: int = 16) -> float | None:
    """Compare both branches over the range; a bracketed sign change, refined by bisection."""
    low, high = span
    grid = np.geomspace(low, high, points) if low > 0 else np.linspace(low, high, points)
    pair.states = [None, None]
    previous: tuple[float, float] | None = None
    for k, value in enumerate(grid):
        tell("scanning", fraction=(k + 1) / points, **{pair.parameter: float(value)})
        if not pair.at(float(value), SEARCH):
            previous = None
            continue
        difference = pair.difference
        if previous is not None and previous[1] * difference <= 0:
            return _bisect(pair, previous[0], float(value), previous[1])
        previous = (float(value), difference)
    return None


def _bisect(pair: _Pair, left, right, at_left) -> float | None:
    for _ in range(20):
        middle = 0.5 * (left + right)
        if not pair.at(middle, SEARCH):
            return None
        if abs(right - left) < 1e-3 * max(abs(middle), 1e-3):
            break
        if pair.difference * at_left > 0:
            left, at_left = middle, pair.difference
        else:
            right = middle
    return 0.5 * (left + right)


def _polish(pair: _Pair, here: float, span, accuracy: float, tell) -> Transition:
    """Newton at full accuracy; the step left undone is part of the error."""
    status, step = Status.MAX_STEPS, math.inf
    for _ in range(8):
        if not pair.at(here, accuracy, refine=True):
            return _result(pair, here, math.inf, Status.BRANCH_LOST,
                           "a branch was lost while polishing")  # fmt: skip
        tell("polishing", **{pair.parameter: here, "energy difference": pair.difference})
        step = -pair.difference / pair.slope
        noise = pair.error / abs(pair.slope)
        if not math.isfinite(step):
            status = Status.NON_FINITE
            break
        if abs(step) <= max(0.05 * noise, 1e-12 * abs(here)):
            status = Status.CONVERGED
            break
        here += step
    if not span[0] <= here <= span[1]:
        return _absent(pair, span)
    a, b = pair.both
    if status is Status.CONVERGED and not (a.status.success and b.status.success):
        status = Status.ACCURACY_NOT_REACHED
    error = pair.error / abs(pair.slope) + abs(step)
    return _result(pair, here, error, status, status.message())


def _result(pair: _Pair, value, error, status, message) -> Transition:
    others = {k: v for k, v in pair.params.items() if k != pair.parameter}
    states = {n: s for n, s in zip(pair.names, pair.states, strict=True) if s is not None}
    known = len(states) == 2
    return Transition(
        kind="first-order", parameter=pair.parameter, value=value, error=error,
        interval=(value - error, value + error), status=status, states=states,
        residual=pair.difference if known else math.nan,
        slope=pair.slope if known else math.nan,
        message=message, params=others, scanned=sorted(pair.scanned),
    )  # fmt: skip


def _absent(pair: _Pair, span) -> Transition:
    """No crossing: say what was seen."""
    a, b = pair.names
    where = f"{pair.parameter} in [{span[0]:g}, {span[1]:g}]"
    if not pair.scanned:
        missing = [n for n, s in zip(pair.names, pair.latest, strict=True) if s is None]
        text = f"no crossing: {' and '.join(missing or pair.names)} not found anywhere for {where}"
        return _result(pair, math.nan, math.nan, Status.BRANCH_LOST, text)
    first, last = min(pair.scanned)[0], max(pair.scanned)[0]
    lower = a if pair.scanned[-1][1] < 0 else b
    text = f"no crossing for {where}: {lower} is lower at all {len(pair.scanned)} points compared"
    status = Status.NO_CROSSING
    if first > span[0] * 1.001 + 1e-12 or last < span[1] * 0.999:
        status = Status.LOWER_FROM_BIRTH
        text += f"; both branches exist only from {first:.4g} to {last:.4g}"
    return _result(pair, math.nan, math.nan, status, text)
