"""Where two branches that leave a third one by symmetry breaking are born together.

There a first-order line between the two ends, and two lines of pitchforks meet: a bicritical point.
It is a point of the third branch at which a transverse rate of either kind vanishes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from numerics.continuation.stability import rates, whole
from numerics.protocol import ProblemLike
from numerics.solvers import solve
from numerics.solvers.derivatives import LOOSE, inside


def parent(a: ProblemLike, b: ProblemLike) -> ProblemLike | None:
    """The branch with all order parameters that a and b share, where these are fewer than either's.

    None where there is no such branch, or its stability is not known from its own equations.
    """
    one, other = set(a.unknowns), set(b.unknowns)
    if one <= other or other <= one:
        return None
    for problem in getattr(whole(a), "family", []):
        if set(problem.unknowns) == one & other and hasattr(problem, "transverse"):
            return problem
    return None


def bicritical(
    a: ProblemLike,
    b: ProblemLike,
    state: Mapping[str, float],
    params: Mapping[str, float],
    parameters: tuple[str, str],
    sizes: np.ndarray,
    accuracy: float,
) -> tuple[dict[str, float], dict[str, float]] | None:
    """Both parameters of the bicritical point near a state, and their errors; None if not found.

    Parameters
    ----------
    state : mapping
        Order parameters of a or b near the point.
    params : mapping
        All parameters near the point.
    parameters : (str, str)
        Those to solve for.
    sizes : (2,) array
        Their natural sizes.
    accuracy : float
        Of the expectations.
    """
    third = parent(a, b)
    if third is None:
        return None
    alive = [[u for u in p.unknowns if u not in third.unknowns] for p in (a, b)]
    n = len(third.unknowns)

    def split(y):
        return y[:n], {**params, **dict(zip(parameters, map(float, y[n:]), strict=True))}

    def residual(y, level):
        """With its error."""
        x, values = split(y)
        found = third.evaluate(x, values, level)
        names, matrix, errors = third.transverse(x, values, level)
        soft, doubt = [], []
        for group in alive:
            at = [names.index(u) for u in group]
            own = rates(third, matrix[np.ix_(at, at)]).real
            soft.append(own[np.argmin(np.abs(own))])
            doubt.append(float(np.max(errors[np.ix_(at, at)].sum(axis=1))))
        return (np.append(found.residual, soft),
                np.append(found.residual_error, doubt))  # fmt: skip

    def jacobian(y, scale):
        columns = []
        for k, size in enumerate(scale):
            step = np.zeros(len(y))
            step[k] = 2e-3 * size
            ahead, behind = residual(y + step, LOOSE)[0], residual(y - step, LOOSE)[0]
            columns.append((ahead - behind) / (2 * step[k]))
        return np.column_stack(columns)

    first = solve(third, params, [state[u] for u in third.unknowns], accuracy=LOOSE, refine=False,
                  raise_on_failure=False)  # fmt: skip
    y = np.array([*first.x, *(params[p] for p in parameters)])
    if not all(set(group) <= set(third.transverse(*split(y), LOOSE)[0]) for group in alive):
        return None
    scale = np.append(third.scale(*split(y)), sizes)
    inverse = None
    for _ in range(12):
        try:
            inverse = np.linalg.inv(jacobian(y, scale)) if inverse is None else inverse
        except np.linalg.LinAlgError:
            return None
        value, doubt = residual(y, accuracy)
        step = -inverse @ value
        if not np.max(np.abs(step) / scale) < 0.2 or not inside(third, *split(y + step)):
            return None
        y = y + step
        if np.max(np.abs(step) / scale) < accuracy:
            errors = np.abs(inverse) @ (np.abs(value) + doubt)
            return (dict(zip(parameters, map(float, y[n:]), strict=True)),
                    dict(zip(parameters, map(float, errors[n:]), strict=True)))  # fmt: skip
    return None
