"""Smooth expectations by product rules that refine themselves."""

from __future__ import annotations

from numerics.quadrature.moments import Moments, honest_error
from numerics.quadrature.nodes import tensor_hermite

LADDERS = {1: (16, 32, 64, 128, 180, 320, 640, 1280, 2560),
           2: (16, 24, 32, 48, 64, 96, 128, 200, 320), 3: (12, 16, 24, 32, 48),
           4: (8, 12, 16, 20, 24)}  # fmt: skip


def integrate(sums, dimension: int, target: float) -> Moments:
    """Climb a ladder of product rules until the error estimate meets ``target``.

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
            result = Moments(values, honest_error(values, coarse, magnitudes), magnitudes, points)
            if not result.relative_error > target:
                break
        coarse = values
    assert result is not None
    return result
