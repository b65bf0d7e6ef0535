"""Branches and events at one value of a second parameter, as fast as the model allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numerics.branches import locate
from numerics.continuation.branch import Branch
from numerics.continuation.comparison import Comparison
from numerics.continuation.diagram import Diagram, diagram
from numerics.continuation.event import Event
from numerics.continuation.follow import follow, labelled
from numerics.continuation.landmarks import equalities
from numerics.continuation.root import root
from numerics.continuation.stability import embed, rates, whole
from numerics.continuation.tracer import Settings
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, belongs
from numerics.solvers.derivatives import differentiable
from numerics.status import Status
from theory.joint import moved, value_of, without


def survey(
    problem: ProblemLike,
    parameter: str,
    span: tuple[float, float],
    params: Mapping[str, float],
    *,
    accuracy: float | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> Diagram:
    """Branches of a model in one parameter, with the events from which lines can be traced.

    A smooth system gets the whole `diagram`. With proximal points only the reductions of the model
    are followed (each state has a symmetry there), and stability is that against the order
    parameters that vanish, which needs no differences: several times faster, without the least
    symmetric branch and without oscillations.

    Parameters
    ----------
    problem : Problem
        The whole model.
    parameter, span, callback
        As in `diagram`.
    params : mapping
        The other parameters.
    accuracy : float, optional
        Of the events: 1e-6 for systems with proximal points.
    """
    low, high = sorted(map(float, span))
    if differentiable(problem):
        return diagram(problem, parameter, (low, high), params=params, accuracy=accuracy,
                       callback=callback)  # fmt: skip
    family = [p for p in getattr(problem, "family", []) if hasattr(p, "transverse")] or [problem]
    others = without(problem.values(moved(params, parameter, low)), parameter)
    branches, events = [], []
    for reduced in family:
        start = somewhere(reduced, others, parameter, (low, high))
        if start is None:
            continue
        found = follow(
            reduced, start, parameter, (low, high), both=True, stability=False, accuracy=1e-4,
            settings=Settings(step=0.15, longest=0.4, shortest=1e-3, angle=0.4, max_points=80),
            callback=callback,
        )  # fmt: skip
        if not len(found):
            continue
        if callback is not None:
            callback({"stage": f"events on {reduced.branch or reduced.name}"})
        found.events = [e for e in found.events if e.kind == "fold" and _interior(found, e)]
        found.events += _softenings(found, accuracy or 1e-6) + equalities(found)
        branches.append(found)
        events += found.events
    events += Comparison(whole(problem), parameter, (low, high), others, branches).first_order()
    events = labelled(sorted(events, key=lambda e: (e.kind, e.value)))
    return Diagram(parameter, (low, high), others, branches, events)


def somewhere(
    problem: ProblemLike, others: Mapping[str, float], parameter: str, span: tuple[float, float]
) -> Solution | None:
    """A state on the problem's branch at the first of several values at which it exists."""
    low, high = span
    default = value_of(getattr(problem, "defaults", {}), parameter, low)
    values = [default] if low <= default <= high else []
    values += [low + f * (high - low) for f in (0.5, 0.0, 1.0, 0.25, 0.75)]
    for carry in (False, True):
        for value in values:
            state = locate(problem, moved(others, parameter, value), accuracy=1e-4, refine=False,
                           carry=carry, raise_on_failure=False)  # fmt: skip
            if belongs(state):
                return state
    return None


def _interior(branch: Branch, event: Event) -> bool:
    """Whether a fold lies inside a branch, with points of both its arms."""
    steps = np.sign(np.diff(branch.values))
    turns = np.flatnonzero(steps[1:] != steps[:-1]) + 1
    return any(2 < k < len(branch) - 3 and abs(branch.values[k] - event.value) <= 0.05 *
               max(abs(event.value), 1e-3) for k in turns)  # fmt: skip


def _softenings(branch: Branch, accuracy: float) -> list[Event]:
    """Pitchforks into order parameters that vanish on a branch; its unstable counts are set."""
    problem: Any = branch.problem
    spectra = []
    for point in branch.points:
        _, matrix, _ = problem.transverse(point.x, point.params, 1e-4)
        spectra.append(rates(problem, matrix).real)
    if not len(spectra[0]):
        return []
    branch.unstable = [int(np.sum(s > 0)) for s in spectra]
    found, values = [], branch.values
    for k in range(len(branch) - 1):
        for j in range(len(spectra[k])):
            a, b = spectra[k][j], spectra[k + 1][j]
            if a * b < 0 and np.isfinite(a * b):
                guess = values[k] + (values[k + 1] - values[k]) * a / (a - b)
                event = _pitchfork(branch, k, j, float(guess), accuracy)
                found += [] if event is None else [event]
    return found


def _pitchfork(branch: Branch, k: int, j: int, guess: float, accuracy: float) -> Event | None:
    problem: Any = branch.problem

    def rate(solution: Solution) -> tuple[float, float]:
        _, matrix, errors = problem.transverse(solution.x, solution.params, accuracy)
        return float(rates(problem, matrix).real[j]), float(np.max(errors.sum(axis=1)))

    low, high = sorted((branch.values[k], branch.values[k + 1]))
    at = root(problem, rate, branch.params, branch.parameter, (float(low), float(high)),
              guess=guess, start=branch.points[k], accuracy=accuracy)  # fmt: skip
    if at.status is not Status.CONVERGED:
        return None
    state = next(iter(at.states.values()))
    up = branch.values[k + 1] > branch.values[k]
    counts = branch.unstable[k : k + 2][:: 1 if up else -1]
    return Event(
        "pitchfork", branch.parameter, at.value, at.error, at.interval, abs(at.residual),
        "polished", {state.kind: state}, branch.params, direction=_direction(problem, state, j),
        transverse=True, details={"unstable below": counts[0], "unstable above": counts[1]},
    )  # fmt: skip


def _direction(problem, state: Solution, j: int) -> np.ndarray:
    """The soft direction in the full system."""
    names, matrix, _ = problem.transverse(state.x, state.params, 1e-4)
    values, vectors = np.linalg.eig(matrix)
    soft = vectors[:, np.argmin(np.abs(values))].real
    full = whole(problem)
    own = dict(zip(names, soft, strict=True))
    out = np.array([own.get(u, 0.0) for u in full.unknowns])
    assert len(embed(problem, state.x)) == len(out)
    return out / np.linalg.norm(out)
