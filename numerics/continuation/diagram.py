"""Every branch that can be reached, with all that happens on and between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numerics.continuation.branch import Branch
from numerics.continuation.comparison import Comparison, full_state
from numerics.continuation.event import Event
from numerics.continuation.follow import Run, joined, labelled, prepare
from numerics.continuation.landmarks import Trust, equalities
from numerics.continuation.meetings import passes
from numerics.continuation.naming import EventName, named
from numerics.continuation.probe import UserFunction
from numerics.continuation.stability import embed, whole
from numerics.continuation.switch import departure, into, leave, narrowest, prepared
from numerics.continuation.tracer import Settings, correct
from numerics.continuation.watch import BRANCHING
from numerics.mirror import image, turned
from numerics.protocol import ProblemLike
from numerics.solvers import as_state, solve
from numerics.solvers.deflation import deflated
from numerics.solvers.derivatives import differentiable
from numerics.status import Status
from theory.joint import Name, joint, moved, separate, without


@dataclass
class Diagram:
    """Branches and events of a model in one parameter.

    Attributes
    ----------
    parameter : str
    span : (low, high)
    params : dict
        The other parameters.
    branches : list of Branch
    events : list of Event
        Distinct ones, first-order transitions between stable states and equalities that the model
        compares included; sorted by kind and value. ``details["ground"]`` is 1 where no other state
        known has a lower energy.
    """

    parameter: str
    span: tuple[float, float]
    params: dict[str, float]
    branches: list[Branch] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[Event]:
        """Events of a kind, by value."""
        return [e for e in self.events if e.kind == kind]

    @property
    def names(self) -> list[EventName]:
        """Symbols and names of the events, in their order."""
        return named(self.events, self.branches)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        events = [{**e.to_dict(), **vars(n)} for e, n in zip(self.events, self.names, strict=True)]
        return {
            "parameter": self.parameter,
            "span": list(self.span),
            "parameters": self.params,
            "branches": [b.to_dict() for b in self.branches],
            "events": events,
        }

    def plot(self, path, quantity: str = "energy", trusts: Sequence[Trust | None] = ()) -> None:
        """Draw all branches in panels, see `numerics.panels.plot_diagram`."""
        from pathlib import Path

        from numerics.panels import plot_diagram

        plot_diagram(self, Path(path), trusts, quantity)


def diagram(
    problem: ProblemLike,
    parameter: Name,
    span: tuple[float, float],
    starts: Iterable | None = None,
    *,
    params: Mapping[str, float] | None = None,
    accuracy: float | None = None,
    settings: Settings | None = None,
    functions: Mapping[str, UserFunction] | None = None,
    max_branches: int = 40,
    callback: Callable[[dict], Any] | None = None,
    **fixed: float,
) -> Diagram:
    """Find and follow all branches of a model over a range of one parameter.

    Solutions are sought at several values of the parameter from the model's own starts, a spread
    of others and, for smooth systems, by deflation of those already known; each is followed both
    ways, branch points are left along every half-branch that is not a mirror image, and stable
    stretches are compared for equal energies.

    Parameters
    ----------
    problem : Problem or PlainProblem
        The whole model, not the reduction to one branch.
    parameter, span, params, accuracy, settings, functions, callback, **fixed
        As in `follow`.
    starts : iterable of states, optional
        Additional starting points.
    max_branches : int
        A cap on the number of branches.

    Returns
    -------
    Diagram
    """
    parameter = joint(parameter)
    low, high = sorted(map(float, span))
    given = {**(params or {}), **fixed}
    first = problem.starts(problem.values(moved(separate(given), parameter, low)))
    _, values = prepare(problem, first[0] if first else np.ones(len(problem.unknowns)),
                         parameter, (low, high), given)  # fmt: skip
    others = without(values, parameter)
    search = _Search(
        problem, parameter, (low, high), others, accuracy, settings, functions, max_branches,
        callback,
    )  # fmt: skip
    search.explore([as_state(problem, s) for s in starts or ()])
    found = Diagram(parameter, (low, high), others, search.branches)
    events = [e for b in search.branches for e in b.events if e.kind != "bound"]
    events += Comparison(search.whole, parameter, (low, high), others, search.branches).events()
    events += [e for b in search.branches for e in equalities(b)]
    found.events = labelled(sorted(search.distinct(events), key=lambda e: (e.kind, e.value)))
    return found


class _Search:
    def __init__(self, problem, parameter, span, others, accuracy, settings, functions,
                 max_branches, callback):  # fmt: skip
        self.whole = whole(problem)
        self.parameter, self.span, self.others = parameter, span, others
        self.options = (accuracy, settings, functions, True, callback)
        self.max_branches, self.callback = max_branches, callback
        self.branches: list[Branch] = []
        self.runs: dict[int, Run] = {}

    def run(self, problem: ProblemLike) -> Run:
        values = moved(self.others, self.parameter, self.span[0])
        return Run(problem, self.parameter, values, self.span, *self.options)

    def explore(self, starts: list) -> None:
        for value, problem, x in self.seeds(starts):
            if len(self.branches) >= self.max_branches:
                return
            run = self.run(problem)
            point = run.begin(x, value, 1.0)
            if isinstance(point, Status) or self.covered(problem, point.y):
                continue
            self.add(run, run.both_ways(point))

    def add(self, run: Run, branch: Branch) -> None:
        """Keep a branch and leave all its branch points."""
        self.branches.append(branch)
        self.runs[id(branch)] = run
        for event in branch.events:
            if event.kind in BRANCHING and len(self.branches) < self.max_branches:
                self.leave_at(run, branch, event)

    def leave_at(self, run: Run, branch: Branch, event: Event) -> None:
        near = int(np.argmin(np.linalg.norm(
            branch.curve - np.append(event.state.x, event.value), axis=1
        )))  # fmt: skip
        problem, y, directions = prepared(run.equations, event, branch.tangents[near])
        other = self.run(problem)
        for direction in directions:
            halves = []
            for sign in (1.0, -1.0):
                origin = departure(other.equations, y, sign * direction)
                point = leave(other.equations, y, sign * direction)
                point = None if point is None else into(other.equations, origin, point, self.span)
                if point is None or self.covered(problem, point.y):
                    continue
                half = other.one_way(point, origin)
                halves.append(half)
                self.branches.append(half)  # so that its mirror image counts as covered
            for half in halves:
                self.branches.remove(half)
            if len(halves) == 2 and halves[0].status is not Status.CLOSED_LOOP:
                # one curve through the branch point
                self.add(other, joined(halves[1], halves[0]))
            else:
                for half in halves:
                    alone = len(halves) == 1
                    half.start_status = self.why_alone(problem, direction, y) if alone else None
                    self.add(other, half)

    def why_alone(self, problem: ProblemLike, direction: np.ndarray, y: np.ndarray):
        """Why a branch begins at a branch point: a bound, or what is beyond is its mirror image."""
        if min(abs(y[-1] - end) for end in self.span) <= 1e-9 * (self.span[1] - self.span[0]):
            return Status.REACHED_BOUND
        x = y[:-1] + 0.1 * direction[:-1]
        beyond = y[:-1] - 0.1 * direction[:-1]
        return None if turned(problem, x, beyond) is None else Status.MIRRORED

    # --- seeds --------------------------------------------------------------------------------

    def seeds(self, starts: list):
        """(parameter value, problem, state) of solutions, at several values of the parameter."""
        low, high = self.span
        smooth = differentiable(self.whole)
        count = 7 if smooth else 3
        grid = np.linspace(low, high, count)
        if low > 0 and high / low > 20:
            grid = np.geomspace(low, high, count)
        problems = [self.whole] if smooth else (getattr(self.whole, "family", []) or [self.whole])
        for k, value in enumerate(grid):
            if self.callback is not None:
                self.callback({"stage": "looking for states", "fraction": k / count,
                               self.parameter: float(value)})  # fmt: skip
            values = moved(self.others, self.parameter, float(value))
            known: list[np.ndarray] = [] if not smooth else self.states_at(float(value))
            for problem in problems:
                for start in self.spread(problem, values, starts if smooth else []):
                    if smooth:
                        x = deflated(problem, start, values, known)
                    else:
                        found = solve(problem, values, start, accuracy=1e-4, refine=False,
                                      raise_on_failure=False)  # fmt: skip
                        x = found.x if found.status.usable else None
                    if x is None:
                        continue
                    known.append(x)
                    target, state = narrowest(
                        self.whole, embed(problem, x), values, 1e-9 if smooth else 2e-3
                    )
                    yield float(value), target, state

    def spread(self, problem, values, extra) -> list[np.ndarray]:
        """Own starts, given ones and, for smooth systems, a few in between."""
        from scipy.stats import qmc  # slow to import

        n = len(problem.unknowns)
        own = [np.asarray(s, float) for s in (*extra, *problem.starts(values))]
        if not differentiable(problem):
            return own
        scale = problem.scale(np.zeros(n), values)
        cube = qmc.Sobol(n, scramble=False).random(8)[1:] * 4 - 2
        more = [scale * s for s in (np.zeros(n), *cube)]
        centre = own[0] if own else scale
        more += [centre * (1 + 0.5 * c) for c in cube[:4]]
        return [s for s in (*own, *more) if problem.in_domain(s, values)]

    def states_at(self, value: float) -> list[np.ndarray]:
        """States of the whole problem on the branches known, at a value of the parameter."""
        found = []
        for branch in self.branches:
            equations = self.runs[id(branch)].equations
            for y in passes(branch, value):
                normal = np.zeros(len(y))
                normal[-1] = 1.0
                exact = correct(equations, y, normal)
                if exact.status is Status.CONVERGED:
                    x = embed(equations.problem, exact.y[:-1])
                    found.append(x)
                    other = image(self.whole, x)
                    if other is not None:
                        found.append(other)
        return found

    # --- identity -----------------------------------------------------------------------------

    def covered(self, problem: ProblemLike, y: np.ndarray) -> bool:
        """Whether a point lies on a branch known, or on the mirror image of one."""
        x = embed(problem, y[:-1])
        if any(self._at_branch_point(e, y) for b in self.branches for e in b.events):
            return True
        return any(self._on(b, x, float(y[-1])) for b in self.branches)

    def _at_branch_point(self, event: Event, y: np.ndarray) -> bool:
        """Whether a state is so near a branch point that solvers cannot tell the branches apart."""
        near = abs(event.value - y[-1]) < 1e-4 * (self.span[1] - self.span[0])
        if not (near and event.kind in BRANCHING and len(event.state.x) == len(y) - 1):
            return False
        scale = self.whole.scale(full_state(self.whole, event.state), event.state.params).min()
        return bool(np.max(np.abs(event.state.x - y[:-1])) < 3e-3 * scale)

    def _on(self, branch: Branch, x: np.ndarray, value: float) -> bool:
        """Whether a state of the whole model lies on a branch: corrected onto it, it stays."""
        owner, curve = branch.problem, branch.curve
        own = dict(zip(self.whole.unknowns, x, strict=True))
        if owner is None or len(curve) < 2:
            return False
        state = np.array([own[u] for u in owner.unknowns])
        y = np.append(owner.canonical(state), value)
        equations = self.runs[id(branch)].equations if id(branch) in self.runs else None
        equations = equations or self.run(owner).equations
        scale = equations.scale(y)
        params = moved(self.others, self.parameter, value)
        if np.max(np.abs(embed(owner, state) - x) / self.whole.scale(x, params)) > 1e-6:
            return False
        points = np.array([[*owner.canonical(p[:-1]), p[-1]] for p in curve]) / scale
        chords = np.diff(points, axis=0)
        lengths = np.maximum(np.linalg.norm(chords, axis=1), 1e-300)
        along = np.clip(np.sum((y / scale - points[:-1]) * chords, axis=1) / lengths**2, 0, 1)
        nearest = points[:-1] + along[:, None] * chords
        off = np.linalg.norm(y / scale - nearest, axis=1)
        for k in np.argsort(off)[:3]:
            if off[k] > max(0.3 * lengths[k], 1e-3):
                continue
            found = correct(equations, nearest[k] * scale, chords[k] / lengths[k])
            there = found.y if found.status is Status.CONVERGED else nearest[k] * scale
            limit = 1e-6 if equations.exact else 3e-3
            if np.linalg.norm((there - y) / scale) < max(limit, 1e-3 * off[k]):
                return True
        return False

    def distinct(self, events: list[Event]) -> list[Event]:
        """Events without repetitions (a branch point is seen on each branch through it)."""
        kept: list[Event] = []
        for event in sorted(events, key=lambda e: (e.status != "polished", e.error)):
            if not any(self._same(event, other) for other in kept):
                kept.append(event)
        return kept

    def _same(self, a: Event, b: Event) -> bool:
        branching = a.kind in BRANCHING and b.kind in BRANCHING
        if not (a.kind == b.kind or branching) or a.kind == "first-order":
            return False
        slack = 3 * (a.error + b.error) + 1e-8 * (self.span[1] - self.span[0])
        if abs(a.value - b.value) > slack or (a.message != b.message and not branching):
            return False
        x, y = (full_state(self.whole, e.state) for e in (a, b))
        scale = self.whole.scale(x, a.state.params)
        return bool(np.max(np.abs(x - y) / scale) < 1e-3)
