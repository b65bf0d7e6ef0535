"""Stability of a state: growth rates in the full system, so that a reduced branch shows them too.

For explicit updates F the rates are the eigenvalues of dF/dx - 1 (those of weakly damped state
evolution); for a free energy without conjugates, minus the eigenvalues of its Hessian (gradient
descent). A state is stable if no rate is positive.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numerics.protocol import ProblemLike
from numerics.solvers import Solution
from numerics.solvers.derivatives import differentiable, state_jacobian


def whole(problem: ProblemLike) -> ProblemLike:
    """The system that ``problem`` is a reduction of; itself if it is none."""
    found = getattr(problem, "whole", None)
    return problem if found is None else found


def embed(problem: ProblemLike, x: np.ndarray) -> np.ndarray:
    """State of the full system."""
    return problem.embed(x) if whole(problem) is not problem else np.asarray(x, dtype=float)


def full_jacobian(problem: ProblemLike, x, params, accuracy: float) -> np.ndarray:
    """Jacobian of the full system's residual at a state of the reduced one."""
    full = whole(problem)
    own = {k: v for k, v in params.items() if k in full.values(params)}
    return state_jacobian(full, embed(problem, x), own, accuracy)


def rates(problem: ProblemLike, jacobian: np.ndarray) -> np.ndarray:
    """Growth rates, largest real part first."""
    if not np.all(np.isfinite(jacobian)):
        return np.full(len(jacobian), np.nan)
    if problem.form == "gradient":
        values = -np.linalg.eigvalsh(0.5 * (jacobian + jacobian.T)).astype(complex)
    else:
        values = np.linalg.eigvals(jacobian)
    return values[np.argsort(-values.real, kind="stable")]


def unstable(values: np.ndarray) -> int:
    """Number of growing directions."""
    return int(np.sum(values.real > 0))


def growing(problem: ProblemLike, solution: Solution) -> int | None:
    """Number of unstable directions where derivatives are exact or known to rounding, else None."""
    full = whole(problem)
    if not differentiable(full):
        return None
    jacobian = full_jacobian(problem, solution.x, solution.params, 1e-10)
    values = rates(problem, jacobian)
    return unstable(values) if np.all(np.isfinite(values)) else None


def softest(problem, accuracy: float) -> Callable[[Solution], tuple[float, float]]:
    """Function for `root`: the transverse rate nearest to zero, and its error.

    Transverse rates belong to order parameters that vanish on the problem's branch.
    """

    def function(solution: Solution) -> tuple[float, float]:
        _, matrix, errors = problem.transverse(solution.x, solution.params, accuracy)
        values = rates(problem, matrix).real
        return float(values[np.argmin(np.abs(values))]), float(np.max(errors.sum(axis=1)))

    return function
