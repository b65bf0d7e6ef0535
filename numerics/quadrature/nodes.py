"""Node sets for the standard normal distribution."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, roots_hermitenorm


@dataclass(frozen=True, eq=False)
class NodeRule:
    """A fixed rule: nodes and weights for the standard normal distribution in n dimensions.

    Parameters
    ----------
    nodes : (N, n) array
    weights : (N,) array, summing to one
    local : bool
        Use one local minimisation started at zero in place of the global proximal point (wrong
        where it jumps; for comparison with published results).
    """

    nodes: np.ndarray
    weights: np.ndarray
    local: bool = False


@dataclass(frozen=True)
class SobolRule:
    """Scrambled Sobol points with an error bar from independent scrambles.

    Parameters
    ----------
    log2_points : int
        Points per scramble, as a power of two.
    scrambles : int
    seed : int
    """

    log2_points: int = 14
    scrambles: int = 16
    seed: int = 20240203


@functools.cache
def hermite(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes and weights (exact for polynomials up to degree 2n - 1)."""
    nodes, weights = roots_hermitenorm(n)
    return nodes, weights / weights.sum()


@functools.cache
def legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre rule on [0, 1]; empty for n = 0."""
    if n == 0:
        return np.empty(0), np.empty(0)
    x, w = np.polynomial.legendre.leggauss(n)
    return 0.5 * (x + 1), 0.5 * w


MOST_HERMITE = 180


@functools.cache
def normal_rule(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for a standard normal variable: Gauss-Hermite, or the trapezoidal rule.

    With many nodes the trapezoidal rule wins: Gauss-Hermite spends them where the density is
    negligible, while its spacing near zero falls like 1/sqrt(n) only.
    """
    if n <= MOST_HERMITE:
        return hermite(n)
    x = np.linspace(-9.5, 9.5, n)
    weights = np.exp(-0.5 * x**2)
    return x, weights / weights.sum()


@functools.lru_cache(maxsize=8)
def tensor_hermite(n: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Product of one-dimensional rules; negligible weights are left out."""
    nodes, weights = normal_rule(n)
    grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1)
    weight = functools.reduce(np.multiply.outer, [weights] * dimension)
    kept = weight.ravel() > 1e-22
    return np.ascontiguousarray(grid.reshape(-1, dimension)[kept]), weight.ravel()[kept]


def sobol_normal(dimension: int, log2_points: int, seed: int) -> np.ndarray:
    """One scrambled Sobol set mapped to standard normal variables, (2**log2_points, dimension)."""
    from scipy.stats import qmc  # slow to import, and rarely needed

    sampler = qmc.Sobol(dimension, scramble=True, rng=np.random.default_rng(seed))
    return ndtri(np.clip(sampler.random_base2(log2_points), 1e-16, 1 - 1e-16))


def pairwise_degree7() -> tuple[np.ndarray, np.ndarray]:
    """The 12-point degree-7 rule for a two-dimensional Gaussian (Stroud's E2^{r^2} 7-1)."""
    root = np.sqrt
    r = root(3.0)
    s, t = root((9 - 3 * root(5.0)) / 8), root((9 + 3 * root(5.0)) / 8)
    A, B, C = 1 / 36, (5 + 2 * root(5.0)) / 45, (5 - 2 * root(5.0)) / 45
    nodes, weights = [], []
    for sign in (1, -1):
        nodes += [(sign * r, 0.0), (0.0, sign * r)]
        weights += [A, A]
    for radius, weight in ((s, B), (t, C)):
        for signs in itertools.product((1, -1), repeat=2):
            nodes.append((signs[0] * radius, signs[1] * radius))
            weights.append(weight)
    # exp(-x^2 - y^2) has variance 1/2
    return np.array(nodes) * root(2.0), np.array(weights)


def product_of_pairs(pairs: tuple[tuple[int, int], ...]) -> NodeRule:
    """Product of the 12-point rule over pairs of coordinates (144 nodes for two pairs)."""
    nodes, weights = pairwise_degree7()
    dimension = 2 * len(pairs)
    points, totals = [], []
    for combination in itertools.product(range(len(weights)), repeat=len(pairs)):
        x = np.zeros(dimension)
        for pair, k in zip(pairs, combination, strict=True):
            x[list(pair)] = nodes[k]
        points.append(x)
        totals.append(np.prod(weights[list(combination)]))
    return NodeRule(np.array(points), np.array(totals), local=True)
