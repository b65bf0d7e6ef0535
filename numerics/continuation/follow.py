"""Natural continuation: the solution at one parameter value is the start at the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numerics.branches import distance
from numerics.continuation.branch import Branch
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, solve
from numerics.status import Status
from theory.errors import ParameterError


def follow(
    problem: ProblemLike,
    start: Solution,
    parameter: str,
    span: tuple[float, float],
    *,
    points: int = 20,
    finest: int = 64,
    accuracy: float = 1e-5,
    max_attempts: int = 400,
    callback: Callable[[dict], Any] | None = None,
) -> Branch:
    """Follow a solution from ``span[0]`` to ``span[1]`` (either direction).

    The step adapts between the range divided by ``points`` and that again by
    ``finest``. A point that has another kind, or lies far from its secant prediction, is rejected.

    Parameters
    ----------
    problem : Problem
    start : Solution
        At the parameter value ``span[0]``, or near it.
    parameter : str
    span : (from, to)
    points : int
        About as many points as wanted.
    finest : int
        The step may shrink to this fraction of its first length.
    accuracy : float
        Of the expectations.
    max_attempts : int
        Counts every attempt, accepted or not.
    callback : callable, optional
        Called with a dict for each point; returning False stops the run.

    Returns
    -------
    Branch
        With at least the first point if that exists; ``status`` says why it ended.
    """
    if parameter not in start.params:
        raise ParameterError(
            f"unknown parameter {parameter!r} of {problem.name}; it has: {', '.join(start.params)}"
        )
    here, end = map(float, span)
    longest = (end - here) / max(points, 1)
    shortest, step = abs(longest) / finest, longest
    branch = Branch(parameter)
    first = solve(problem, {**start.params, parameter: here}, start.x, accuracy=accuracy,
                  refine=False, raise_on_failure=False)  # fmt: skip
    if not first.status.usable:
        branch.status = first.status
        return branch
    branch.points.append(first)
    for _ in range(max_attempts):
        last = branch.points[-1]
        if callback is not None and callback(_news(branch, span)) is False:
            branch.status = Status.USER_STOP
            return branch
        here = last.params[parameter]
        if (end - here) * np.sign(longest) <= 1e-12 * abs(end):
            branch.status = Status.REACHED_BOUND
            return branch
        there = here + step
        if (there - end) * np.sign(longest) > 0 or abs(there - end) < 1e-9 * abs(end):
            there = end
        predicted = _predict(problem, branch, parameter, there)
        start = replace(last, state=dict(zip(last.state, predicted, strict=True)))
        new = solve(problem, {**last.params, parameter: there}, start, accuracy=accuracy,
                    refine=False, raise_on_failure=False)  # fmt: skip
        if new.status.usable and new.kind == last.kind and not _jumped(problem, new, last, branch):
            branch.points.append(new)
            step = np.sign(longest) * min(abs(step) * 1.5, abs(longest))
            continue
        if abs(step) <= shortest:
            lost = new.status.usable and new.kind != last.kind
            branch.status = Status.BRANCH_LOST if lost else Status.STEP_TOO_SMALL
            return branch
        step /= 2
    branch.status = Status.MAX_STEPS
    return branch


def _news(branch: Branch, span) -> dict:
    last = branch.points[-1]
    value = last.params[branch.parameter]
    done = (value - span[0]) / (span[1] - span[0]) if span[1] != span[0] else 1.0
    return {"stage": f"following {last.kind}", "fraction": done, branch.parameter: value}


def _predict(problem, branch: Branch, parameter: str, there: float) -> np.ndarray:
    """Secant prediction, or the last state where the secant leaves the domain."""
    last = branch.points[-1]
    if len(branch.points) > 1:
        before = branch.points[-2]
        gap = last.params[parameter] - before.params[parameter]
        x = last.x + (last.x - before.x) * (there - last.params[parameter]) / gap
        if problem.in_domain(x, {**last.params, parameter: there}):
            return x
    return last.x


def _jumped(problem, new: Solution, last: Solution, branch: Branch) -> bool:
    """Whether the state moved much farther than it has been moving."""
    moved = distance(problem, new, last)
    if len(branch.points) < 2:
        return moved > 3.0
    before = branch.points[-2]
    p = branch.parameter
    rate = distance(problem, last, before) / abs(last.params[p] - before.params[p])
    return moved > 5.0 * rate * abs(new.params[p] - last.params[p]) + 0.1
