"""Safeguarded Newton iteration on the scaled residual.

The Jacobian is exact where the problem has one, else a difference quotient. Where it takes
quadrature it is taken at a loose accuracy, and Broyden updates keep it useful while the residual is
evaluated at the accuracy asked for. Init, step, done and result are separate, so that a notebook
can watch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numerics.protocol import ProblemLike, equation_scale
from numerics.solvers.derivatives import LOOSE, differentiable, state_jacobian
from numerics.status import Status


@dataclass(frozen=True)
class NewtonSettings:
    """Settings of the iteration.

    Attributes
    ----------
    tolerance : float
        On the largest residual in units of the natural scales.
    loose : float
        Accuracy of the quadrature for difference quotients and far from the solution.
    max_steps : int
        Counts every attempt, accepted or not.
    """

    tolerance: float = 1e-8
    loose: float = LOOSE
    max_steps: int = 60


@dataclass
class NewtonState:
    """State of the iteration; ``status`` is None while it runs.

    A ``lent`` Jacobian comes from another state or other parameters: good enough to iterate with,
    not for error bars.
    """

    x: np.ndarray
    residual: np.ndarray
    accuracy: float
    jacobian: np.ndarray | None = None
    fresh: bool = False
    lent: bool = False
    steps: int = 0
    status: Status | None = None
    history: list[float] = field(default_factory=list)


def scaled(problem: ProblemLike, x, params, residual) -> float:
    """Largest residual in units of the natural scales; infinite if not finite."""
    value = float(np.max(np.abs(residual) / equation_scale(problem, x, params), initial=0.0))
    return value if np.isfinite(value) else np.inf


def init(
    problem: ProblemLike, start, params, settings: NewtonSettings, accuracy, jacobian=None
) -> NewtonState:
    """Start at ``start``: coarse first, fine once the residual is small.

    ``jacobian`` is a first guess; otherwise one is found before the residual, which then costs
    nothing where both are moments of one quadrature.
    """
    x = np.array(start, dtype=float)
    if not problem.in_domain(x, params):
        state = NewtonState(x, np.full(len(x), np.nan), accuracy)
        state.status = Status.LEFT_DOMAIN
        return state
    coarse = max(accuracy, settings.loose)
    lent = jacobian is not None and jacobian.shape == (len(x), len(x))
    if not lent:
        jacobian = state_jacobian(problem, x, params, coarse)
    residual = problem.residual(x, params, coarse)
    return NewtonState(x, residual, coarse, jacobian, fresh=not lent, lent=lent)


def step(problem: ProblemLike, state: NewtonState, params, settings, accuracy) -> None:
    """One attempt: a Newton step with backtracking, or a fresh Jacobian after a failed one."""
    state.steps += 1
    size = scaled(problem, state.x, params, state.residual)
    state.history.append(size)
    if not np.isfinite(size):
        state.status = Status.NON_FINITE
        return
    if state.accuracy > accuracy and size <= max(10 * settings.tolerance, 0.3 * state.accuracy):
        state.accuracy = accuracy
        state.residual = problem.residual(state.x, params, accuracy)
        return
    if state.accuracy <= accuracy and size <= settings.tolerance:
        state.status = Status.CONVERGED
        return
    if state.jacobian is None:
        loose = max(accuracy, settings.loose)
        state.jacobian, state.fresh = state_jacobian(problem, state.x, params, loose), True
        state.lent = False
    try:
        direction = np.linalg.solve(state.jacobian, -state.residual)
    except np.linalg.LinAlgError:
        direction = np.full(len(state.x), np.nan)
    if not np.all(np.isfinite(direction)):
        state.status = Status.SINGULAR
        return
    _move(problem, state, params, direction, size)


def _move(problem, state, params, direction, size) -> None:
    """Backtrack along ``direction``; update the Jacobian by Broyden's rule."""
    fraction = 1.0
    # no unknown may change by more than twice its own size at once
    limit = np.max(np.abs(direction) / problem.scale(state.x, params))
    fraction = min(fraction, 2.0 / limit) if limit > 0 else fraction
    # shorter steps along a fresh direction may help; along an old one a new Jacobian does
    for _ in range(10 if state.fresh else 3):
        x = state.x + fraction * direction
        if problem.in_domain(x, params):
            residual = problem.residual(x, params, state.accuracy)
            new = scaled(problem, x, params, residual)
            if new < (1 - 1e-3 * fraction) * size:
                move = x - state.x
                change = residual - state.residual
                if new > 0.3 * size or _cheap(problem, x, params, state.accuracy):
                    state.jacobian = None  # too poor to repair, or not worth it
                else:
                    correction = np.outer(change - state.jacobian @ move, move)
                    state.jacobian = state.jacobian + correction / (move @ move)
                state.x, state.residual, state.fresh = x, residual, False
                return
        fraction *= 0.5
    if state.fresh:
        state.status = Status.STALLED
    state.jacobian = None


def _cheap(problem, x, params, accuracy) -> bool:
    """Whether a new Jacobian costs no more than a residual."""
    return differentiable(problem) and problem.jacobian(x, params, accuracy) is not None


def done(state: NewtonState, settings: NewtonSettings) -> bool:
    """Whether the iteration has ended; running out of steps is an end too."""
    if state.status is None and state.steps >= settings.max_steps:
        state.status = Status.MAX_STEPS
    return state.status is not None


def newton(
    problem: ProblemLike,
    start,
    params: dict[str, float],
    accuracy: float,
    settings: NewtonSettings | None = None,
    callback=None,
    jacobian: np.ndarray | None = None,
) -> NewtonState:
    """Run to an end; the returned state has a status. ``jacobian`` is a first guess."""
    settings = settings or NewtonSettings()
    state = init(problem, start, params, settings, accuracy, jacobian)
    while not done(state, settings):
        step(problem, state, params, settings, accuracy)
        if callback is not None and state.history:
            callback({"step": state.steps, "residual": state.history[-1]})
    return state
