"""Finding a state on a named branch at given parameters."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

import theory
from numerics.kernels import kernel_sources
from numerics.mirror import flippable
from numerics.problem import Problem
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, belongs, failure, solve
from numerics.solvers.derivatives import LOOSE
from theory.codegen import remembered, write_module
from theory.derive import check_values, reduction_for
from theory.free_energy import FreeEnergy
from theory.joint import moved
from theory.system import SaddlePointSystem

# of the steps of a carried solution: the shortest, and Newton steps that one of them is worth
SHORTEST, PATIENCE = 0.06, 12


@functools.lru_cache(maxsize=32)
def derived(model: FreeEnergy, reduction: str | None) -> SaddlePointSystem:
    """The model's system under one reduction, derived once."""
    return theory.derive(model, ansatz=reduction or "none")


@functools.lru_cache(maxsize=64)
def _compiled(model: FreeEnergy, reduction: str | None, branch: str | None) -> Problem:
    """By way of the generated text where that is known from before: nothing is derived then."""

    def derive() -> SaddlePointSystem:
        system = derived(model, reduction)
        return system if branch is None else system.branch(branch)

    kernels = kernel_sources()
    key = repr((model.fingerprint, reduction, branch, kernels))
    source = remembered(key, lambda: write_module(derive(), kernels))
    whole = None if branch is None else lambda: _compiled(model, reduction, None)
    reduce = None if branch else lambda name: _compiled(model, reduction, name)
    return Problem(model, source, derive, branch=branch, whole=whole, reduce=reduce)


def compiled(
    model: FreeEnergy,
    branch: str | None = None,
    params: Mapping[str, float] | None = None,
    moving: Sequence[str] = (),
) -> Problem:
    """The compiled problem of a branch, with the reduction that the parameters allow.

    ``moving`` names parameters that will take other values: what they may break is not used.
    """
    values = check_values(model, params or {})
    for k, name in enumerate(moving):
        values = moved(values, name, -1e300 / (k + 1))  # equal to nothing else
    reduction = reduction_for(model, values)
    return _compiled(model, reduction.name if reduction else None, branch)


def locate(
    problem: ProblemLike,
    params: Mapping[str, float] | None = None,
    *,
    accuracy: float = 1e-7,
    method: str = "auto",
    refine: bool = True,
    carry: bool = True,
    raise_on_failure: bool = True,
) -> Solution:
    """A solution on the problem's branch.

    The model's own starting points are tried first; if they fail, or lead to another branch, the
    solution is carried from the model's default parameters in a straight line (unless ``carry`` is
    False). Where the branch does not exist, the state that the equations fall back to is returned,
    and its ``kind`` says so.

    Raises
    ------
    ConvergenceError
        If there is no solution at all.
    """
    values = problem.values(params)
    first = solve(
        problem, values, accuracy=max(accuracy, LOOSE), method=method, refine=False,
        raise_on_failure=False,
    )  # fmt: skip
    found = first
    if carry and not belongs(first):
        carried = _carry(problem, values, method)
        if carried is not None and (carried.status.usable or not first.status.usable):
            found = carried
    if not found.status.usable:
        found = _fallback(problem, values) or found
    if found.status.usable:
        found = solve(
            problem, values, found, accuracy=accuracy, method=method, refine=refine,
            raise_on_failure=False,
        )  # fmt: skip
    if raise_on_failure and not found.status.success:
        raise failure(problem, found)
    return found


def _carry(problem: ProblemLike, values: dict[str, float], method: str) -> Solution | None:
    """Natural continuation from the default parameters to ``values``, with adaptive steps."""
    defaults = getattr(problem, "defaults", {})
    tied = getattr(problem, "tied", ())
    origin = {k: v if k in tied else defaults.get(k, v) for k, v in values.items()}
    state = solve(problem, origin, accuracy=LOOSE, refine=False, raise_on_failure=False,
                  method=method)  # fmt: skip
    if not belongs(state):
        return None
    before, here, step = None, 0.0, 0.25
    while here < 1.0 and step > SHORTEST:
        there = min(1.0, here + step)
        point = {k: origin[k] + there * (values[k] - origin[k]) for k in values}
        if not problem.in_domain(state.x, point):
            step /= 2
            continue
        new = solve(problem, point, state, accuracy=LOOSE, refine=False, raise_on_failure=False,
                    method="damped" if method == "damped" else "newton",
                    max_steps=PATIENCE if method != "damped" else None)  # fmt: skip
        if belongs(new):
            before = (here, state)
            state, here, step = new, there, min(2 * step, 0.5)
        elif before is not None and _vanishes(before, (here, state), (there, new)):
            return None
        else:
            step /= 2
    return state if here >= 1.0 else None


def _fallback(problem: ProblemLike, values: dict[str, float]) -> Solution | None:
    """A more symmetric state, where nothing else solves the equations."""
    everything = getattr(problem, "whole", None) or problem
    starts = []
    for narrower in getattr(everything, "family", []):
        if set(narrower.unknowns) < set(problem.unknowns):
            known = solve(narrower, values, accuracy=LOOSE, refine=False, raise_on_failure=False)
            if known.status.usable:
                starts.append([known.state.get(u, 0.0) for u in problem.unknowns])
    for x in problem.starts(values):
        flips = flippable(problem, x)
        starts += [np.where(flips, 0.0, x)] if np.any(flips) else []
    for start in starts:
        if problem.in_domain(np.array(start), values):
            found = solve(problem, values, start, accuracy=LOOSE, refine=False,
                          raise_on_failure=False)  # fmt: skip
            if found.status.usable:
                return found
    return None


def _vanishes(
    before: tuple[float, Solution], last: tuple[float, Solution], beyond: tuple[float, Solution]
) -> bool:
    """Whether the branch has merged with the one that is found beyond it.

    At a pitchfork the squares of the order parameters that vanish are linear.
    """
    (s, one), (t, other), (end, found) = before, last, beyond
    if not found.status.usable:
        return False
    gone = np.abs(found.x) < 1e-2 * np.abs(other.x)
    fall = (one.x[gone] ** 2 - other.x[gone] ** 2) / (t - s)
    return bool(np.any(gone) and np.all(other.x[gone] ** 2 < (end - t) * fall))
