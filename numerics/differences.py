"""Difference quotients for functions that are known to a given noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LOOSE = 4e-4  # accuracy good enough for differences, and for states far from the solution


def step_for(noise: float) -> float:
    """Relative step of central differences: the cube root of the noise."""
    return min(max(noise ** (1 / 3), 5e-6), 1e-2)


@np.errstate(all="ignore")
def central(
    value: Callable[[float], np.ndarray], inside: Callable[[float], bool], step: float
) -> np.ndarray:
    """Central difference at zero; one-sided of second order where one side is out of bounds.

    Parameters
    ----------
    value : callable
        The function of a displacement.
    inside : callable
        Whether a displacement is within bounds.
    step : float
    """
    if inside(step) and inside(-step):
        return (value(step) - value(-step)) / (2 * step)
    h = step if inside(step) else -step
    if not inside(2 * h):
        return np.full(len(value(0.0)), np.nan)
    return (4 * value(h) - value(2 * h) - 3 * value(0.0)) / (2 * h)
