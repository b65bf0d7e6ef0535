"""Which state wins: equal energies of stable stretches, and of states on the edge of the domain."""

from __future__ import annotations

import numpy as np

from numerics.continuation.branch import Branch
from numerics.continuation.crossing import crossing
from numerics.continuation.event import Event
from numerics.continuation.meetings import (
    Stretch,
    energy_curve,
    meetings,
    nearest,
    reaches,
    stable_stretches,
    widened,
)
from numerics.continuation.stability import embed
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, solve
from numerics.solvers.derivatives import differentiable
from numerics.status import Status
from theory.joint import moved, value_of
from theory.joint import slope as slope_of


class Comparison:
    """Energies of all branches of a diagram.

    Parameters
    ----------
    whole : Problem
    parameter, span, others
        The parameter, its range, and the values of the others.
    branches : list of Branch
    """

    def __init__(self, whole: ProblemLike, parameter: str, span: tuple[float, float],
                 others: dict[str, float], branches: list[Branch]):  # fmt: skip
        self.whole, self.parameter, self.span, self.others = whole, parameter, span, others
        self.branches = branches

    def events(self) -> list[Event]:
        """First-order transitions, in no particular order."""
        return self.first_order() + self.edges()

    def first_order(self) -> list[Event]:
        """Crossings of the energies of stable stretches."""
        stretches = self._stretches()
        found: list[Event] = []
        for i, first in enumerate(stretches):
            for second in stretches[i + 1 :]:
                one, other = widened(first), widened(second)
                values = meetings(one, other)
                if values and self._coincide(one, other):
                    continue
                for value in values:
                    event = self._cross(one, other, value)
                    if event is None or not all(reaches(s, event.value) for s in (first, second)):
                        continue
                    if not any(
                        abs(event.value - e.value) < 1e-9 and set(e.states) == set(event.states)
                        for e in found
                    ):
                        found.append(event)
        return found

    def _stretches(self) -> list[Stretch]:
        """Stable stretches with an energy."""
        # an extremum that is no minimum in some unknown leaves every state that many directions
        level = min((u for b in self.branches for u in b.unstable), default=0)
        return [
            (b, first, last)
            for b in self.branches
            for first, last in stable_stretches(b, level)
            if np.all(np.isfinite(b["energy"][first:last]))
        ]

    def _coincide(self, one: Stretch, other: Stretch) -> bool:
        """Whether the energies are equal all along: two images under a symmetry, no crossing."""
        points = [sorted(b.points[i:j], key=lambda s: value_of(s.params, self.parameter))
                  for b, i, j in (one, other)]  # fmt: skip
        low = max(value_of(p[0].params, self.parameter) for p in points)
        high = min(value_of(p[-1].params, self.parameter) for p in points)
        problems = [s[0].problem for s in (one, other)]
        level = 1e-6 if differentiable(problems[0]) else 2e-3
        # away from the ends of the overlap, where the states may merge
        for value in (low + f * (high - low) for f in (0.3, 0.55, 0.8, 0.15)):
            near = [nearest(s, value) for s in (one, other)]
            a, b = self._both(problems, near, value)
            slopes = [slope_of(s.gradient, self.parameter) for s in (a, b)]
            doubt = 2 * (a.energy_error + b.energy_error) + 1e-14 * abs(a.energy)
            # an error of the state leaves one of its square in the energy, but not in the slope
            alike = abs(slopes[0] - slopes[1]) <= level * (abs(slopes[0]) + abs(slopes[1]))
            if not (abs(a.energy - b.energy) <= doubt and alike):
                return False
        return True

    def _cross(self, one, other, value: float) -> Event | None:
        a, b = (nearest(s, value) for s in (one, other))
        problems = [s[0].problem for s in (one, other)]
        low, high = self.span
        # no further than either stretch goes
        for branch, first, last in (one, other):
            ends = sorted((branch.values[first], branch.values[last - 1]))
            low, high = max(low, ends[0]), min(high, ends[1])
        smooth = differentiable(problems[0])
        params = moved(self.others, self.parameter, value)
        found = crossing(problems[0], problems[1], params, self.parameter, (low, high),
                         start_a=a, start_b=b, guess=value,
                         accuracy=1e-12 if smooth else 1e-6)  # fmt: skip
        if found.status is not Status.CONVERGED:
            return None
        states = list(found.states.values())
        full = [full_state(self.whole, s) for s in states]
        scale = self.whole.scale(full[0], states[0].params)
        if found.error > 0.1 * (self.span[1] - self.span[0]):
            return None
        if len(full) < 2 or np.max(np.abs(full[0] - full[1]) / scale) < 1e-4:
            return None
        for state, (branch, first, last) in zip(states, (one, other), strict=True):
            near = nearest((branch, first, last), found.value)
            if np.max(np.abs(state.x - near.x) / scale.max()) > 0.5:
                return None
        return Event(
            "first-order", self.parameter, found.value, found.error, found.interval,
            abs(found.residual), "polished", found.states, self.others,
            details={"slope": found.slope, "ground": self._ground(states[0], found.value)},
        )  # fmt: skip

    def edges(self) -> list[Event]:
        """Where a stable stretch and a state on the edge of the domain have equal energies."""
        if not hasattr(self.whole, "edge_energies"):
            return []
        found = []
        for branch in self.branches:
            for first, last in stable_stretches(branch):
                for name in self._edge(self.span[0]):
                    points = branch.points[first:last]
                    apart = [
                        s.energy - self._edge(value_of(s.params, self.parameter))[name]
                        for s in points
                    ]
                    for k in np.flatnonzero(np.array(apart[1:]) * np.array(apart[:-1]) < 0):
                        event = self._cross_edge(branch, points[k], name)
                        found += [event] if event is not None else []
        return found

    def _edge(self, value: float) -> dict[str, float]:
        return self.whole.edge_energies(moved(self.others, self.parameter, value))

    def _cross_edge(self, branch: Branch, state: Solution, name: str) -> Event | None:
        assert branch.problem is not None
        value = value_of(state.params, self.parameter)
        h = 1e-6 * max(abs(value), 1e-3)
        for _ in range(40):
            state = solve(
                branch.problem, moved(self.others, self.parameter, value), state.x,
                accuracy=1e-12 if differentiable(branch.problem) else 1e-6, raise_on_failure=False,
            )  # fmt: skip
            if not state.status.usable:
                return None
            pace = (self._edge(value + h)[name] - self._edge(value - h)[name]) / (2 * h)
            slope = slope_of(state.gradient, self.parameter) - pace
            apart = state.energy - self._edge(value)[name]
            error = state.energy_error / abs(slope)
            if abs(apart / slope) <= max(0.1 * error, 1e-15 * abs(value)):
                break
            value -= apart / slope
        error += abs(apart / slope) + 1e-15 * abs(value)
        return Event(
            "first-order", self.parameter, value, error, (value - error, value + error),
            abs(apart), "polished", {state.kind: state}, self.others,
            message=f"against {name}, on the edge of the domain",
            details={"slope": slope, "ground": self._ground(state, value)},
        )  # fmt: skip

    def _both(self, problems, states, value: float) -> list[Solution]:
        return [
            solve(p, moved(self.others, self.parameter, value), s.x, refine=False,
                  accuracy=1e-12 if differentiable(p) else 1e-4, raise_on_failure=False)
            for p, s in zip(problems, states, strict=True)
        ]  # fmt: skip

    def _ground(self, state: Solution, value: float) -> float:
        """1 if no other state known has a lower energy there, else 0; others are interpolated."""
        wide = [widened(s) for s in self._stretches() if reaches(s, value)]
        curves = [energy_curve(s) for s in wide if np.ptp(s[0].values[s[1] : s[2]]) > 1e-14]
        others = [float(c(value)) for c in curves if c.x[0] <= value <= c.x[-1]]
        if hasattr(self.whole, "edge_energies"):
            others += self._edge(value).values()
        slack = 1e-3 * (max(others, default=0.0) - min(others, default=0.0)) + state.energy_error
        return float(all(state.energy <= e + slack + 1e-6 * abs(e) for e in others))


def full_state(whole: ProblemLike, state: Solution) -> np.ndarray:
    """The canonical state of the whole model behind a solution of one of its reductions."""
    known = state.state
    if set(known) == set(whole.unknowns):
        return whole.canonical(np.array([known[u] for u in whole.unknowns]))
    owner = next(p for p in getattr(whole, "family", []) if p.branch == state.branch)
    return whole.canonical(embed(owner, state.x))
