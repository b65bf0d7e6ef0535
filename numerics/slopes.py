"""Derivatives of a compiled problem's updates: exact, but for entries with a surface term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numerics.differences import LOOSE, central, step_for
from numerics.integrator import SLOPES

if TYPE_CHECKING:
    from numerics.problem import Problem


def update_slopes(problem: Problem, x, params, accuracy: float | None) -> np.ndarray | None:
    """Derivatives of the updates (or of the gradient), one column for each name in ``KNOWN``.

    Parameters
    ----------
    problem : Problem
    x, params
        Where.
    accuracy : float, optional
        Of the expectations; differences do with a loose one.

    Returns
    -------
    (n, n + k) array : unknowns first, then the k parameters whose derivatives are exact; or None
    """
    module = problem.module
    if module.KNOWN is None:
        return None
    c = problem.controls(x, params)
    moments = problem.integrator.moments(c, accuracy, estimate=False, extent=SLOPES)
    loose = accuracy if problem.integrator.smooth else max(accuracy or 0.0, LOOSE)
    sizes = problem.scale(x, params)
    by_unknown = {j: _conjugate_slopes(problem, c, j, sizes[j], loose)
                  for j in dict.fromkeys(j for _, j in module.MISSING)}  # fmt: skip
    missing = np.array([by_unknown[j][i] for i, j in module.MISSING])
    out = np.empty((len(problem.unknowns), len(module.KNOWN)))
    with np.errstate(all="ignore"):
        module.jacobian(c, moments.values, missing, out)
    return out


def _conjugate_slopes(problem: Problem, c, j: int, size: float, accuracy) -> np.ndarray:
    """Derivative of all conjugates with respect to one unknown, by differences."""
    module = problem.module

    def moved(step):
        there = c.copy()
        there[j] += step
        return there

    def inside(step):
        out = np.empty(len(module.DOMAIN))
        module.domain(moved(step), out)
        return bool(np.all(out > 0))

    def value(step):
        there = moved(step)
        out = np.empty(len(problem.conjugates))
        moments = problem.integrator.moments(there, accuracy, estimate=False)
        module.conjugates(there, moments.values, out)
        return out

    return central(value, inside, step_for(problem.roughness) * size)
