"""Polynomials through scattered points: a slope, and a limit with its error."""

from __future__ import annotations

import math

import numpy as np


def derivative(x: np.ndarray, y: np.ndarray) -> float:
    """Slope at x = 0 of the interpolating polynomial through (x, y)."""
    size = float(np.max(np.abs(x)))
    powers = np.vander(x / size, len(x), increasing=True)
    return float(np.linalg.solve(powers, y)[1] / size)


def limit(distances: np.ndarray, values: np.ndarray, noise: np.ndarray) -> tuple[float, float]:
    """Limit of ``values`` as ``distances`` go to zero, and its error.

    A polynomial in the distance or, where a symmetry makes the values even, in its square:
    whichever leaves the smaller error. ``noise`` is the error of each value.
    """
    even, any_ = _limit(distances**2, values, noise), _limit(distances, values, noise)
    return min((even, any_), key=lambda r: r[1])


def _limit(x: np.ndarray, y: np.ndarray, noise: np.ndarray, most: int = 7):
    """Through the last points, thinned so that x falls by a factor each.

    Noise grows towards the end and truncation away from it: the error is five times the largest of
    the changes when the first, or the last, node is left out (or a tenth of that when the next to
    last is, too), plus what the noise of all makes.
    """
    chosen: list[int] = []
    level = 0.0
    for k in np.argsort(x):
        if x[k] >= level:
            chosen.append(int(k))
            level = x[k] / 0.7
    chosen = chosen[:most]
    x, y, noise = x[chosen], y[chosen], noise[chosen]
    if len(x) < 4:
        return float(y[0]), math.inf
    fine, lower, lowest = _at_zero(x, y), _at_zero(x[:-1], y[:-1]), _at_zero(x[:-2], y[:-2])
    change = max(abs(fine - _at_zero(x[1:], y[1:])), abs(fine - lower), 0.1 * abs(lower - lowest))
    units = zip(np.eye(len(x)), noise, strict=True)
    amplified = sum(abs(_at_zero(x, unit)) * e for unit, e in units)
    return fine, 5 * change + 2 * float(amplified) + 1e-14 * abs(fine)


def _at_zero(x: np.ndarray, y: np.ndarray) -> float:
    """Value at zero of the polynomial through the points (Neville)."""
    table = np.array(y, dtype=float)
    for k in range(1, len(x)):
        table = (x[k:] * table[:-1] - x[:-k] * table[1:]) / (x[k:] - x[:-k])
    return float(table[0])
