"""Polynomials through scattered points: a slope, and a limit with its error."""

from __future__ import annotations

import math

import numpy as np


def derivative(x: np.ndarray, y: np.ndarray) -> float:
    """Slope at x = 0 of the interpolating polynomial through (x, y)."""
    size = float(np.max(np.abs(x)))
    powers = np.vander(x / size, len(x), increasing=True)
    return float(np.linalg.solve(powers, y)[1] / size)


def limit(squares: np.ndarray, values: np.ndarray, most: int = 7) -> tuple[float, float]:
    """Limit of ``values`` as ``squares`` (squared distances) go to zero, and its error.

    A polynomial through the last points, thinned so that the squares fall by 0.6 each. Rounding
    grows towards the end and truncation away from it: the error is five times the larger of the
    changes when the first, or the last, node is left out.
    """
    chosen: list[int] = []
    level = 0.0
    for k in np.argsort(squares):
        if squares[k] >= level:
            chosen.append(int(k))
            level = squares[k] / 0.6
    chosen = chosen[:most]
    x, y = squares[chosen], values[chosen]
    if len(x) < 3:
        return float(y[0]), math.inf
    fine = _at_zero(x, y)
    change = max(abs(fine - _at_zero(x[1:], y[1:])), abs(fine - _at_zero(x[:-1], y[:-1])))
    return fine, 5 * change + 1e-14 * abs(fine)


def _at_zero(x: np.ndarray, y: np.ndarray) -> float:
    """Value at zero of the polynomial through the points (Neville)."""
    table = np.array(y, dtype=float)
    for k in range(1, len(x)):
        table = (x[k:] * table[:-1] - x[:-k] * table[1:]) / (x[k:] - x[:-k])
    return float(table[0])
