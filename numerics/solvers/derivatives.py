"""Derivatives of a residual: exact where the problem knows them, else differences that suit it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from numerics.protocol import ProblemLike
from theory.errors import SpinodalError
from theory.joint import members, moved, value_of

LOOSE = 4e-4  # accuracy good enough for slopes, and for states far from the solution


def inside(problem: ProblemLike, x, params: Mapping[str, float]) -> bool:
    """Whether state and parameters are within their bounds."""
    try:
        problem.values(params)
        return problem.in_domain(x, params)
    except SpinodalError:
        return False


def differentiable(problem: ProblemLike) -> bool:
    """Whether derivatives are exact, or differences of functions known to rounding."""
    return getattr(problem, "roughness", 1e-16) < 1e-10


def _step(problem: ProblemLike) -> float:
    """Relative step of central differences: the cube root of the noise."""
    return min(max(getattr(problem, "roughness", 1e-16) ** (1 / 3), 5e-6), 1e-2)


def slope_noise(problem: ProblemLike, x, params) -> float:
    """Relative error of the Jacobian: zero if exact, else truncation and noise of differences."""
    if problem.jacobian(x, params, LOOSE) is not None:
        return 0.0
    step = _step(problem)
    return 3.0 * (step**2 + getattr(problem, "roughness", 1e-16) / step)


def _accuracy(problem: ProblemLike, accuracy: float) -> float:
    """Slopes need less accuracy than values where that is expensive."""
    return accuracy if differentiable(problem) else max(accuracy, LOOSE)


def state_jacobian(problem: ProblemLike, x, params, accuracy: float) -> np.ndarray:
    """Derivative of the residual with respect to the state; exact where the problem knows it."""
    level = _accuracy(problem, accuracy)
    exact = problem.jacobian(x, params, level)
    if exact is not None:
        return exact
    columns = []
    for j, size in enumerate(problem.scale(x, params)):

        def along(step, j=j):
            point = np.array(x, dtype=float)
            point[j] += step
            return point, params

        columns.append(_difference(problem, along, _step(problem) * size, level))
    return np.column_stack(columns)


def parameter_slope(problem: ProblemLike, x, params, parameter: str, accuracy: float) -> np.ndarray:
    """Derivative of the residual with respect to one parameter, or several moved as one."""
    exact = getattr(problem, "parameter_jacobian", lambda x, p: None)(x, params)
    if exact is not None:
        own = list(getattr(problem, "own_parameters", problem.values(params)))
        return exact[:, [own.index(k) for k in members(parameter) if k in own]].sum(axis=1)
    here = value_of(params, parameter)

    def along(step):
        return x, moved(params, parameter, here + step)

    size = max(abs(here), 1e-2)
    return _difference(problem, along, _step(problem) * size, _accuracy(problem, accuracy))


@np.errstate(all="ignore")
def _difference(problem, along, step: float, accuracy: float) -> np.ndarray:
    """Central difference; one-sided of second order where one side is out of bounds."""
    ahead, behind = inside(problem, *along(step)), inside(problem, *along(-step))

    def value(h):
        return problem.residual(*along(h), accuracy)

    if ahead and behind:
        return (value(step) - value(-step)) / (2 * step)
    h = step if ahead else -step
    if not inside(problem, *along(2 * h)):
        return np.full(len(value(0.0)), np.nan)
    return (4 * value(h) - value(2 * h) - 3 * value(0.0)) / (2 * h)
