"""Derivatives of a residual: exact where the problem knows them, else differences that suit it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from numerics.differences import LOOSE, central, step_for
from numerics.protocol import ProblemLike
from theory.errors import DomainError, SpinodalError
from theory.joint import members, moved, value_of

FAIR = 1e-4  # accuracy at which exact derivatives are as good as differences at a loose one


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
    return step_for(getattr(problem, "roughness", 1e-16))


def slope_noise(problem: ProblemLike, x, params) -> float:
    """Relative error of the Jacobian: zero if exact, else truncation and noise of differences."""
    if differentiable(problem) and problem.jacobian(x, params, LOOSE) is not None:
        return 0.0
    step = _step(problem)
    return 3.0 * (step**2 + getattr(problem, "roughness", 1e-16) / step)


def _accuracy(problem: ProblemLike, accuracy: float, least: float) -> float:
    """Slopes need less accuracy than values where that is expensive."""
    return accuracy if differentiable(problem) else max(accuracy, least)


def _exact(matrix, problem: ProblemLike, x, params, accuracy: float) -> np.ndarray | None:
    """The problem's own derivatives; None where it has none, or is asked outside its domain."""
    try:
        return matrix and matrix(x, params, _accuracy(problem, accuracy, FAIR))
    except DomainError:
        return None


def state_jacobian(problem: ProblemLike, x, params, accuracy: float) -> np.ndarray:
    """Derivative of the residual with respect to the state; exact where the problem knows it."""
    exact = _exact(problem.jacobian, problem, x, params, accuracy)
    if exact is not None and np.all(np.isfinite(exact)):
        return exact
    columns, level = [], _accuracy(problem, accuracy, LOOSE)
    for j, size in enumerate(problem.scale(x, params)):

        def along(step, j=j):
            point = np.array(x, dtype=float)
            point[j] += step
            return point, params

        columns.append(_difference(problem, along, _step(problem) * size, level))
    return np.column_stack(columns)


def parameter_slope(problem: ProblemLike, x, params, parameter: str, accuracy: float) -> np.ndarray:
    """Derivative of the residual with respect to one parameter, or several moved as one."""
    exact = _exact(getattr(problem, "parameter_jacobian", None), problem, x, params, accuracy)
    if exact is not None:
        own = list(getattr(problem, "own_parameters", problem.values(params)))
        slope = exact[:, [own.index(k) for k in members(parameter) if k in own]].sum(axis=1)
        if np.all(np.isfinite(slope)):
            return slope
    here = value_of(params, parameter)

    def along(step):
        return x, moved(params, parameter, here + step)

    size = max(abs(here), 1e-2)
    level = _accuracy(problem, accuracy, LOOSE)
    return _difference(problem, along, _step(problem) * size, level)


def _difference(problem, along, step: float, accuracy: float) -> np.ndarray:
    """Derivative of the residual along a line in state and parameters."""
    return central(
        lambda h: problem.residual(*along(h), accuracy), lambda h: inside(problem, *along(h)), step
    )
