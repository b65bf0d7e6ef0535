"""Newton that is repelled by the solutions already known.

Farrell, Birkisson & Funke, SIAM J. Sci. Comput. 37, A2026 (2015): F(x) is multiplied by
prod_i (1/|x - x_i|^2 + 1). The step is Newton's times a number, so that no new matrix is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from numerics.protocol import ProblemLike, equation_scale
from numerics.solvers.derivatives import state_jacobian
from theory.errors import DomainError


def deflated(
    problem: ProblemLike,
    start: np.ndarray,
    params: Mapping[str, float],
    known: Sequence[np.ndarray],
    *,
    accuracy: float = 1e-10,
    max_steps: int = 30,
) -> np.ndarray | None:
    """A solution that is none of ``known``, or None.

    Parameters
    ----------
    problem : Problem
        Smooth.
    start : array
    known : sequence of arrays
        Solutions to stay away from.
    """
    x = np.array(start, dtype=float)
    if not problem.in_domain(x, params):
        return None
    for _ in range(max_steps):
        residual = problem.residual(x, params, accuracy)
        scale = problem.scale(x, params)
        if not np.all(np.isfinite(residual)):
            return None
        if np.max(np.abs(residual) / equation_scale(problem, x, params)) < 1e-12:
            break
        try:
            move = -np.linalg.solve(state_jacobian(problem, x, params, accuracy), residual)
        except (np.linalg.LinAlgError, DomainError):  # a difference may step over the edge
            return None
        # log-derivative of the deflation operator along the step
        pull = 0.0
        for other in known:
            off = (x - other) / scale
            square = float(off @ off)
            if square == 0.0:
                return None
            pull += float(-2.0 * off @ (move / scale) / (square * square) / (1.0 / square + 1.0))
        move = move / (1.0 - pull) if pull != 1.0 else move
        longest = float(np.max(np.abs(move) / scale))
        if not np.isfinite(longest):
            return None
        move *= min(1.0, 1.0 / max(longest, 1e-300))
        for _ in range(20):
            if problem.in_domain(x + move, params):
                break
            move = 0.5 * move
        else:
            return None
        x = x + move
        if longest < 1e-14:
            break
    else:
        return None
    scale = problem.scale(x, params)
    rows = equation_scale(problem, x, params)
    if np.max(np.abs(problem.residual(x, params, accuracy)) / rows) > 1e-9:
        return None
    if any(np.max(np.abs(x - other) / scale) < 1e-6 for other in known):
        return None
    return x
