"""A first-order transition traced in a second parameter, to its ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numerics.continuation.coexistence import Coexistence
from numerics.continuation.tracer import CurvePoint, Settings, start, trace
from numerics.continuation.transition import Transition
from numerics.continuation.weights import derivative, limit
from numerics.protocol import check_move
from numerics.solvers import Solution
from numerics.solvers.derivatives import differentiable
from numerics.solvers.solution import _finite, make_solution
from numerics.status import Status
from theory.errors import ParameterError
from theory.joint import Name, check_known, joint, moved, value_of, without

NEAR = 0.02  # states closer than this (natural units) end the line


@dataclass(frozen=True)
class BoundaryPoint:
    """One point of a phase boundary.

    Attributes
    ----------
    values : dict
        Both parameters by name.
    error : float
        Of the first parameter.
    states : dict of str to Solution
    slope : float
        Derivative of the first parameter with respect to the second, by Clapeyron's relation.
    mismatch : float
        Relative difference of that and of the slope of the traced points; NaN where too few are
        near.
    residual : float
        In natural units.
    """

    values: dict[str, float]
    error: float
    states: dict[str, Solution]
    slope: float
    mismatch: float
    residual: float

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.values,
            "error": _finite(self.error),
            "slope": _finite(self.slope),
            "clapeyron_mismatch": _finite(self.mismatch),
            "residual": _finite(self.residual),
            "states": {k: s.to_dict() for k, s in self.states.items()},
        }


@dataclass
class Boundary:
    """A line of first-order transitions.

    Attributes
    ----------
    parameters : (str, str)
        The one that jumps are found in, and the one along which they are traced.
    points : list of BoundaryPoint
        Along the line.
    ends : list of dict
        For the first and the last point: ``reason`` (a Status), ``message`` and, at a critical or
        tricritical end, ``values`` and ``errors`` extrapolated to where the states merge.
    """

    parameters: tuple[str, str]
    points: list[BoundaryPoint] = field(default_factory=list)
    ends: list[dict[str, Any]] = field(default_factory=list)
    params: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, name: str) -> np.ndarray:
        """A parameter along the line."""
        return np.array([p.values[name] for p in self.points])

    @property
    def errors(self) -> np.ndarray:
        return np.array([p.error for p in self.points])

    def to_dict(self) -> dict[str, Any]:
        ends = [{**e, "reason": e["reason"].name.lower()} for e in self.ends]
        return {
            "parameters": list(self.parameters),
            "fixed": self.params,
            "points": [p.to_dict() for p in self.points],
            "end_reason": [e["reason"] for e in ends],
            "ends": ends,
        }

    def plot(self, path) -> None:
        """Draw the line in the plane of both parameters."""
        from pathlib import Path

        from numerics.plotting import plot_boundary

        plot_boundary(self, Path(path))


def phase_boundary(
    transition: Transition,
    parameter: Name,
    span: tuple[float, float],
    *,
    over: tuple[float, float] | None = None,
    accuracy: float | None = None,
    settings: Settings | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> Boundary:
    """Trace a first-order transition in a second parameter, both ways.

    Parameters
    ----------
    transition : Transition
        From `crossing` (it knows its problems and states).
    parameter : str, or several of them
        The second parameter; several, as in ``"A11,A22"``, move together.
    span : (low, high)
        Of the second parameter.
    over : (low, high), optional
        Bounds on the first parameter.
    accuracy : float, optional
        Of the expectations: 1e-12 for smooth systems, else 1e-5.
    callback : callable, optional
        As in `follow`.

    Returns
    -------
    Boundary
        Each end has a reason: a bound, a critical or tricritical end, the loss of a branch.
    """
    if transition.status is not Status.CONVERGED or len(transition.problems) != 2:
        raise ParameterError("a boundary starts from a converged transition of two branches; this "
                             f"one is: {transition.message}")  # fmt: skip
    parameter = joint(parameter)
    check_known(parameter, transition.params, "the transition", "its others are")
    low, high = sorted(map(float, span))
    everything = moved(transition.params, transition.parameter, transition.value)
    for problem in transition.problems:
        check_move(problem, everything, parameter, (low, high))
    here = value_of(transition.params, parameter)
    if not low <= here <= high:
        raise ParameterError(f"the transition is at {parameter} = {here:g}, outside {span}; find "
                             "one inside first")  # fmt: skip
    run = _Run(transition, parameter, (low, high), over, accuracy, settings, callback)
    return run.trace()


class _Run:
    def __init__(self, transition, parameter, span, over, accuracy, settings, callback):
        self.first, self.second = transition.parameter, parameter
        states = list(transition.states.values())
        self.names = list(transition.states)
        self.params = without(transition.params, parameter)
        smooth = all(map(differentiable, transition.problems))
        reach = max(abs(transition.value), 1e-3)
        widths = (over[1] - over[0] if over else reach, span[1] - span[0])
        self.equations = Coexistence(
            transition.problems, (self.first, self.second), self.params, widths,
            accuracy or (1e-12 if smooth else 1e-5),
        )  # fmt: skip
        self.y = np.concatenate([
            *(s.x for s in states), [transition.value, value_of(transition.params, parameter)]
        ])  # fmt: skip
        self.bounds = {len(self.y) - 1: span}
        if over is not None:
            self.bounds[len(self.y) - 2] = tuple(sorted(over))
        self.span, self.callback = span, callback
        # steps below the noise of the quadrature lead nowhere
        self.settings = settings or Settings(
            step=0.02, longest=0.1, angle=0.2, shortest=1e-7 if smooth else 1e-3
        )

    def trace(self) -> Boundary:
        toward = np.zeros(len(self.y))
        toward[-1] = 1.0
        first = start(self.equations, self.y, toward)
        line = Boundary((self.first, self.second), params=self.params)
        if isinstance(first, Status):
            line.ends = [{"reason": first, "message": first.message()}] * 2
            return line
        up, end_up = self._one_way(first)
        turned = CurvePoint(**{**vars(first), "tangent": -first.tangent})
        down, end_down = self._one_way(turned)
        points = down[:0:-1] + up
        line.points = self._points(points)
        line.ends = [end_down, end_up]
        return line

    def _one_way(self, first: CurvePoint):
        points, stop = [first], None

        def watch(here, new, length):
            apart = min(self.equations.apart(here.y), self.equations.apart(new.y))
            if length > 0.3 * apart:
                return "refine"  # keep away from the trivial solution a = b
            if self._tell(new):
                return Status.USER_STOP
            if apart < NEAR:
                return Status.CRITICAL_END
            if self._orientations(here) != self._orientations(new):
                # a state passed its spinodal: what follows is another sheet
                return "refine" if length > 1e-4 else Status.SPINODAL_END
            return None

        for new in trace(self.equations, first, self.settings, bounds=self.bounds, watch=watch):
            if isinstance(new, Status):
                stop = new
            else:
                points.append(new)
        assert stop is not None
        if stop is Status.SPINODAL_END:
            points.pop()
        return points, self._end(points, stop)

    def _tell(self, point: CurvePoint) -> bool:
        if self.callback is None:
            return False
        low, high = self.span
        answer = self.callback({
            "stage": "tracing", self.first: float(point.y[-2]), self.second: float(point.y[-1]),
            "fraction": (float(point.y[-1]) - low) / (high - low),
        })  # fmt: skip
        return answer is not None and not answer

    # --- ends ---------------------------------------------------------------------------------

    def _end(self, points: list[CurvePoint], stop: Status) -> dict[str, Any]:
        last = points[-1]
        at = {self.first: float(last.y[-2]), self.second: float(last.y[-1])}
        apart = [self.equations.apart(p.y) for p in points]
        # the noise of the quadrature stops a line before its end; that it closes still shows
        merging = apart[-1] < (3 * NEAR if self.equations.exact else 0.2 * max(apart))
        if stop is Status.CRITICAL_END or (merging and stop is Status.STEP_TOO_SMALL):
            values, errors = self._merged(points)
            reason = self._kind(last)
            return {"reason": reason, "message": reason.message(), "values": values,
                    "errors": errors}  # fmt: skip
        if stop is Status.SPINODAL_END:
            doubt = dict(zip(at, map(float, 1e-4 * last.scale[-2:]), strict=True))
            return {"reason": stop, "message": stop.message(), "values": at, "errors": doubt}
        if stop in (Status.STEP_TOO_SMALL, Status.LEFT_DOMAIN):
            stop = Status.SPINODAL_END if self._singular(last) else Status.BRANCH_LOST
        return {"reason": stop, "message": stop.message(), "values": at,
                "errors": {self.first: math.nan, self.second: math.nan}}  # fmt: skip

    def _kind(self, point: CurvePoint) -> Status:
        """Tricritical if one of the two states is its own mirror image, and the other is not."""
        states, _ = self.equations.split(point.y)
        own = []
        for problem, x in zip(self.equations.problems, states, strict=True):
            image = problem.canonical(-x)
            symmetric = bool(np.array_equal(image, problem.canonical(x)))
            own.append(symmetric and float(np.max(np.abs(x))) < 1e-3 * NEAR)
        fixed = own[0] != own[1] or self._narrower()
        return Status.TRICRITICAL_END if fixed else Status.CRITICAL_END

    def _narrower(self) -> bool:
        """Whether one state's order parameters vanish by symmetry on the other's branch."""
        a, b = (set(p.unknowns) for p in self.equations.problems)
        return a < b or b < a

    def _merged(self, points: list[CurvePoint]):
        """Both parameters where the states merge: polynomials in their squared distance."""
        distances = np.array([self.equations.apart(p.y) for p in points])
        values, errors = {}, {}
        doubt = np.array([self._doubt(p) / p.scale[-2] for p in points])
        # what is left of the residual moves soft states, and so their distance
        blur = np.array([self._blur(p) for p in points])
        for place, name in ((-2, self.first), (-1, self.second)):
            column = np.array([p.y[place] for p in points])
            noise = doubt * np.array([p.scale[place] for p in points])
            noise = noise + blur * np.abs(np.gradient(column, distances))
            values[name], errors[name] = limit(distances, column, noise)
        return values, errors

    def _singular(self, point: CurvePoint) -> bool:
        """Whether one of the two states is about to disappear in a fold."""
        return self._softest(point) < 1e-2

    def _orientations(self, point: CurvePoint) -> tuple[float, float]:
        """Signs of the determinants of both states' Jacobians."""
        n, m = self.equations.sizes
        matrix = point.scaled_jacobian
        blocks = (matrix[:n, :n], matrix[n : n + m, n : n + m])
        return tuple(float(np.linalg.slogdet(b)[0]) for b in blocks)

    def _blur(self, point: CurvePoint) -> float:
        """Error of the distance between the states, in natural units."""
        n, m = self.equations.sizes
        total = 0.0
        for evaluation, rows in zip(
            self.equations.both(point.y), (slice(0, n), slice(n, n + m)), strict=True
        ):
            inverse = np.linalg.pinv(point.jacobian[rows, rows])
            off = np.abs(inverse) @ (np.abs(evaluation.residual) + evaluation.residual_error)
            off += np.abs(inverse @ point.jacobian[rows, n + m]) * self._doubt(point)
            total += float(np.max(off / point.scale[rows]))
        return total

    def _softest(self, point: CurvePoint) -> float:
        """Smallest singular value of the Jacobians of both states, in natural units."""
        n, m = self.equations.sizes
        matrix = point.scaled_jacobian
        blocks = (matrix[:n, :n], matrix[n : n + m, n : n + m])
        return max(min(float(np.linalg.svd(b)[1][-1]) for b in blocks), 1e-300)

    # --- points -------------------------------------------------------------------------------

    def _points(self, points: list[CurvePoint]) -> list[BoundaryPoint]:
        slopes = [self._clapeyron(p) for p in points]
        lengths = np.cumsum([0.0] + [
            float(np.linalg.norm((b.y - a.y) / a.scale)) for a, b in itertools.pairwise(points)
        ])  # fmt: skip
        found = []
        for k, point in enumerate(points):
            mismatch = self._mismatch(points, lengths, k, slopes[k])
            found.append(self._point(point, slopes[k], mismatch))
        return found

    def _clapeyron(self, point: CurvePoint) -> float:
        first, second = self.equations.slopes(point.y)
        return -second / first if first else math.inf

    def _mismatch(self, points, lengths, k: int, slope: float) -> float:
        low = max(0, min(k - 3, len(points) - 7))
        near = slice(low, low + 7)
        if len(points) < 5 or not math.isfinite(slope):
            return math.nan
        s = lengths[near] - lengths[k]
        ds = [derivative(s, np.array([p.y[place] for p in points[near]])) for place in (-2, -1)]
        # both as directions, so that neither a vertical nor a horizontal line divides by zero
        scale = points[k].scale[-2:]
        traced = np.array(ds) / scale
        stated = np.array([slope, 1.0]) / scale
        traced, stated = traced / np.linalg.norm(traced), stated / np.linalg.norm(stated)
        return float(abs(traced[0] * stated[1] - traced[1] * stated[0]))

    def _doubt(self, point: CurvePoint) -> float:
        """Error of the first parameter from those of the energies, and from their difference."""
        a, b = self.equations.both(point.y)
        first, _ = self.equations.slopes(point.y)
        energies = a.energy_error + b.energy_error + abs(a.energy - b.energy)
        return energies / max(abs(first), 1e-300) + 1e-15 * abs(float(point.y[-2]))

    def _point(self, point: CurvePoint, slope: float, mismatch: float) -> BoundaryPoint:
        states, params = self.equations.split(point.y)
        n, m = self.equations.sizes
        pair = self.equations.both(point.y)
        solutions = {}
        for name, problem, x, evaluation, rows in zip(
            self.names, self.equations.problems, states, pair, (slice(0, n), slice(n, n + m)),
            strict=True,
        ):  # fmt: skip
            accuracy = self.equations.accuracy
            solutions[name] = make_solution(
                problem, x, params, evaluation, point.jacobian[rows, rows], Status.CONVERGED,
                point.steps, max(self.equations.tolerance, 1e-10), accuracy,
                {"accuracy": accuracy, "method": "continuation"}, refined=False,
            )  # fmt: skip
        error = self._doubt(point) + sum(
            s.energy_error - e.energy_error for s, e in zip(solutions.values(), pair, strict=True)
        ) / max(abs(self.equations.slopes(point.y)[0]), 1e-300)
        values = {self.first: float(point.y[-2]), self.second: float(point.y[-1])}
        return BoundaryPoint(values, error, solutions, slope, mismatch, point.residual)
