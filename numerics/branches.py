"""Finding a state on a named branch at given parameters."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import theory
from numerics.problem import Problem, kernel_sources
from numerics.protocol import ProblemLike
from numerics.solvers import Solution, failure, solve
from numerics.solvers.derivatives import LOOSE
from theory.codegen import remembered, write_module
from theory.derive import check_values, reduction_for
from theory.free_energy import FreeEnergy
from theory.joint import moved
from theory.system import SaddlePointSystem


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
    if found.status.usable:
        found = solve(
            problem, values, found, accuracy=accuracy, method=method, refine=refine,
            raise_on_failure=False,
        )  # fmt: skip
    if raise_on_failure and not found.status.success:
        raise failure(problem, found)
    return found


def belongs(solution: Solution) -> bool:
    """Whether a solution is usable and on the branch that was asked for."""
    return solution.status.usable and (
        solution.branch in (None, solution.kind) or solution.kind == "solution"
    )


def _carry(problem: ProblemLike, values: dict[str, float], method: str) -> Solution | None:
    """Natural continuation from the default parameters to ``values``, with adaptive steps."""
    defaults = getattr(problem, "defaults", {})
    tied = getattr(problem, "tied", ())
    origin = {k: v if k in tied else defaults.get(k, v) for k, v in values.items()}
    state = solve(problem, origin, accuracy=LOOSE, refine=False, raise_on_failure=False,
                  method=method)  # fmt: skip
    if not belongs(state):
        return None
    here, step = 0.0, 0.25
    while here < 1.0 and step > 0.03:
        there = min(1.0, here + step)
        point = {k: origin[k] + there * (values[k] - origin[k]) for k in values}
        start = state.x
        if not problem.in_domain(start, point):
            step /= 2
            continue
        new = solve(problem, point, state, accuracy=LOOSE, refine=False, raise_on_failure=False,
                    method=method)  # fmt: skip
        if belongs(new):
            state, here, step = new, there, min(2 * step, 0.5)
        else:
            step /= 2
    return state if here >= 1.0 else None
