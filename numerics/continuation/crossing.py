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
from scipy.interpolate import CubicHermiteSpline

from numerics.branches import belongs, locate
from numerics.continuation.branch import Branch
from numerics.continuation.transition import Transition
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, solve
from numerics.status import Status
from theory.errors import ParameterError

SEARCH, CLOSE = 4e-4, 4e-5  # accuracy and tolerance while searching


class _Pair:
    """Two branches at the same parameter value."""

    def __init__(self, problems, params, parameter, known):
        self.problems: tuple[ProblemLike, ProblemLike] = problems
        self.params, self.parameter = dict(params), parameter
        self.states: list[Solution | None] = [None, None]
        names = [p.branch or f"branch {i + 1}" for i, p in enumerate(problems)]
        twice = names[0] == names[1]
        self.names = tuple(f"{n} {i + 1}" if twice else n for i, n in enumerate(names))
        self.known: tuple[list[Solution], list[Solution]] = known
        self.scanned: list[tuple[float, float]] = []
        self.slopes: list[tuple[float, float]] = []
        self.spent = 0

    def at(self, value: float, accuracy: float, *, refine=False, carry=False) -> bool:
        """Solve both; False if one of them does not exist here."""
        params = {**self.params, self.parameter: value}
        new: list[Solution | None] = []
        for problem, last, known in zip(self.problems, self.states, self.known, strict=True):
            solution = None
            if last is None and known:
                last = min(known, key=lambda s: abs(s.params[self.parameter] - value))
            if last is not None and problem.in_domain(last.x, params):
                solution = solve(
                    problem, params, last, accuracy=accuracy, tolerance=min(accuracy, CLOSE),
                    refine=refine, raise_on_failure=False,
                )  # fmt: skip
            if solution is None or not belongs(solution):
                solution = locate(problem, params, accuracy=accuracy, refine=refine, carry=carry,
                                  raise_on_failure=False)  # fmt: skip
            self.spent += solution.evaluations
            new.append(solution if belongs(solution) else None)
        found = all(s is not None for s in new)
        if found:
            self.states = new
            self.scanned.append((value, self.difference))
            self.slopes.append((value, self.slope))
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
    def merged(self) -> bool:
        """Whether the two states are one within their errors: equal energies mean nothing then."""
        a, b = self.both
        names = {*a.state, *b.state}
        return all(
            abs(a.state.get(k, 0.0) - b.state.get(k, 0.0))
            <= 2 * (a.errors.get(k, 0.0) + b.errors.get(k, 0.0))
            for k in names
        )

    def touching(self, here: float, noise: float) -> bool:
        """Whether the energies may touch within ``noise`` of here (a double root), not cross."""
        return any(
            abs(self.slope - slope) * noise > 0.25 * abs(self.slope) * abs(value - here)
            for value, slope in self.slopes
            if abs(value - here) > noise
        )

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
    span: tuple[float, float] | None = None,
    *,
    start_a: Solution | Branch | None = None,
    start_b: Solution | Branch | None = None,
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
    span : (low, high), optional
        Range searched; nothing outside is looked at. By default where both given branches exist,
        else (0.3, 10).
    start_a, start_b : Solution or Branch, optional
        What is known of each branch: states to start from. Two branches whose energies cross also
        say where to begin.
    accuracy : float
        Relative accuracy of the expectations at the end; the search itself is cheaper.
    guess : float, optional
        Where to start; by default the value in ``params`` or the middle.
    callback : callable, optional
        Called with a dict at each step.

    Returns
    -------
    Transition
        With status CONVERGED, or NO_CROSSING / LOWER_FROM_BIRTH / BRANCH_LOST / CRITICAL_END (the
        branches merge, and equal energies are no crossing) and a message that
        says what was found over the range. The error bar is the quadrature error of both energies
        divided by the slope difference, plus the last Newton step left undone.
    """
    values = problem_a.values(params)
    known = tuple(_points(s) for s in (start_a, start_b))
    pair = _Pair((problem_a, problem_b), values, parameter, known)
    span = span or _overlap(known, parameter) or (0.3, 10.0)
    low, high = span
    guess = _meeting(known, parameter) if guess is None else guess

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


def _points(start: Solution | Branch | None) -> list[Solution]:
    if isinstance(start, Branch):
        return sorted(start.points, key=lambda s: s.params[start.parameter])
    return [] if start is None else [start]


def _overlap(known, parameter: str) -> tuple[float, float] | None:
    """Range that both known branches cover; None where fewer than two points of each are known."""
    if min(map(len, known)) < 2:
        return None
    low = max(points[0].params[parameter] for points in known)
    high = min(points[-1].params[parameter] for points in known)
    if low >= high:
        raise ParameterError(f"the branches do not overlap in {parameter}; give span=(low, high)")
    return low, high


def _meeting(known, parameter: str) -> float | None:
    """Where two known branches seem to cross; else the place of the first known state."""
    if min(map(len, known)) < 2:
        return next((points[0].params[parameter] for points in known if points), None)
    low, high = _overlap(known, parameter) or (0.0, 0.0)
    grid = np.linspace(low, high, 201)
    values = [[s.params[parameter] for s in points] for points in known]
    curves = [CubicHermiteSpline(x, [s.energy for s in points],
                                 [s.gradient[parameter] for s in points])(grid)
              for x, points in zip(values, known, strict=True)]  # fmt: skip
    apart = curves[0] - curves[1]
    change = np.flatnonzero(np.sign(apart[1:]) != np.sign(apart[:-1]))
    if not len(change):
        return None
    k = change[0]
    return float(grid[k] - apart[k] * (grid[k + 1] - grid[k]) / (apart[k + 1] - apart[k]))


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
    status, step, noise = Status.MAX_STEPS, math.inf, math.inf
    between = math.sqrt(CLOSE * accuracy)
    if accuracy < between and pair.at(here, between) and pair.slope:
        here = float(np.clip(here - pair.difference / pair.slope, *span))
    for _ in range(8):
        if not pair.at(here, accuracy, refine=True):
            return _result(pair, here, math.inf, Status.BRANCH_LOST,
                           "a branch was lost while polishing")  # fmt: skip
        tell("polishing", **{pair.parameter: here, "energy difference": pair.difference})
        step = -pair.difference / pair.slope if pair.slope else math.nan
        noise = pair.error / abs(pair.slope) if pair.slope else math.inf
        if not math.isfinite(step):
            status = Status.NON_FINITE
            break
        if abs(step) <= max(0.2 * noise, 1e-12 * abs(here)):
            status = Status.CRITICAL_END if pair.touching(here, noise) else Status.CONVERGED
            break
        here += step
        if not span[0] <= here <= span[1]:
            return _absent(pair, span)
    if not span[0] <= here <= span[1]:
        return _absent(pair, span)
    a, b = pair.both
    if status is Status.CONVERGED and not (a.status.success and b.status.success):
        status = Status.ACCURACY_NOT_REACHED
    error = noise + abs(step)
    if status is Status.CONVERGED and pair.merged:
        status = Status.CRITICAL_END
    elif status is Status.CONVERGED and not math.isfinite(error):
        status = Status.ACCURACY_NOT_REACHED
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
        message=message, params=others, scanned=sorted(pair.scanned), evaluations=pair.spent,
        problems=pair.problems,
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
