"""Folds and branch points traced in two parameters, with the special points on them.

A fold curve carries (state, right null vector, both parameters), a curve of branch points (state,
left null vector, unfolding, both parameters); see `numerics.continuation.polish` for the equations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numerics.continuation.conditions import condition_curve, difference, softening
from numerics.continuation.event import Event
from numerics.continuation.singular import SingularCurve, SpecialPoint
from numerics.continuation.tracer import CurvePoint, Settings, correct, make_point, start, trace
from numerics.continuation.transition import Transition
from numerics.continuation.weights import limit
from numerics.mirror import faded, turned
from numerics.protocol import ProblemLike, check_move
from numerics.solvers.derivatives import differentiable, parameter_slope, state_jacobian
from numerics.status import Status
from theory.errors import ParameterError, SpinodalError
from theory.joint import check_known, joint, moved, value_of, without

UNFOLDED = 1e-8  # a larger unfolding parameter means that branches pass without touching
NEAR = 0.02  # an order parameter below this (natural units) is about to vanish


class _Singular:
    """Equations of a curve of singular points."""

    exact = True
    tolerance = 1e-11

    def __init__(self, problem: ProblemLike, parameters, params, widths, accuracy: float):
        self.problem, self.parameters, self.params = problem, parameters, dict(params)
        self.widths, self.accuracy, self.n = widths, accuracy, len(problem.unknowns)

    def point(self, y) -> tuple[np.ndarray, dict[str, float]]:
        params = self.params
        for name, value in zip(self.parameters, map(float, y[-2:]), strict=True):
            params = moved(params, name, value)
        return y[: self.n], params

    def inside(self, y) -> bool:
        x, params = self.point(y)
        try:
            self.problem.values(params)
            return self.problem.in_domain(x, params)
        except SpinodalError:
            return False

    def matrices(self, x, params, sizes):
        """Scaled Jacobian in the state, and scaled slope in the first parameter."""
        own = sizes[: self.n]
        matrix = state_jacobian(self.problem, x, params, self.accuracy) * own / own[:, None]
        slope = parameter_slope(self.problem, x, params, self.parameters[0], self.accuracy)
        return matrix, slope * self.widths[0] / own

    def scale(self, y) -> np.ndarray:
        x, params = self.point(y)
        own = [min(max(abs(v), 0.1 * w), w) for v, w in zip(y[-2:], self.widths, strict=True)]
        rest = np.ones(len(y) - self.n - 2)
        return np.concatenate([self.problem.scale(x, params), rest, own])

    def row_scale(self, y) -> np.ndarray:
        return np.ones(len(y) - 1)

    def residual(self, y) -> np.ndarray:
        raise NotImplementedError

    def jacobian(self, y) -> np.ndarray:
        """Differences of the residual, which holds exact first derivatives."""
        columns, scale = [], self.scale(y)
        for j, size in enumerate(scale):
            h = 6e-6 * size
            ahead, behind = y.copy(), y.copy()
            ahead[j] += h
            behind[j] -= h
            columns.append((self.residual(ahead) - self.residual(behind)) / (2 * h))
        return np.column_stack(columns)

    def special(self, y) -> float:
        raise NotImplementedError

    def unfolded(self, y) -> bool:
        """Whether the curve has gone on where there is no singular point of its kind."""
        return False


class _Folds(_Singular):
    kind, special_kind = "fold", "cusp"

    def residual(self, y) -> np.ndarray:
        x, params = self.point(y)
        v, own = y[self.n : 2 * self.n], self.problem.scale(x, params)
        matrix, _ = self.matrices(x, params, own)
        flow = self.problem.residual(x, params, self.accuracy) / own
        return np.concatenate([flow, matrix @ v, [v @ v - 1.0]])

    def begin(self, x, params) -> np.ndarray:
        matrix, _ = self.matrices(x, params, self.problem.scale(x, params))
        return np.linalg.svd(matrix)[2][-1]

    def special(self, y) -> float:
        """Quadratic coefficient: zero at a cusp."""
        x, params = self.point(y)
        own = self.problem.scale(x, params)
        w = np.linalg.svd(self.matrices(x, params, own)[0])[0][:, -1]
        v = y[self.n : 2 * self.n]
        w = w if w @ v >= 0 else -w
        return float(w @ _second(self, x, params, v, v, own))


class _BranchPoints(_Singular):
    kind, special_kind = "branch point", "tricritical"

    def residual(self, y) -> np.ndarray:
        x, params = self.point(y)
        w, b = y[self.n : 2 * self.n], y[2 * self.n]
        own = self.problem.scale(x, params)
        matrix, slope = self.matrices(x, params, own)
        flow = self.problem.residual(x, params, self.accuracy) / own
        return np.concatenate([flow + b * w, matrix.T @ w, [w @ slope], [w @ w - 1.0]])

    def begin(self, x, params) -> np.ndarray:
        matrix, _ = self.matrices(x, params, self.problem.scale(x, params))
        return np.append(np.linalg.svd(matrix)[0][:, -1], 0.0)

    def unfolded(self, y) -> bool:
        return abs(float(y[2 * self.n])) > UNFOLDED

    def special(self, y) -> float:
        """Cubic coefficient of the bifurcation equation: zero at a tricritical point."""
        x, params = self.point(y)
        own = self.problem.scale(x, params)
        matrix, _ = self.matrices(x, params, own)
        left, _, right = np.linalg.svd(matrix)
        w, v = left[:, -1], right[-1]
        w = w if w @ v >= 0 else -w
        square = _second(self, x, params, v, v, own)
        bordered = np.block([[matrix, w[:, None]], [v[None, :], np.zeros((1, 1))]])
        bend = -np.linalg.solve(bordered, np.append(square, 0.0))[:-1]
        h, weights = 4e-3, {-2: -1.0, -1: 16.0, 0: -30.0, 1: 16.0, 2: -1.0}
        third = sum(
            c * self.matrices(x + k * h * own * v, params, own)[0] for k, c in weights.items()
        ) @ v / (12 * h**2)  # fmt: skip
        return float(w @ (third + 3 * _second(self, x, params, v, bend, own)))


def _second(equations: _Singular, x, params, v, u, own) -> np.ndarray:
    """Second derivative of the scaled residual along u and v."""
    size = max(float(np.linalg.norm(u)), 1e-300)
    h = 1e-4
    step = h * own * u / size
    change = (equations.matrices(x + step, params, own)[0]
              - equations.matrices(x - step, params, own)[0])  # fmt: skip
    return change @ v / (2 * h) * size


def fold_curve(
    event: Event,
    parameter: str,
    span: tuple[float, float],
    *,
    problem: ProblemLike,
    over: tuple[float, float] | None = None,
    settings: Settings | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> SingularCurve:
    """Trace a fold (spinodal) in a second parameter, both ways; cusps on it are located.

    Parameters
    ----------
    event : Event
        Of kind "fold".
    parameter, span : str, (low, high)
        The second parameter.
    problem : Problem
        The one that the event was found on (`Branch.problem`); smooth.
    over : (low, high), optional
        Bounds on the first parameter.

    Raises
    ------
    ParameterError
        For another kind of event, an unknown parameter or a system that is not smooth.
    """  # fmt: skip
    if event.kind != "fold":
        raise ParameterError(f"a fold curve starts from a fold, not from a {event.kind}")
    return _curve(_Folds, event, parameter, span, problem, over, settings, callback)


def branch_point_curve(
    event: Event,
    parameter: str,
    span: tuple[float, float],
    *,
    problem: ProblemLike,
    over: tuple[float, float] | None = None,
    settings: Settings | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> SingularCurve:
    """Trace a branch point in a second parameter; tricritical points on it are located.

    Parameters and errors are those of `fold_curve`. A branch point that leaves the problem's own
    unknowns (a transverse one) is traced for systems with proximal points as well.
    """  # fmt: skip
    if event.transverse and event.kind == "pitchfork" and hasattr(problem, "transverse"):
        return condition_curve(
            problem, softening, event.state, (event.parameter, parameter), span, kind=event.kind,
            over=over, settings=settings, callback=callback,
        )  # fmt: skip
    if event.kind not in ("pitchfork", "transcritical", "branch point") or event.transverse:
        raise ParameterError(
            f"a curve of branch points starts from one (of the problem's own unknowns), not from "
            f"a {'transverse ' if event.transverse else ''}{event.kind}"
        )
    return _curve(_BranchPoints, event, parameter, span, problem, over, settings, callback)


def _curve(kind, event, parameter, span, problem, over, settings, callback) -> SingularCurve:
    parameter = joint(parameter)
    check_known(parameter, event.params, "the event", "its others are")
    if not differentiable(problem):
        raise ParameterError(f"{problem.name}: derivatives are known to quadrature accuracy only; "
                             "curves of singular points need a smooth system")  # fmt: skip
    low, high = sorted(map(float, span))
    here = value_of(event.params, parameter)
    if not low <= here <= high:
        raise ParameterError(f"the event is at {parameter} = {here:g}, outside {span}")
    names = (event.parameter, parameter)
    params = without(event.params, parameter)
    widths = (over[1] - over[0] if over else max(abs(event.value), 1e-2), high - low)
    equations = kind(problem, names, params, widths, 1e-12)
    own = np.asarray(event.state.x, dtype=float)
    everything = moved(moved(params, event.parameter, event.value), parameter, here)
    check_move(problem, everything, parameter, (low, high))
    y = np.concatenate([own, equations.begin(own, everything), [event.value, here]])
    toward = np.zeros(len(y))
    toward[-1] = 1.0
    first = start(equations, y, toward)
    if isinstance(first, Status):
        raise SpinodalError(f"the curve cannot be started from {event}: {first.message()}")
    bounds = {len(y) - 1: (low, high)}
    if over is not None:
        bounds[len(y) - 2] = tuple(sorted(over))
    settings = settings or Settings(step=0.02, longest=0.1, angle=0.2)
    special: list[SpecialPoint] = []

    def one_way(point):
        points, end = [point], Status.MAX_STEPS

        def watch(a, b, length):
            flipped = _merged(equations, a, b)
            if flipped is not None:
                # onto the mirror image, through the symmetric state; where other curves pass too
                return "refine" if abs(a.y[flipped]) > NEAR else Status.TRICRITICAL_END
            if equations.unfolded(b.y):
                return Status.UNFOLDED
            if equations.special(a.y) * equations.special(b.y) < 0:
                found = _locate(equations, a, b, equations.special, equations.special_kind)
                special.extend([found] if found is not None else [])
            if callback is not None:
                value = float(b.y[-1])
                answer = callback({"stage": "tracing", parameter: value,
                                   "fraction": (value - low) / (high - low)})  # fmt: skip
                if answer is not None and not answer:
                    return Status.USER_STOP
            return None

        for new in trace(equations, point, settings, bounds=bounds, watch=watch):
            if isinstance(new, Status):
                end = new
            else:
                points.append(new)
        if end is Status.UNFOLDED:
            points.pop()
        if end is Status.TRICRITICAL_END:
            beyond = points.pop()
            special.append(_merging(equations, points, beyond))
        return points, end

    up, end_up = one_way(first)
    if end_up is Status.CLOSED_LOOP:
        down, end_down = [first], end_up
    else:
        down, end_down = one_way(CurvePoint(**{**vars(first), "tangent": -first.tangent}))
    points = down[:0:-1] + up
    return SingularCurve(
        equations.kind, names, problem.unknowns,
        np.array([p.y[-2:] for p in points]), np.array([p.y[: equations.n] for p in points]),
        np.array([p.residual for p in points]), special, [end_down, end_up],
    )  # fmt: skip


def _merged(equations, a: CurvePoint, b: CurvePoint) -> int | None:
    """The unknown in which the state at a becomes, or passes to, its mirror image before b."""
    n, problem = equations.n, equations.problem
    x, new = a.y[:n], b.y[:n]
    flipped = turned(problem, x, new)
    if flipped is None and equations.kind == "fold":
        flipped = faded(problem, x, new, a.scale[:n])
    return flipped


def _merging(equations, points: list[CurvePoint], beyond: CurvePoint) -> SpecialPoint:
    """Limit of the curve as the state becomes its own mirror image."""
    k = _merged(equations, points[-1], beyond)
    assert k is not None
    distances = np.array([abs(p.y[k]) for p in points])
    values, errors, state = {}, {}, {}
    for place, name in ((-2, equations.parameters[0]), (-1, equations.parameters[1])):
        noise = np.array([1e-11 * p.scale[place] for p in points])
        column = np.array([p.y[place] for p in points])
        values[name], errors[name] = limit(distances, column, noise)
    for j, name in enumerate(equations.problem.unknowns):
        even = limit(distances, np.array([p.y[j] for p in points]), np.zeros(len(points)))[0]
        state[name] = 0.0 if j == k else even
    return SpecialPoint("tricritical", values, errors, state)


def _locate(equations, a: CurvePoint, b: CurvePoint, function, kind: str) -> SpecialPoint | None:
    """Zero of a function on the corrected segment."""
    chord = (b.y - a.y) / a.scale
    length = float(np.linalg.norm(chord))

    def at(place):
        if place in (0.0, 1.0):
            return a if place == 0.0 else b
        guess = a.y + place * (b.y - a.y)
        found = correct(equations, guess, chord / length, max_steps=20)
        if found.status is not Status.CONVERGED:
            raise FloatingPointError
        return make_point(equations, found, a.tangent)

    from scipy.optimize import brentq  # slow to import

    try:
        place = brentq(lambda s: function(at(s).y), 0.0, 1.0, xtol=1e-13, rtol=1e-14)
        point = at(place)
        near = [at(min(max(place + s, 0.0), 1.0)) for s in (1e-4, -1e-4)]
    except (FloatingPointError, ValueError):
        return None
    # differences leave an error in the special function; its slope turns that into one of place
    values = [function(p.y) for p in near]
    pace = abs(values[0] - values[1]) / 2e-4
    doubt = 1e-7 * max(abs(function(a.y)), abs(function(b.y))) / max(pace, 1e-300)
    doubt = max(doubt, 1e-12)
    names, errors = {}, {}
    for place_, name in ((-2, equations.parameters[0]), (-1, equations.parameters[1])):
        names[name] = float(point.y[place_])
        slope = abs(near[0].y[place_] - near[1].y[place_]) / 2e-4
        bend = abs(near[0].y[place_] + near[1].y[place_] - 2 * point.y[place_]) / 1e-8
        errors[name] = slope * doubt + bend * doubt**2 + 1e-14 * max(abs(names[name]), 1e-2)
    if not all(map(math.isfinite, names.values())):
        return None
    state = dict(zip(equations.problem.unknowns, map(float, point.y[: equations.n]), strict=True))
    return SpecialPoint(kind, names, errors, state)


def observable_curve(
    found: Transition,
    parameter: str,
    span: tuple[float, float],
    *,
    observables: tuple[str, str],
    problem: ProblemLike,
    over: tuple[float, float] | None = None,
    settings: Settings | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> SingularCurve:
    """Trace where two observables are equal on a branch, in a second parameter.

    Parameters
    ----------
    found : Transition
        From `root` with `difference_of` the same two observables.
    parameter, span : str, (low, high)
        The second parameter.
    observables : (str, str)
    problem : Problem
        The branch's.
    over : (low, high), optional
        Bounds on the first parameter.

    Raises
    ------
    ParameterError
        If nothing was found to start from, or for an unknown name.
    """
    if found.kind != "observable" or not found.status.success:
        raise ParameterError(f"a curve of equal observables starts where they are equal: "
                             f"{found.message}")  # fmt: skip
    unknown = [o for o in observables if o not in getattr(problem, "observables", ())]
    if unknown:
        raise ParameterError(f"{problem.name} has no observable {unknown[0]!r}; it has: "
                             f"{', '.join(getattr(problem, 'observables', ()))}")  # fmt: skip
    return condition_curve(
        problem, difference(*observables), next(iter(found.states.values())),
        (found.parameter, parameter), span, kind=" = ".join(observables), over=over,
        settings=settings, callback=callback,
    )  # fmt: skip
