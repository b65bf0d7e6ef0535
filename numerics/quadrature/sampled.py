"""Fixed node rules, and scrambled Sobol sets with an error bar: any dimension."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from numerics.quadrature.moments import Moments
from numerics.quadrature.nodes import NodeRule, SobolRule, sobol_normal
from numerics.quadrature.threads import pool, workers

BLOCK = 2**11  # nodes for one task
SCRAMBLES = 8
COARSEST, FINEST = 12, 16  # binary logarithm of the points of a scramble
COARSE = 4e-4  # the accuracy asked from which on the coarsest sets serve
FINEST_TARGET = COARSE * 2.0 ** (COARSEST - FINEST)


def at_nodes(sums, rule: NodeRule) -> Moments:
    """One fixed rule. Its error is unknown, and reported as infinite."""
    values, magnitudes = sums(rule.nodes, rule.weights)
    return Moments(values, np.full(len(values), np.inf), magnitudes, len(rule.weights))


def sobol(sums, dimension: int, rule: SobolRule) -> Moments:
    """Mean over independent scrambles; the error is the 99 % confidence bound of that mean.

    Blocks of nodes are dealt to threads and added in a fixed order: same bits for any number of
    threads.
    """
    size = 2**rule.log2_points
    blocks = max(1, size // BLOCK)
    weight = np.full(size // blocks, 1.0 / size)
    threads = pool(workers())
    values, magnitudes = [], []
    for k in range(rule.scrambles):
        nodes = sobol_normal(dimension, rule.log2_points, rule.seed + k)
        parts = list(threads.map(lambda part: sums(part, weight), np.split(nodes, blocks)))
        values.append(np.sum([p[0] for p in parts], axis=0))
        magnitudes.append(np.sum([p[1] for p in parts], axis=0))
    spread = np.std(values, axis=0, ddof=1) / np.sqrt(rule.scrambles)
    error = stdtrit(rule.scrambles - 1, 0.995) * spread
    mean, size_of_terms = np.mean(values, axis=0), np.mean(magnitudes, axis=0)
    # equal replicates say nothing about rounding
    error = np.maximum(error, 1e-14 * size_of_terms)
    return Moments(mean, error, size_of_terms, rule.scrambles * size)


def sobol_for(sums, dimension: int, target: float) -> Moments:
    """Sets whose size depends on ``target`` alone, so that the sums are functions of the state.

    They double where ``target`` halves, up to 2**16 points in each of 8 scrambles; the error says
    what they reach, which is less than was asked: differences between states at equal nodes, which
    a solver needs, are far more accurate than the values.
    """
    finer = int(np.ceil(np.log2(COARSE / target)))
    log2_points = min(max(COARSEST + finer, COARSEST), FINEST)
    return sobol(sums, dimension, SobolRule(log2_points, SCRAMBLES))
