"""States on which one more condition holds, traced in two parameters.

y = (state, first parameter, second parameter); the equations are those of the state and g = 0, with
g a transverse rate of the branch (a line of pitchforks) or the difference of two observables. These
curves need no derivative of the Jacobian, so that they serve systems with proximal points as well.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numerics.continuation.singular import SingularCurve
from numerics.continuation.stability import rates
from numerics.continuation.tracer import CurvePoint, Settings, start, trace
from numerics.protocol import ProblemLike, check_move, equation_scale
from numerics.solvers import Solution
from numerics.solvers.derivatives import (
    LOOSE,
    differentiable,
    inside,
    parameter_slope,
    state_jacobian,
)
from numerics.status import Status
from theory.errors import ParameterError, SpinodalError
from theory.joint import joint, moved, shared, value_of, without

# value and error of g at a state
Condition = Callable[[ProblemLike, np.ndarray, Mapping[str, float], float], tuple[float, float]]


def softening(problem, x, params, accuracy: float) -> tuple[float, float]:
    """The transverse rate nearest to zero."""
    _, matrix, errors = problem.transverse(x, params, accuracy)
    values = rates(problem, matrix).real
    return float(values[np.argmin(np.abs(values))]), float(np.max(errors.sum(axis=1)))


def difference(a: str, b: str) -> Condition:
    """Of two observables."""

    def condition(problem, x, params, accuracy: float) -> tuple[float, float]:
        found = problem.evaluate(x, params, accuracy)
        value = found.observables[a] - found.observables[b]
        return value, found.observable_errors[a] + found.observable_errors[b]

    return condition


class ConditionEquations:
    """Equations of a state and one condition; see `numerics.continuation.equations`."""

    def __init__(self, problem: ProblemLike, condition: Condition, parameters: tuple[str, str],
                 params: Mapping[str, float], widths: tuple[float, float],
                 accuracy: float):  # fmt: skip
        self.problem, self.condition, self.parameters = problem, condition, parameters
        self.params, self.widths, self.accuracy = dict(params), widths, accuracy
        self.names = (*problem.unknowns, *parameters)
        self.exact, self.tolerance = False, accuracy
        self.unit = 1.0  # of the condition; set from its slopes at the first point

    def at(self, y) -> tuple[np.ndarray, dict[str, float]]:
        params = self.params
        for name, value in zip(self.parameters, map(float, y[-2:]), strict=True):
            params = moved(params, name, value)
        return y[:-2], params

    def residual(self, y) -> np.ndarray:
        x, params = self.at(y)
        value, _ = self.condition(self.problem, x, params, self.accuracy)
        return np.append(self.problem.residual(x, params, self.accuracy), value)

    def jacobian(self, y) -> np.ndarray:
        x, params = self.at(y)
        slopes = [parameter_slope(self.problem, x, params, p, self.accuracy)
                  for p in self.parameters]  # fmt: skip
        state = state_jacobian(self.problem, x, params, self.accuracy)
        last = [self._slope(y, k, size) for k, size in enumerate(self.scale(y))]
        return np.vstack([np.column_stack([state, *slopes]), last])

    def _slope(self, y, k: int, size: float) -> float:
        """Central difference of the condition; one-sided at the edge of the domain."""
        h, level = 2e-3 * size, max(self.accuracy, LOOSE)
        ends = []
        for sign in (1.0, -1.0):
            there = y.copy()
            there[k] += sign * h
            if not self.inside(there):
                there, sign = y, 0.0
            x, params = self.at(there)
            ends.append((sign, self.condition(self.problem, x, params, level)[0]))
        (ahead, high), (behind, low) = ends
        return (high - low) / (h * (ahead - behind)) if ahead != behind else math.nan

    def scale(self, y) -> np.ndarray:
        x, params = self.at(y)
        own = [min(max(abs(v), 0.1 * w), w) for v, w in zip(y[-2:], self.widths, strict=True)]
        return np.concatenate([self.problem.scale(x, params), own])

    def row_scale(self, y) -> np.ndarray:
        return np.append(equation_scale(self.problem, *self.at(y)), self.unit)

    def inside(self, y) -> bool:
        return inside(self.problem, *self.at(y))

    def at_accuracy(self, accuracy: float) -> ConditionEquations:
        """The same equations with expectations of another accuracy."""
        other = copy.copy(self)
        other.accuracy = other.tolerance = accuracy
        return other

    def errors(self, y, jacobian, held: int = -1) -> tuple[float, float]:
        """Of the first parameter (of the second, if the first is held): from noise, and in all."""
        x, params = self.at(y)
        found = self.problem.evaluate(x, params, self.accuracy)
        value, doubt = self.condition(self.problem, x, params, self.accuracy)
        noise = np.append(found.residual_error, doubt)
        try:
            inverse = np.abs(np.linalg.inv(np.delete(jacobian, held, axis=1)))[-1]
        except np.linalg.LinAlgError:
            return math.inf, math.inf
        left = np.abs(np.append(found.residual, value))
        return float(inverse @ noise), float(inverse @ (noise + left))

    def refined(self, point: CurvePoint, accuracy: float, held: int = -1):
        """(y, residual, error of the first parameter) with rules as fine as ``accuracy`` needs.

        ``held`` is the place in y of the parameter that is not moved.
        """
        y, here = point.y, self.at_accuracy(min(accuracy, self.accuracy))
        size = point.scale[len(y) - 3 - held] * accuracy
        free = np.delete(np.arange(len(y)), held)
        for _ in range(8):
            noise, total = here.errors(y, point.jacobian, held)
            if noise > size and here.accuracy > 1.5e-2 * accuracy:
                here = here.at_accuracy(max(0.2 * here.accuracy, 1e-2 * accuracy))
                continue
            if not math.isfinite(total) or total - noise <= 0.3 * max(noise, 0.1 * size):
                break
            step = -np.linalg.solve(point.jacobian[:, free], here.residual(y))
            new = y.copy()
            new[free] += step
            if not here.inside(new) or np.max(np.abs(step) / point.scale[free]) > 0.05:
                break
            y = new
        left = float(np.max(np.abs(here.residual(y)) / here.row_scale(y)))
        return y, left, here.errors(y, point.jacobian)[1]


def condition_curve(
    problem: ProblemLike,
    condition: Condition,
    state: Solution,
    parameters: tuple[str, str],
    span: tuple[float, float],
    *,
    kind: str,
    over: tuple[float, float] | None = None,
    accuracy: float | None = None,
    settings: Settings | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> SingularCurve:
    """Trace the states of one branch on which a condition holds, in two parameters, both ways.

    Parameters
    ----------
    problem : Problem
    condition : callable
        `softening`, or `difference` of two observables.
    state : Solution
        A state on which the condition (nearly) holds.
    parameters : (str, str)
        The one that is solved for, and the one along which is traced.
    span : (low, high)
        Of the second parameter.
    kind : str
        What to call the curve.
    over : (low, high), optional
        Bounds on the first parameter.
    accuracy : float, optional
        Of the expectations, 1e-10, for smooth systems. With proximal points of the first parameter
        in natural units, 1e-5: the curve is traced with cheap rules and its points refined.

    Raises
    ------
    ParameterError
        For an unknown parameter, or a state outside the range.
    SpinodalError
        If the curve cannot be started.
    """
    parameters = first, second = joint(parameters[0]), joint(parameters[1])
    low, high = sorted(map(float, span))
    check_move(problem, state.params, first)
    check_move(problem, state.params, second, (low, high))
    if shared(first, second):
        raise ParameterError(f"{shared(first, second)} is in both {first} and {second}")
    here, value = value_of(state.params, second), value_of(state.params, first)
    if not low <= here <= high:
        raise ParameterError(f"the state is at {second} = {here:g}, outside {span}")
    smooth = differentiable(problem)
    widths = (over[1] - over[0] if over else max(abs(value), 1e-2), high - low)
    rest = without(without(state.params, first), second)
    accuracy = accuracy or (1e-10 if smooth else 1e-5)
    equations = ConditionEquations(problem, condition, parameters, rest, widths,
                                   accuracy if smooth else max(accuracy, LOOSE))  # fmt: skip
    y = np.concatenate([state.x, [value, here]])
    slopes = equations.jacobian(y)[-1] * equations.scale(y)
    equations.unit = max(float(np.max(np.abs(slopes[-2:]))), 1e-300)
    toward = np.zeros(len(y))
    toward[-1] = 1.0
    begin = start(equations, y, toward)
    if isinstance(begin, Status):
        raise SpinodalError(f"the curve cannot be started at {first} = {value:g}, {second} = "
                            f"{here:g}: {begin.message()}")  # fmt: skip
    bounds = {len(y) - 1: (low, high)}
    if over is not None:
        bounds[len(y) - 2] = tuple(sorted(over))
    settings = settings or Settings(
        step=0.05, longest=0.15, angle=0.25, shortest=1e-7 if smooth else 1e-3
    )

    def watch(a, b, length):
        if callback is None:
            return None
        at = float(b.y[-1])
        answer = callback({"stage": "tracing", second: at, "fraction": (at - low) / (high - low)})
        return Status.USER_STOP if answer is not None and not answer else None

    def one_way(point):
        points, end = [point], Status.MAX_STEPS
        for new in trace(equations, point, settings, bounds=bounds, watch=watch):
            if isinstance(new, Status):
                end = new
            else:
                points.append(new)
        return points, end

    up, end_up = one_way(begin)
    down, end_down = one_way(CurvePoint(**{**vars(begin), "tangent": -begin.tangent}))
    points = down[:0:-1] + up
    place = len(y) - 2

    def found(p):
        # on a bound of the first parameter the second one is solved for
        held = place if p.y[place] in bounds.get(place, ()) else place + 1
        return equations.refined(p, accuracy, held - len(y))

    ys, residuals, errors = zip(*map(found, points), strict=True)
    values = np.array(ys)
    return SingularCurve(
        kind, parameters, problem.unknowns, values[:, -2:], values[:, :-2], np.array(residuals),
        [], [end_down, end_up], np.array(errors),
    )  # fmt: skip
