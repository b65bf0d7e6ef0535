"""Damped iteration x <- x + damping (F(x) - x), the familiar option, judged honestly.

Convergence is the undamped residual. A fixed point at which a multiplier is below -1/damping or
above 1 repels the iteration although it is a perfectly good solution: Newton finds those.
"""

from __future__ import annotations

import numpy as np

from numerics.protocol import ProblemLike
from numerics.solvers.newton import scaled
from numerics.status import Status
from theory.errors import ParameterError


def damped(
    problem: ProblemLike,
    start,
    params: dict[str, float],
    accuracy: float,
    *,
    tolerance: float,
    damping: float = 0.3,
    max_steps: int = 500,
) -> tuple[np.ndarray, Status, int]:
    """Iterate until the undamped scaled residual is below ``tolerance``.

    Returns
    -------
    x, status, steps
    """
    if problem.form != "fixed_point":
        raise ParameterError(
            f"{problem.name}: damped iteration needs explicit updates; a model without conjugates "
            "has only a gradient: use method='newton'"
        )
    x = np.array(start, dtype=float)
    if not problem.in_domain(x, params):
        return x, Status.LEFT_DOMAIN, 0
    for steps in range(max_steps):
        residual = problem.residual(x, params, accuracy)
        size = scaled(problem, x, params, residual)
        if not np.isfinite(size):
            return x, Status.NON_FINITE, steps
        if size <= tolerance:
            return x, Status.CONVERGED, steps
        step = damping * residual
        for _ in range(30):
            if problem.in_domain(x + step, params):
                break
            step = step / 2
        else:
            return x, Status.LEFT_DOMAIN, steps
        x = x + step
    return x, Status.MAX_STEPS, max_steps
