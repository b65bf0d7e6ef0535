"""Derivative at zero of the polynomial through scattered points."""

from __future__ import annotations

import numpy as np


def derivative(x: np.ndarray, y: np.ndarray) -> float:
    """Slope at x = 0 of the interpolating polynomial through (x, y)."""
    size = float(np.max(np.abs(x)))
    powers = np.vander(x / size, len(x), increasing=True)
    return float(np.linalg.solve(powers, y)[1] / size)
