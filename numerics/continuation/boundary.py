"""A first-order transition traced in a second parameter, to its ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numerics.continuation.bicritical import bicritical
from numerics.continuation.coexistence import Coexistence
from numerics.continuation.coexisting import (
    BoundaryPoint,
    Coexisting,
    boundary_points,
    refined,
)
from numerics.continuation.tracer import CurvePoint, Settings, start, trace
from numerics.continuation.transition import Transition
from numerics.continuation.weights import limit
from numerics.protocol import check_move
from numerics.solvers.derivatives import LOOSE, differentiable
from numerics.status import Status
from theory.errors import ParameterError
from theory.joint import Name, check_known, joint, moved, value_of, without

NEAR = 0.02  # states closer than this (natural units) end the line
BLURRED = (0.2, 1.0)  # share of their distance that is noise, with cheap rules and with fine ones
FINAL = (Status.REACHED_BOUND, Status.USER_STOP, Status.CLOSED_LOOP, Status.MAX_STEPS)


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
        Of the first parameter in natural units (relative, where it is large), 1e-5 by default: the
        line is traced with cheap rules and every point refined until its error is as small, at most
        by rules a hundred times finer. For smooth systems of the expectations, 1e-12.
    callback : callable, optional
        As in `follow`.

    Returns
    -------
    Boundary
        Each end has a reason: a bound, a critical or tricritical end, the loss of a branch.
    """
    if not isinstance(transition, Transition):
        raise ParameterError("a boundary starts from a Transition, of crossing or find_transition, "
                             f"not from {type(transition).__name__}")  # fmt: skip
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
        exact = all(map(differentiable, transition.problems))
        reach = max(abs(transition.value), 1e-3)
        widths = (over[1] - over[0] if over else reach, span[1] - span[0])
        self.accuracy = accuracy or (1e-12 if exact else 1e-5)
        self.equations = Coexistence(
            transition.problems, (self.first, self.second), self.params, widths, self.accuracy
        )
        self.y = np.concatenate([
            *(s.x for s in states), [transition.value, value_of(transition.params, parameter)]
        ])  # fmt: skip
        self.bounds = {len(self.y) - 1: span}
        if over is not None:
            self.bounds[len(self.y) - 2] = tuple(sorted(over))
        self.span, self.callback = span, callback
        # steps below the noise of the quadrature lead nowhere
        self.settings = settings or (
            Settings(step=0.02, longest=0.1, angle=0.2) if exact
            else Settings(step=0.05, longest=0.2, angle=0.3, shortest=1e-3)
        )  # fmt: skip

    def trace(self) -> Boundary:
        line = Boundary((self.first, self.second), params=self.params)
        exact = self.equations.exact
        coarse = self.equations if exact else self.equations.at(max(self.accuracy, LOOSE))
        sides = []
        for sign in (1.0, -1.0):
            y, toward = self.y, sign * np.eye(len(self.y))[-1]
            points, stop = self._stage(coarse, y, toward, BLURRED[0])
            here = [refined(coarse, p, self.accuracy, self._held(p)) for p in points]
            if stop not in FINAL and not exact:
                # what stopped it may be the noise of cheap rules
                if points:
                    y, toward = points[-1].y, points[-1].tangent
                points, stop = self._stage(self.equations, y, toward, BLURRED[1])
                here += [refined(self.equations, p, self.accuracy, self._held(p))
                         for p in points[bool(here) :]]  # fmt: skip
            sides.append((here, stop))
        (up, end_up), (down, end_down) = sides
        if not up:
            line.ends = [{"reason": end_up, "message": end_up.message()}] * 2
            return line
        line.points = boundary_points(down[:0:-1] + up, self.names)
        line.ends = [self._end(down or up, end_down), self._end(up, end_up)]
        return line

    def _stage(self, equations, y, toward, blurred: float) -> tuple[list[CurvePoint], Status]:
        """Points from ``y`` on, and why they end; states too near to be told apart end them."""
        first = start(equations, y, toward)
        if isinstance(first, Status):
            return [], first
        points, stop = [first], Status.MAX_STEPS

        def orientations(point):
            return [float(np.linalg.slogdet(b)[0])
                    for b in Coexisting(equations, point.y, point).blocks]  # fmt: skip

        def watch(here, new, length):
            apart = min(equations.apart(here.y), equations.apart(new.y))
            if length > 0.3 * apart:
                return "refine"  # keep away from the trivial solution a = b
            if self._tell(new):
                return Status.USER_STOP
            if apart < NEAR or not Coexisting(equations, new.y, new).blur < blurred * apart:
                return Status.CRITICAL_END
            if orientations(here) != orientations(new):
                # a state passed its spinodal: what follows is another sheet
                return "refine" if length > 1e-4 else Status.SPINODAL_END
            return None

        for new in trace(equations, first, self.settings, bounds=self.bounds, watch=watch):
            if isinstance(new, Status):
                stop = new
            else:
                points.append(new)
        if stop is Status.SPINODAL_END:
            points.pop()
        return points, stop

    def _held(self, point: CurvePoint) -> int:
        """The parameter that a point is found at: the second, but the first on its own bounds."""
        first = len(point.y) - 2
        return first if point.y[first] in self.bounds.get(first, ()) else first + 1

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

    def _end(self, points: list[Coexisting], stop: Status) -> dict[str, Any]:
        last = points[-1]
        at = dict(zip((self.first, self.second), last.values, strict=True))
        # the noise of the quadrature stops a line before its end; that it closes still shows
        widest = max(p.apart for p in points)
        merging = last.apart < (3 * NEAR if self.equations.exact else 0.2 * widest)
        if stop is Status.CRITICAL_END or (merging and stop is Status.STEP_TOO_SMALL):
            a, b = self.equations.problems
            (x, _), params = self.equations.split(last.y)
            born = bicritical(
                a, b, dict(zip(a.unknowns, x, strict=True)), params, (self.first, self.second),
                last.point.scale[-2:], 0.1 * self.accuracy,
            )  # fmt: skip
            reason = Status.BICRITICAL_END if born is not None else self._kind(last)
            values, errors = born or self._merged(points)
            return {"reason": reason, "message": reason.message(), "values": values,
                    "errors": errors}  # fmt: skip
        if stop is Status.SPINODAL_END:
            doubt = dict(zip(at, map(float, 1e-4 * last.point.scale[-2:]), strict=True))
            return {"reason": stop, "message": stop.message(), "values": at, "errors": doubt}
        if stop in (Status.STEP_TOO_SMALL, Status.LEFT_DOMAIN):
            stop = Status.SPINODAL_END if last.softest < 1e-2 else Status.BRANCH_LOST
        return {"reason": stop, "message": stop.message(), "values": at,
                "errors": {self.first: math.nan, self.second: math.nan}}  # fmt: skip

    def _kind(self, last: Coexisting) -> Status:
        """Tricritical if one of the two states is its own mirror image, and the other is not."""
        states, _ = self.equations.split(last.y)
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

    def _merged(self, points: list[Coexisting]):
        """Both parameters where the states merge: polynomials in their squared distance."""
        distances = np.array([p.apart for p in points])
        values, errors = {}, {}
        doubt = np.array([p.doubt / p.size for p in points])
        # what is left of the residual moves soft states, and so their distance
        blur = np.array([p.blur for p in points])
        for place, name in enumerate((self.first, self.second)):
            column = np.array([p.values[place] for p in points])
            noise = doubt * np.array([p.point.scale[-2 + place] for p in points])
            noise = noise + blur * np.abs(np.gradient(column, distances))
            values[name], errors[name] = limit(distances, column, noise)
        return values, errors
