"""Expectation of smooth integrands at given nodes."""

import numpy as np
from numba import njit

from numerics.kernels.interface import context, integrands


@njit(cache=True, nogil=True, error_model="numpy")
def smooth_sums(nodes, weights, mean, root, c, n_context, n_moments, sums, magnitudes):
    """Weighted sums of the integrands (and of their absolute values) at ``mean + root @ node``.

    Parameters
    ----------
    nodes : (N, n) array
        Nodes of a rule for the standard normal distribution.
    weights : (N,) array
    mean : (n,) array
    root : (n, n) array
        Square root of the covariance.
    c : array
        Unknowns and parameters.
    sums, magnitudes : (n_moments,) arrays, filled
    """
    ctx = np.empty(n_context)
    out = np.empty(n_moments)
    n = len(mean)
    x = np.empty(n)
    context(c, ctx)
    sums[:] = 0.0
    magnitudes[:] = 0.0
    for k in range(len(weights)):
        for i in range(n):
            x[i] = mean[i]
            for j in range(n):
                x[i] += root[i, j] * nodes[k, j]
        integrands(x, ctx, out)
        for i in range(n_moments):
            sums[i] += weights[k] * out[i]
            magnitudes[i] += abs(weights[k] * out[i])
