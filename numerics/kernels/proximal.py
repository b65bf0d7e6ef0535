"""Expectation of functions of the proximal point at given nodes, in any dimension."""

import numpy as np
from numba import njit

from numerics.kernels.interface import nd_context, nd_integrands, nd_loss, nd_slopes, nd_starts


@njit(cache=True, nogil=True, error_model="numpy")
def nd_objective(h, w, precision, ctx):
    """``1/2 (h-w)^T V^{-1} (h-w) + loss(h)``."""
    n = len(h)
    total = nd_loss(h, ctx)
    for i in range(n):
        for j in range(n):
            total += 0.5 * (h[i] - w[i]) * precision[i, j] * (h[j] - w[j])
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def nd_step(gradient, hessian, precision, damping, factor, step):
    """Solve ``(hessian + damping diag(precision)) step = -gradient``; False if not positive."""
    n = len(step)
    for i in range(n):
        for j in range(i + 1):
            entry = hessian[i, j]
            if i == j:
                entry += damping * precision[i, i]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k]
            if i == j:
                if not entry > 0.0:
                    return False
                factor[i, i] = np.sqrt(entry)
            else:
                factor[i, j] = entry / factor[j, j]
    for i in range(n):
        step[i] = -gradient[i]
        for k in range(i):
            step[i] -= factor[i, k] * step[k]
        step[i] /= factor[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            step[i] -= factor[k, i] * step[k]
        step[i] /= factor[i, i]
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def nd_minimise(h, w, precision, ctx, best, lowest, gradient, hessian, work):
    """Local minimum by damped Newton from ``h`` (overwritten); returns the objective.

    It is abandoned (infinity) where it leads to the minimum ``best`` that is known already, or to
    one above ``lowest``: in the basin of a minimum, where the steps are short, the objective falls
    by half of what the slope promises, and five times that is never made up.
    """
    n = len(h)
    factor, step, trial = work[:n], work[n], work[n + 1]
    value = nd_objective(h, w, precision, ctx)
    damping = 0.0  # in units of the precision of each variable, which may differ widely
    for _ in range(100):
        nd_slopes(h, ctx, gradient, hessian)
        for i in range(n):
            for j in range(n):
                gradient[i] += precision[i, j] * (h[j] - w[j])
                hessian[i, j] += precision[i, j]
        while not nd_step(gradient, hessian, precision, damping, factor, step):
            damping = max(4.0 * damping, 1e-2)
        size, reach, distance, slope = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            trial[i] = h[i] + step[i]
            size = max(size, abs(step[i]))
            reach = max(reach, abs(h[i]))
            distance = max(distance, abs(trial[i] - best[i]))
            slope -= gradient[i] * step[i]
        short = damping == 0.0 and size <= 0.3 * (1.0 + reach)
        if short and (distance <= 0.01 * (1.0 + reach) or value - 2.5 * slope > lowest):
            return np.inf
        new = nd_objective(trial, w, precision, ctx)
        if new <= value + 1e-15 * abs(value):
            for i in range(n):
                h[i] = trial[i]
            value = new
            # the next step would be of the order of the square of this one
            if size <= 1e-8 * (1.0 + reach) or (damping == 0.0 and size <= 1e-7 * (1.0 + reach)):
                break
            damping = 0.25 * damping if damping > 1e-3 else 0.0
        else:
            if size <= 1e-10 * (1.0 + reach):
                break
            damping = max(4.0 * damping, 1e-2)
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def proximal_sums(
    nodes, weights, mean, root, precision, c, fields, sources, sizes, local, sums, magnitudes
):
    """Weighted sums of the integrands at the proximal point of ``mean + root @ node``.

    Parameters
    ----------
    nodes : (N, n) array
        Nodes of a rule for the standard normal distribution; ``weights`` (N,).
    mean, root : (n,), (n, n) arrays
        Mean and square root of the covariance.
    precision : array
        Inverse of the response V.
    fields, sources : integer arrays
        Which variables are fields W and which are sources Z.
    sizes : (entries of the context, moments, starting points)
    local : bool
        One local minimisation started at zero instead of the global one. It is wrong where the
        proximal point jumps; it serves comparison with results obtained that way.
    sums, magnitudes : (moments,) arrays, filled
    """
    n, dim = len(fields), len(mean)
    ctx = np.empty(sizes[0])
    out = np.empty(sizes[1])
    starts = np.empty((sizes[2], n))
    x, w, z = np.empty(dim), np.empty(n), np.empty(len(sources))
    h, best = np.empty(n), np.empty(n)
    gradient, hessian, work = np.empty(n), np.empty((n, n)), np.empty((n + 2, n))
    sums[:] = 0.0
    magnitudes[:] = 0.0
    for k in range(len(weights)):
        for i in range(dim):
            x[i] = mean[i]
            for j in range(dim):
                x[i] += root[i, j] * nodes[k, j]
        for i in range(n):
            w[i] = x[fields[i]]
        for i in range(len(sources)):
            z[i] = x[sources[i]]
        nd_context(z, c, ctx)
        best[:] = np.inf
        lowest = np.inf
        if not local:
            nd_starts(w, ctx, starts)
        for s in range(1 if local else sizes[2] + 2):
            for i in range(n):
                h[i] = 0.0 if local or s == 1 else w[i] if s == 0 else starts[s - 2, i]
            value = nd_minimise(h, w, precision, ctx, best, lowest, gradient, hessian, work)
            if value < lowest:
                lowest = value
                best[:] = h
        nd_integrands(w, best, ctx, out)
        for i in range(sizes[1]):
            sums[i] += weights[k] * out[i]
            magnitudes[i] += abs(weights[k] * out[i])
