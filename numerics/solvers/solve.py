"""The solver that users call, and its many-starts version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from numerics.protocol import ProblemLike
from numerics.solvers.damped import damped
from numerics.solvers.derivatives import LOOSE, state_jacobian
from numerics.solvers.newton import (
    NewtonSettings,
    NewtonState,
    newton,
    scaled,
)
from numerics.solvers.solution import Solution, make_solution
from numerics.status import Status
from theory.errors import ConvergenceError, DomainError, ParameterError, near

METHODS = ("auto", "newton", "damped")
FINEST = 1e-11


def solve(
    problem: ProblemLike,
    params: Mapping[str, float] | None = None,
    start: Iterable[float] | Mapping[str, float] | Solution | None = None,
    *,
    accuracy: float = 1e-7,
    tolerance: float | None = None,
    method: str = "auto",
    max_steps: int | None = None,
    refine: bool = True,
    raise_on_failure: bool = True,
    callback: Callable[[dict], Any] | None = None,
) -> Solution:
    """Solve the saddle-point equations.

    Parameters
    ----------
    problem : Problem
        From `SaddlePointSystem.compile`, or anything that follows `ProblemLike`.
    params : mapping, optional
        Control parameters; defaults of the model where not given.
    start : array, mapping or Solution, optional
        State to start from; by default the problem's own starting points, in turn. A solution of
        the same problem nearby also lends its Jacobian.
    accuracy : float
        Relative accuracy asked of the expectations, and of the equations unless ``tolerance`` is
        given.
    tolerance : float, optional
        On the undamped residual in natural units; by default ``accuracy``.
    method : {"auto", "newton", "damped"}
        "auto" is Newton, helped by a few damped iterations where it fails.
    max_steps : int, optional
    refine : bool
        Take finer rules where the error estimate exceeds ``accuracy``; without it the status tells.
    raise_on_failure : bool
        Raise, or return a solution whose status says what went wrong.
    callback : callable, optional
        Called with a dict at each step.

    Raises
    ------
    ConvergenceError
        With the partial result in ``.result``.
    ParameterError, DomainError
        For input that cannot be meant.
    """
    if method not in METHODS:
        raise ParameterError(f"unknown method {method!r}; choose from {', '.join(METHODS)}")
    values = problem.values(params)
    goal = accuracy if tolerance is None else tolerance
    guess = None
    if isinstance(start, Solution):
        start, guess = start.x, start.jacobian
    starts = [_given(problem, start, values)] if start is not None else problem.starts(values)
    if not starts:
        raise DomainError(f"{problem.name}: no starting point inside the domain; give start=...")
    best: Solution | None = None
    for x in starts:
        found = _attempt(
            problem, x, values, accuracy, goal, method, max_steps, callback, guess, refine
        )
        if best is None or _better(found, best):
            best = found
        if found.status.usable:
            break
    assert best is not None
    if raise_on_failure and not best.status.success:
        raise failure(problem, best)
    return best


def failure(problem: ProblemLike, found: Solution) -> ConvergenceError:
    """What to raise for a solve that failed; parameters on the edge of their domain are named."""
    where = f" branch {problem.branch}" if problem.branch else ""
    declared = getattr(getattr(problem, "model", None), "parameters", ())
    edge = [f"{p.name} = {found.params[p.name]:g}" for p in declared
            if found.params[p.name] in (p.low, p.high)]  # fmt: skip
    hint = ""
    if edge and not found.status.usable:
        hint = (
            f"; {', '.join(edge)} lies on the edge of its domain, where a finite solution need not "
            "exist: try a value inside"
        )
    return ConvergenceError(f"{problem.name}{where}: {found.message}{hint}", found)


def solve_all(
    problem: ProblemLike,
    params: Mapping[str, float] | None = None,
    starts: Iterable | None = None,
    *,
    accuracy: float = 1e-7,
    distance: float = 1e-4,
) -> list[Solution]:
    """Distinct solutions reached from many starts, modulo the model's symmetries.

    Parameters
    ----------
    starts : iterable of states, optional
        By default the problem's own and multiples of them.
    distance : float
        Solutions closer than this, in natural units, are one.

    Returns
    -------
    list of Solution
        By increasing energy; failed attempts are left out.
    """
    values = problem.values(params)
    if starts is None:
        own = problem.starts(values)
        starts = [f * x for x in own for f in (1.0, 0.5, 0.1, 1.5)]
        starts = [x for x in starts if problem.in_domain(x, values)]
    found: list[Solution] = []
    for start in starts:
        solution = solve(problem, values, start, accuracy=accuracy, raise_on_failure=False)
        if not solution.status.usable:
            continue
        scale = problem.scale(solution.x, values)
        if all(np.max(np.abs(solution.x - s.x) / scale) > distance for s in found):
            found.append(solution)
    return sorted(found, key=lambda s: s.energy)


def result(
    problem: ProblemLike,
    state: NewtonState,
    params: dict[str, float],
    settings: NewtonSettings,
    accuracy: float,
    *,
    method: str = "newton",
    refine: bool = True,
) -> Solution:
    """The solution in a stepped state, with its errors and verdict."""
    status = Status.MAX_STEPS if state.status is None else state.status
    return _finish(problem, state, params, accuracy, settings.tolerance, status, method, refine)


def as_state(problem, start) -> np.ndarray:
    """A state given by a user, as an array in the order of the unknowns."""
    if isinstance(start, Solution):
        return start.x
    if isinstance(start, Mapping):
        for name in start:
            if name not in problem.unknowns:
                raise ParameterError(
                    f"{problem.name}: start has a value for {name!r}, which is no unknown"
                    f"{near(name, problem.unknowns)}; it needs {', '.join(problem.unknowns)}"
                )
        missing = [u for u in problem.unknowns if u not in start]
        if missing:
            raise ParameterError(
                f"{problem.name}: start has no value for {missing[0]}; it needs "
                f"{', '.join(problem.unknowns)}"
            )
        start = [start[u] for u in problem.unknowns]
    x = np.asarray(list(start), dtype=float)
    if x.shape != (len(problem.unknowns),):
        raise ParameterError(
            f"{problem.name}: start has {x.size} components, the unknowns are "
            f"{', '.join(problem.unknowns)}"
        )
    return x


def _given(problem, start, values) -> np.ndarray:
    x = as_state(problem, start)
    if not problem.in_domain(x, values):
        raise DomainError(f"{problem.name}: start is outside the domain; "
                          f"{problem.domain_message(x, values)}")  # fmt: skip
    return x


def _better(a: Solution, b: Solution) -> bool:
    return a.status.usable > b.status.usable or a.residual < b.residual


def _attempt(
    problem, x, values, accuracy, goal, method, max_steps, callback, guess, refine
) -> Solution:
    settings = NewtonSettings(tolerance=goal, max_steps=max_steps or 60)
    if method == "damped":
        x, status, steps = damped(
            problem, x, values, accuracy, tolerance=goal, max_steps=max_steps or 500
        )
        state = NewtonState(x, np.empty(0), accuracy, status=status, steps=steps)
    else:
        state = newton(problem, x, values, accuracy, settings, callback, guess)
        if method == "auto" and state.status is not Status.CONVERGED:
            state = _helped(problem, x, values, accuracy, settings, callback, state)
    return result(problem, state, values, settings, accuracy, method=method, refine=refine)


def _helped(problem, x, values, accuracy, settings, callback, failed: NewtonState):
    """Damped iterations at low accuracy bring a far start near; then Newton again."""
    if problem.form != "fixed_point" or failed.status is Status.LEFT_DOMAIN:
        return failed
    near, status, steps = damped(
        problem, x, values, settings.loose, tolerance=1e-3, damping=0.5, max_steps=60
    )
    if status in (Status.NON_FINITE, Status.LEFT_DOMAIN):
        return failed
    state = newton(problem, near, values, accuracy, settings, callback)
    state.steps += steps + failed.steps
    return state


def _finish(problem, state, values, accuracy, goal, status, method, refine) -> Solution:
    """Evaluate with errors; take finer rules, and a few more steps, until they are small enough."""
    rule, spent = accuracy, 0
    finest = max(FINEST, getattr(problem, "finest", 0.0))
    evaluation = problem.evaluate(state.x, values, rule)
    jacobian = state.jacobian
    if jacobian is None or (state.lent and refine):
        jacobian = state_jacobian(problem, state.x, values, max(accuracy, LOOSE))
    while status is Status.CONVERGED:
        size = scaled(problem, state.x, values, evaluation.residual)
        fine = evaluation.relative_error <= accuracy
        if (fine and size <= goal) or spent >= 12 or not np.isfinite(size):
            break
        if not fine and size <= max(goal, 0.1 * evaluation.relative_error):
            if not refine or rule < max(finest, 3e-3 * accuracy):
                break
            rule *= 0.1
        else:
            x = _chord(problem, state.x, values, evaluation.residual, jacobian)
            if x is None:
                break
            state.x = x
        spent += 1
        evaluation = problem.evaluate(state.x, values, rule)
    settings = {"accuracy": accuracy, "tolerance": goal, "method": method}
    return make_solution(problem, state.x, values, evaluation, jacobian, status,
                         state.steps + spent, goal, accuracy, settings, refine)  # fmt: skip


def _chord(problem, x, values, residual, jacobian):
    try:
        new = x - np.linalg.solve(jacobian, residual)
    except np.linalg.LinAlgError:
        return None
    return new if problem.in_domain(new, values) else None
