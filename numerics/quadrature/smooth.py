"""Smooth expectations by product rules that refine themselves."""

from __future__ import annotations

import numpy as np

from numerics.quadrature.moments import Moments, honest_error
from numerics.quadrature.nodes import tensor_hermite

# even and odd in turn: a feature at zero between the nodes of one rule is seen by the next
LADDERS = {1: (16, 33, 64, 129, 180, 321, 640, 1281, 2560),
           2: (16, 25, 32, 49, 64, 97, 128, 201, 320), 3: (12, 17, 24, 33, 48),
           4: (8, 13, 16, 21, 24)}  # fmt: skip
REACH = 9.0  # standard deviations; all rules end not far beyond


def integrate(sums, dimension: int, target: float) -> Moments:
    """Climb a ladder of product rules until the error estimate meets ``target``.

    All rules end at 9.5 to 10 standard deviations, so that their differences say nothing about
    what lies beyond: it is bounded by twice what the outermost nodes
    contribute.

    Parameters
    ----------
    sums : callable
        ``sums(nodes, weights) -> (sums, magnitudes)``.
    dimension : int
        At most 4; more is for quasi-Monte-Carlo.
    target : float
        Relative error, in units of the magnitudes.
    """
    points, coarse, result = 0, None, None
    for n in LADDERS[dimension]:
        nodes, weights = tensor_hermite(n, dimension)
        values, magnitudes = sums(nodes, weights)
        points += len(weights)
        if coarse is not None:
            error = honest_error(values, coarse, magnitudes)
            outer = np.max(np.abs(nodes), axis=1) > REACH
            if np.any(outer):
                error = error + 2 * sums(nodes[outer], weights[outer])[1]
            result = Moments(values, error, magnitudes, points)
            if not result.relative_error > target:
                break
        coarse = values
    assert result is not None
    return result
