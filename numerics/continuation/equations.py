"""What is traced: a system of N equations in N + 1 numbers, whose solutions form a curve.

The same tracer follows a branch (state and one parameter), a phase boundary (two states and two
parameters) and a curve of folds (state, null vector and two parameters); only the equations differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from numerics.protocol import ProblemLike, equation_scale
from numerics.solvers.newton import LOOSE
from theory.errors import SpinodalError


class CurveEquations(Protocol):
    """N equations in N + 1 components of y.

    ``exact`` says whether the Jacobian is exact (or as good), so that a fresh one at each step of
    Newton is affordable; else one a point is computed, and repaired by Broyden's rule.
    """

    names: tuple[str, ...]
    exact: bool
    tolerance: float

    def residual(self, y: np.ndarray) -> np.ndarray: ...

    def jacobian(self, y: np.ndarray) -> np.ndarray: ...

    def scale(self, y: np.ndarray) -> np.ndarray:
        """Natural size of each component."""
        ...

    def row_scale(self, y: np.ndarray) -> np.ndarray:
        """Natural size of each equation."""
        ...

    def inside(self, y: np.ndarray) -> bool: ...


class BranchEquations:
    """Saddle-point equations as one parameter varies: y = (unknowns, parameter).

    Parameters
    ----------
    problem : Problem
    parameter : str
    params : mapping
        Values of the other parameters.
    span : (low, high)
        Its width sets the natural size of the parameter.
    accuracy : float
        Of the expectations.

    Attributes
    ----------
    lazy : bool
        Points may keep the corrector's Jacobian; enough for tangents, not for events.
    """

    def __init__(self, problem: ProblemLike, parameter: str, params: Mapping[str, float],
                 span: tuple[float, float], accuracy: float):  # fmt: skip
        self.problem, self.parameter, self.params = problem, parameter, dict(params)
        self.accuracy = accuracy
        self.names = (*problem.unknowns, parameter)
        self.width = abs(span[1] - span[0])
        self.exact, self.lazy = differentiable(problem), False
        self.tolerance = 1e-12 if self.exact else accuracy

    def at(self, y) -> tuple[np.ndarray, dict[str, float]]:
        """State and all parameters."""
        return y[:-1], {**self.params, self.parameter: float(y[-1])}

    def residual(self, y) -> np.ndarray:
        x, params = self.at(y)
        return self.problem.residual(x, params, self.accuracy)

    def jacobian(self, y) -> np.ndarray:
        x, params = self.at(y)
        state = state_jacobian(self.problem, x, params, self.accuracy)
        slope = parameter_slope(self.problem, x, params, self.parameter, self.accuracy)
        return np.column_stack([state, slope])

    def scale(self, y) -> np.ndarray:
        x, params = self.at(y)
        own = min(max(abs(y[-1]), 0.1 * self.width), self.width)
        return np.append(self.problem.scale(x, params), own)

    def row_scale(self, y) -> np.ndarray:
        return equation_scale(self.problem, *self.at(y))

    def inside(self, y) -> bool:
        return inside(self.problem, *self.at(y))


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
    return min(max(getattr(problem, "roughness", 1e-16) ** (1 / 3), 5e-6), 2e-3)


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
    """Derivative of the residual with respect to one parameter."""
    exact = getattr(problem, "parameter_jacobian", lambda x, p: None)(x, params)
    if exact is not None:
        own = list(getattr(problem, "own_parameters", problem.values(params)))
        return exact[:, own.index(parameter)] if parameter in own else np.zeros(len(x))
    here = params[parameter]

    def along(step):
        return x, {**params, parameter: here + step}

    size = max(abs(here), 1e-2)
    return _difference(problem, along, _step(problem) * size, _accuracy(problem, accuracy))


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
