"""Where a function of the solution vanishes along one branch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numerics.branches import locate
from numerics.continuation.transition import Transition
from numerics.protocol import ProblemLike, check_move
from numerics.solvers import Solution, belongs, solve
from numerics.solvers.derivatives import LOOSE
from numerics.status import Status
from theory.joint import Name, joint, moved, separate, value_of, without


def root(
    problem: ProblemLike,
    function: Callable[[Solution], tuple[float, float]],
    params: Mapping[str, float] | None = None,
    parameter: Name = "alpha",
    span: tuple[float, float] = (0.3, 10.0),
    *,
    guess: float | None = None,
    start: Solution | None = None,
    accuracy: float = 1e-7,
    callback: Callable[[dict], Any] | None = None,
) -> Transition:
    """Value of ``parameter`` at which ``function(solution)`` is zero.

    Parameters
    ----------
    problem : Problem
    function : callable
        Returns the value and its error bar, for example
        ``difference_of("test_error", "baseline_error")``.
    guess : float, optional
        Start of the secant iteration.
    start : Solution, optional
        On the branch, near the guess.

    Returns
    -------
    Transition
        ``error`` is the function's error bar divided by its slope, plus the last step; infinite
        where the function's is not known (a fixed rule of integration).
    """
    low, high = span
    parameter = joint(parameter)
    known = value_of(getattr(problem, "defaults", {}), parameter, 0.5 * (low + high))
    values = problem.values({**moved({}, parameter, known), **separate(params or {})})
    check_move(problem, values, parameter, (low, high))
    name = problem.branch or "solution"
    here = guess if guess is not None else value_of(values, parameter, 0.5 * (low + high))
    here = min(max(here, low), high)
    state, kind = start, start.kind if start is not None else ""
    seen: list[tuple[float, float, float]] = []
    levels: list[float] = []
    status, level, slope, spent = Status.MAX_STEPS, LOOSE, math.nan, 0
    for _ in range(25):
        point = moved(values, parameter, here)
        if state is None or not problem.in_domain(state.x, point):
            state = locate(problem, point, accuracy=level, refine=level <= accuracy,
                           raise_on_failure=False)  # fmt: skip
        else:
            # a state that lags behind the parameter has another slope
            state = solve(problem, point, state, accuracy=level, refine=level <= accuracy,
                          tolerance=0.05 * level, raise_on_failure=False)  # fmt: skip
        spent += state.evaluations
        kind = kind or state.kind
        if not belongs(state) or state.kind != kind:
            status = Status.WRONG_BRANCH if state.status.usable else Status.BRANCH_LOST
            break
        value, error = function(state)
        seen.append((here, value, error))
        levels.append(level)
        if callback is not None:
            callback({"stage": "searching", parameter: here, "value": value})
        size = max(abs(here), 0.01 * (high - low))
        if len(seen) < 2:
            reach = 0.05 * min(size if size == abs(here) else math.inf, high - low)
            here = here + reach if here + reach <= high else here - reach
            continue
        (x0, f0, e0), (x1, f1, e1) = seen[-2:]
        # points too close to tell from noise, or of two accuracies, keep the slope from before
        told = abs(f1 - f0) > 3 * _bar(e0 + e1, f0, f1) and levels[-1] == levels[-2]
        if x1 != x0 and (told or not math.isfinite(slope)):
            slope = (f1 - f0) / (x1 - x0)
        step = -f1 / slope if slope else math.nan
        if not math.isfinite(step):
            status = Status.STALLED
            break
        noise = abs(e1 / slope)
        enough = 0.3 * noise if math.isfinite(noise) else accuracy * size
        if level <= accuracy and abs(step) <= max(enough, 1e-10 * size):
            total = noise + abs(step) + _lent(function, state, f1) / abs(slope)
            return _found(parameter, here, total, Status.CONVERGED, name, state, f1, slope, values,
                          seen, spent)  # fmt: skip
        if abs(step) < 1e-3 * size:
            level = accuracy
        here = min(max(here + max(-0.3 * size, min(step, 0.3 * size)), low), high)
        if len(seen) > 3 and seen[-1][0] == seen[-2][0] == here:
            status = Status.NO_CROSSING
            break
    return _found(parameter, math.nan, math.nan, status, name, state, math.nan, math.nan, values,
                  seen, spent)  # fmt: skip


def _bar(error: float, *values: float) -> float:
    """An error bar; where it is not known (fixed nodes), what rounding makes of the values."""
    return error if math.isfinite(error) else 1e-12 * max(map(abs, values))


def _lent(function, state: Solution, value: float) -> float:
    """What the errors of the state can make of a function of it."""
    total = 0.0
    for name, error in state.errors.items():
        if math.isfinite(error):
            there = replace(state, state={**state.state, name: state.state[name] + error})
            total += abs(function(there)[0] - value)
    return total


def difference_of(a: str, b: str) -> Callable[[Solution], tuple[float, float]]:
    """Function for `root`: difference of two observables with the sum of their errors."""

    def function(solution: Solution) -> tuple[float, float]:
        errors = solution.observable_errors
        return solution[a] - solution[b], errors.get(a, 0.0) + errors.get(b, 0.0)

    return function


def _found(parameter, value, error, status, name, state, residual, slope, values, seen, spent):
    return Transition(
        kind="observable", parameter=parameter, value=value, error=error,
        interval=(value - error, value + error), status=status,
        states={name: state} if state is not None else {}, residual=residual, slope=slope,
        message=status.message(), params=without(values, parameter),
        scanned=[(x, f) for x, f, _ in seen], evaluations=spent,
    )  # fmt: skip
