"""What is traced: a system of N equations in N + 1 numbers, whose solutions form a curve.

The same tracer follows a branch (state and one parameter), a phase boundary (two states and two
parameters) and a curve of folds (state, null vector and two parameters); only the equations differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from numerics.protocol import ProblemLike, equation_scale
from numerics.solvers.derivatives import (
    differentiable,
    inside,
    parameter_slope,
    state_jacobian,
)
from theory.joint import moved, without


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
        self.problem, self.parameter = problem, parameter
        self.params = without(params, parameter)
        self.accuracy = accuracy
        self.names = (*problem.unknowns, parameter)
        self.width = abs(span[1] - span[0])
        self.exact, self.lazy = differentiable(problem), False
        self.tolerance = 1e-12 if self.exact else accuracy

    def at(self, y) -> tuple[np.ndarray, dict[str, float]]:
        """State and all parameters."""
        return y[:-1], moved(self.params, self.parameter, float(y[-1]))

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
