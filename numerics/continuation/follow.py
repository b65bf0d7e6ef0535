"""Following one branch: pseudo-arclength continuation with events and stability."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numerics.continuation.branch import Branch
from numerics.continuation.equations import BranchEquations
from numerics.continuation.event import Event
from numerics.continuation.probe import UserFunction
from numerics.continuation.tracer import (
    Corrected,
    CurvePoint,
    Settings,
    advance,
    make_point,
    start,
    trace,
)
from numerics.continuation.watch import BRANCHING, Jumped, Watcher
from numerics.mirror import turned
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, as_state, belongs, solve
from numerics.solvers.derivatives import differentiable
from numerics.status import Status
from theory.errors import ParameterError
from theory.joint import Name, check_known, joint, moved, separate, shared, value_of


def follow(
    problem: ProblemLike,
    start: Solution | Mapping[str, float] | Any = None,
    parameter: Name = "alpha",
    span: tuple[float, float] = (0.3, 10.0),
    *,
    params: Mapping[str, float] | None = None,
    both: bool = False,
    accuracy: float | None = None,
    settings: Settings | None = None,
    functions: Mapping[str, UserFunction] | None = None,
    stability: bool = True,
    callback: Callable[[dict], Any] | None = None,
    **fixed: float,
) -> Branch:
    """Follow a solution as one parameter varies, through folds.

    Parameters
    ----------
    problem : Problem or PlainProblem
    start : Solution, mapping or array, optional
        State to start from; by default the problem's own starting points are tried. It is corrected
        first, at the parameter value it carries (else the one in ``params``, else ``span[0]``).
    parameter : str, or several of them
        Several, as in ``"A11,A22"`` or ``("A11", "A22")``, move together and keep one value.
    span : (from, to)
        The run starts in the direction from the first to the second, and ends on either.
    params, **fixed
        Values of the other parameters (as a mapping, or by name); those of ``start`` or defaults
        where not given.
    both : bool
        Follow in the other direction too.
    accuracy : float, optional
        Of the expectations: 1e-10 for smooth systems, else 1e-5 by default.
    settings : Settings, optional
    functions : mapping of str to callable
        ``f(state, params)`` whose zeros are reported as events of kind "user".
    stability : bool
        Compute growth rates in the full system at each point.
    callback : callable, optional
        Gets a dict at each point; returning something false, other than None, stops the run.

    Returns
    -------
    Branch
        ``status`` says why it ended. The same input gives the same bits.

    Raises
    ------
    ParameterError
        For an unknown parameter, or one that is both followed and fixed.
    """
    parameter = joint(parameter)
    state, values = prepare(problem, start, parameter, span, {**(params or {}), **fixed})
    low, high = sorted(map(float, span))
    run = Run(problem, parameter, values, (low, high), accuracy, settings, functions, stability,
               callback)  # fmt: skip
    first = run.begin(state, value_of(values, parameter), math.copysign(1.0, span[1] - span[0]))
    if isinstance(first, Status):
        return Branch(parameter, status=first, problem=problem, name=problem.branch or "")
    return run.both_ways(first) if both else run.one_way(first)


def resume(
    branch: Branch,
    span: tuple[float, float],
    *,
    label: str | None = None,
    accuracy: float | None = None,
    settings: Settings | None = None,
    functions: Mapping[str, UserFunction] | None = None,
    stability: bool = True,
    callback: Callable[[dict], Any] | None = None,
) -> Branch:
    """Go on from the end of a branch (or a labelled event of it) in the direction of its curve.

    Parameters
    ----------
    branch : Branch
        Perhaps read from a file, with its problem.
    span : (low, high)
        Of the parameter; the run ends on either.
    label : str, optional
        Of an event, or the number of a point.
    accuracy, settings, functions, stability, callback
        As in `follow`.

    Returns
    -------
    Branch
        From the point given on.
    """
    if branch.problem is None:
        raise ParameterError("the branch has no problem: Branch.load(path, problem)")
    if not len(branch):
        raise ParameterError("the branch is empty; nothing to go on from")
    low, high = sorted(map(float, span))
    y, tangent = branch.curve[-1], branch.tangents[-1]
    if label is not None:
        state = branch.labelled(label)
        y = np.append(state.x, value_of(state.params, branch.parameter))
        near = int(np.argmin(np.linalg.norm(branch.curve - y, axis=1)))
        tangent = branch.tangents[near]
    values = moved(branch.params, branch.parameter, float(y[-1]))
    run = Run(branch.problem, branch.parameter, values, (low, high), accuracy, settings, functions,
               stability, callback)  # fmt: skip
    first = run.begin(y[:-1], float(y[-1]), 1.0)
    if isinstance(first, Status):
        return Branch(branch.parameter, status=first, problem=branch.problem, name=branch.name)
    if first.tangent @ tangent < 0:
        first = CurvePoint(**{**vars(first), "tangent": -first.tangent})
    return run.one_way(first)


def prepare(problem, start, parameter, span, given):
    """State to start from, and all parameter values there; every mistake has its own message."""
    fixed = shared(parameter, given)
    if fixed:
        raise ParameterError(f"{fixed} is followed over {span}; do not fix it as well")
    carried = dict(start.params) if isinstance(start, Solution) else {}
    low, high = sorted(map(float, span))
    if not low < high:
        raise ParameterError(f"span {span} of {parameter} is empty")
    here = value_of(carried, parameter) if shared(parameter, carried) else span[0]
    here = min(max(here, low), high)
    known = {**getattr(problem, "defaults", {}), **carried, **separate(given)}
    values = problem.values(moved(known, parameter, here))
    check_known(parameter, values, problem.name)
    for end in (low, high):
        problem.values(moved(values, parameter, end))
    if start is None:
        start = solve(problem, values, accuracy=1e-5, raise_on_failure=False)
    if isinstance(start, Solution):
        start = start.x
    return as_state(problem, start), values


PROBE = 1e-3  # how far beyond a bound events on it are looked for, in natural units


class Run:
    """One call of `follow`, or one half-branch of a diagram."""

    def __init__(self, problem, parameter, values, span, accuracy, settings, functions, stability,
                 callback):  # fmt: skip
        accuracy = accuracy or (1e-10 if differentiable(problem) else 1e-5)
        self.equations = BranchEquations(problem, parameter, values, span, accuracy)
        self.equations.lazy = not (stability or self.equations.exact)
        self.watcher = Watcher(self.equations, functions, stability)
        self.problem, self.parameter, self.span = problem, parameter, span
        # steps below the noise of the quadrature lead nowhere
        self.settings = settings or Settings(shortest=1e-7 if self.equations.exact else 1e-5)
        self.callback, self.stability = callback, stability
        self._known: dict[bytes, Solution] = {}

    def begin(self, x, value: float, direction: float) -> CurvePoint | Status:
        toward = np.zeros(len(x) + 1)
        toward[-1] = direction
        return start(self.equations, np.append(x, value), toward)

    def one_way(self, first: CurvePoint, origin: CurvePoint | None = None) -> Branch:
        """From ``first`` on; ``origin``, a branch point just left, becomes the first point."""
        branch = self._empty()
        events: list[Event] = []
        ended: list[CurvePoint] = []

        def watch(here, new, length):
            try:
                found = self._within(self.watcher.between(*self._reaching(here, new)))
            except Jumped:
                return "refine"
            passed = self._mirrored(found, here, new)
            if passed is not None:
                ended.append(self._at(found[passed], here))
                found = found[: passed + 1]
            events.extend(found)
            if self._tell(new) is Status.USER_STOP:
                return Status.USER_STOP
            if passed is not None:
                return Status.MIRRORED
            return Status.MERGED if self._left(here, new) else None

        points, counts = [first], [self.watcher.facts(first).unstable]
        if origin is not None:
            points, counts = [origin, first], counts * 2
        if self._tell(first) is Status.USER_STOP:
            branch.status = Status.USER_STOP
            return self._finish(branch, points, counts, events)
        bounds = {len(first.y) - 1: self.span}
        for new in trace(self.equations, first, self.settings, bounds=bounds, watch=watch):
            if isinstance(new, Status):
                branch.status = new
            else:
                points.append(new)
                counts.append(self.watcher.facts(new).unstable)
        if branch.status is Status.MIRRORED:
            # the branch point itself in place of the point beyond
            points[-1:], counts[-1] = ended, counts[-2]
        elif branch.status is Status.MERGED:
            points.pop()
            counts.pop()
        return self._finish(branch, points, counts, events)

    def both_ways(self, first: CurvePoint) -> Branch:
        forward = self.one_way(first)
        if forward.status in (Status.CLOSED_LOOP, Status.USER_STOP):
            return forward
        back = CurvePoint(**{**vars(first), "tangent": -first.tangent})
        return joined(self.one_way(back), forward)

    def _empty(self) -> Branch:
        return Branch(self.parameter, problem=self.problem, name=self.problem.branch or "")

    def _tell(self, point: CurvePoint) -> Status | None:
        if self.callback is None:
            return None
        low, high = self.span
        value = float(point.y[-1])
        answer = self.callback({
            "stage": f"following {self.problem.branch or self.problem.name}",
            "fraction": (value - low) / (high - low), self.parameter: value,
        })  # fmt: skip
        return Status.USER_STOP if answer is not None and not answer else None

    def _reaching(self, here: CurvePoint, new: CurvePoint) -> tuple[CurvePoint, CurvePoint]:
        """The segment, prolonged a little where a bound is itself (nearly) an event."""
        return self._beyond(here, -PROBE), self._beyond(new, PROBE)

    def _beyond(self, point: CurvePoint, length: float) -> CurvePoint:
        if point.y[-1] not in self.span or not self.watcher.singular(point):
            return point
        further = advance(self.equations, point, length, self.settings)
        return point if isinstance(further, Status) else further

    def _within(self, events: list[Event]) -> list[Event]:
        """Events in the range, its ends included."""
        low, high = self.span
        slack = 1e-9 * (high - low)
        return [e for e in events
                if low - e.error - slack <= e.value <= high + e.error + slack]  # fmt: skip

    def _mirrored(self, events: list[Event], here: CurvePoint, new: CurvePoint) -> int | None:
        """The event, a branch point, at which the curve passes onto its own mirror image."""
        if turned(self.problem, here.y[:-1], new.y[:-1]) is None:
            return None
        own = [k for k, e in enumerate(events) if e.kind in BRANCHING and not e.transverse]
        return own[0] if own else None

    def _left(self, here: CurvePoint, new: CurvePoint) -> bool:
        """Whether the curve ran through the birth of its branch, onto a mirror image or another.

        Branches of smooth systems meet at events; noise can lead from one to the other.
        """
        if self.equations.exact or not belongs(self._solution(here)):
            return False
        other = turned(self.problem, here.y[:-1], new.y[:-1]) is not None
        return other or not belongs(self._solution(new))

    def _solution(self, point: CurvePoint) -> Solution:
        key = point.y.tobytes()
        if key not in self._known:
            self._known[key] = self.watcher.solution(point.y, point.steps, point.jacobian)
        return self._known[key]

    def _at(self, event: Event, here: CurvePoint) -> CurvePoint:
        """The point of an event, on the side of its mirror images on which ``here`` is."""
        x = np.where(event.state.x * here.y[:-1] < 0, -event.state.x, event.state.x)
        found = Corrected(np.append(x, event.value), None, event.residual, 0, Status.CONVERGED)
        return make_point(self.equations, found, here.tangent)

    def _finish(self, branch: Branch, points: list[CurvePoint], counts, events) -> Branch:
        branch.points = [self._solution(p) for p in points]
        branch.curve = np.array([p.y for p in points])
        branch.tangents = np.array([p.tangent for p in points])
        branch.unstable = counts if self.stability else [-1] * len(points)
        branch.events = labelled([*events, *self._at_bound(branch)])
        return branch

    def _at_bound(self, branch: Branch) -> list[Event]:
        if branch.status is not Status.REACHED_BOUND:
            return []
        state, value = branch.points[-1], float(branch.values[-1])
        return [Event("bound", self.parameter, value, 0.0, (value, value), state.residual,
                      "polished", {state.kind: state}, branch.params)]  # fmt: skip


def labelled(events: list[Event]) -> list[Event]:
    """The events with labels such as F1 (folds), B1 (branch points), T1 (transitions)."""
    counts: dict[str, int] = {}
    out = []
    for event in events:
        short = {
            "fold": "F",
            "first-order": "T",
            "user": "U",
            "oscillatory": "O",
            "bound": "E",
        }.get(event.kind, "B")
        counts[short] = counts.get(short, 0) + 1
        out.append(Event(**{**vars(event), "label": f"{short}{counts[short]}"}))
    return out


def joined(backward: Branch, forward: Branch) -> Branch:
    """One branch out of the two directions from one point."""
    return Branch(
        forward.parameter,
        backward.points[:0:-1] + forward.points,
        forward.status,
        backward.status,
        np.vstack([backward.curve[:0:-1], forward.curve]),
        np.vstack([-backward.tangents[:0:-1], forward.tangents]),
        backward.unstable[:0:-1] + forward.unstable,
        labelled(backward.events[::-1] + forward.events),
        forward.problem,
        forward.name,
    )
