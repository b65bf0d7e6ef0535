"""Fixed node rules, and scrambled Sobol sets with an error bar: the independent route."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from numerics.quadrature.moments import Moments
from numerics.quadrature.nodes import NodeRule, SobolRule, sobol_normal
from numerics.quadrature.threads import pool, workers


def at_nodes(sums, rule: NodeRule) -> Moments:
    """One fixed rule. Its error is unknown, and reported as infinite."""
    values, magnitudes = sums(rule.nodes, rule.weights)
    return Moments(values, np.full(len(values), np.inf), magnitudes, len(rule.weights))


def sobol(sums, dimension: int, rule: SobolRule) -> Moments:
    """Mean over independent scrambles; the error is the 99 % confidence bound of that mean."""
    weight = np.full(2**rule.log2_points, 0.5**rule.log2_points)

    def one(k):
        return sums(sobol_normal(dimension, rule.log2_points, rule.seed + k), weight)

    results = list(pool(workers()).map(one, range(rule.scrambles)))
    values = np.array([r[0] for r in results])
    magnitudes = np.mean([r[1] for r in results], axis=0)
    spread = values.std(axis=0, ddof=1) / np.sqrt(rule.scrambles)
    factor = stdtrit(rule.scrambles - 1, 0.995)
    points = rule.scrambles * len(weight)
    return Moments(values.mean(axis=0), factor * spread, magnitudes, points)


def sobol_to(
    sums, dimension: int, target: float, *, most: int = 17, always: int | None = None
) -> Moments:
    """Enlarge the sets until the error bar meets ``target`` (relative to the magnitudes).

    That of the first ``always`` moments decides.
    """
    result = None
    for log2_points in range(10, most + 1, 1):
        result = sobol(sums, dimension, SobolRule(log2_points, scrambles=16))
        decisive = slice(always)
        judged = Moments(result.values[decisive], result.errors[decisive],
                         result.magnitudes[decisive], result.points)  # fmt: skip
        if not judged.relative_error > target:
            break
    assert result is not None
    return result
