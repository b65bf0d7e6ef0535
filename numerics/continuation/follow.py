"""Natural continuation: the solution at one parameter value is the start at the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

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
    ``finest``. The first prediction is along the tangent, later ones along the secant. A point that
    has another kind, or lies far from its prediction, is rejected.

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
        Called with a dict for each point; returning something false, other than None, stops.

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
        answer = callback(_news(branch, span)) if callback is not None else None
        if answer is not None and not answer:
            branch.status = Status.USER_STOP
            return branch
        here = last.params[parameter]
        if (end - here) * np.sign(longest) <= 1e-12 * abs(end):
            branch.status = Status.REACHED_BOUND
            return branch
        there = here + step
        if (there - end) * np.sign(longest) > 0 or abs(there - end) < 1e-9 * abs(end):
            there = end
        predicted = _predict(problem, branch, parameter, there, accuracy)
        scale = problem.scale(last.x, last.params)
        start = replace(last, state=dict(zip(last.state, predicted, strict=True)))
        new = solve(
            problem, {**last.params, parameter: there}, start, accuracy=accuracy, method="newton",
            max_steps=15, refine=False, raise_on_failure=False,
        )  # fmt: skip
        if new.status.usable and new.kind == last.kind and not _jumped(new, last, predicted, scale):
            branch.points.append(new)
            step = math.copysign(min(abs(step) * 1.5, abs(longest)), longest)
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


def _predict(problem, branch: Branch, parameter: str, there: float, accuracy: float) -> np.ndarray:
    """Secant or, at the first step, tangent; the last state where that leaves the domain."""
    last = branch.points[-1]
    here, params = last.params[parameter], {**last.params, parameter: there}
    x = last.x
    if len(branch.points) > 1:
        before = branch.points[-2]
        x = x + (x - before.x) * (there - here) / (here - before.params[parameter])
    elif last.jacobian is not None and problem.in_domain(x, params):
        change = problem.residual(x, params, accuracy) - problem.residual(x, last.params, accuracy)
        x = x - np.linalg.lstsq(last.jacobian, change)[0]
    return x if problem.in_domain(x, params) else last.x


def _jumped(new: Solution, last: Solution, predicted: np.ndarray, scale: np.ndarray) -> bool:
    """Whether the state missed its prediction by more than the predicted move; natural units.

    Near a fold, where the branch bends like a square root, this only shortens the step.
    """
    missed, expected = (np.max(np.abs(x - predicted) / scale) for x in (new.x, last.x))
    return bool(missed > expected + 0.1)
