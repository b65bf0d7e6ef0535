"""Integral over the whole plane of proximal points: analytic, whatever the proximal point does.

With the proximal point (u, v) as variable the fields are explicit, ``a = u + Va l_u`` and
``b = v + Vb l_v``, and the Gaussian density times ``det d(a, b)/d(u, v)`` is an entire function
that decays: the trapezoidal rule converges geometrically, without a single root. Points that are
not global minima are counted, too; `numerics.kernels.fold` takes them back.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.fold import whitened
from numerics.kernels.interface import (
    context,
    derivatives,
    features,
    moments_of_features,
    of_features,
    slopes_of_features,
)
from numerics.kernels.jumps import JUMP
from numerics.kernels.lens import explained, lens

CELL = 4  # points along each side of the cells that are kept or dropped as a whole
LINES = 8  # across half of a lens, to tell which points belong to it


@njit(cache=True, nogil=True, error_model="numpy")
def plane_features(us, steps, half, table):
    """What depends on the proximal point alone, at ``(us[i], steps[i] (j - half))``."""
    for i in range(len(us)):
        for j in range(table.shape[1]):
            features(us[i], steps[i] * (j - half), table[i, j])


@njit(cache=True, nogil=True, error_model="numpy")
def plane_scales(zus, zvs, distances, field, response, us, vs, reach, digits, c, n_context,
                 across, along, extent):  # fmt: skip
    """Spacings of a grid of proximal points that resolve the density at some pairs of sources.

    A trapezoidal rule of spacing h errs by exp(-2 (pi w / h)^2) on a Gaussian of width w, times the
    density; that of twice the spacing is to err by less than exp(-digits / 2).

    Parameters
    ----------
    zus, zvs, distances : arrays
        Pairs of sources and the squares of their distances from zero, in standard deviations.
    us, vs : arrays
        A coarse grid.
    across : (1,) array
        Reduced to the spacing in u.
    along : (len(us),) array
        Reduced to the spacing in v on each row.
    extent : (2,) array
        Raised to the largest u and v, in size, that matter.
    """  # fmt: skip
    Va, Vb = response[0], response[1]
    ctx = np.empty(n_context)
    for row in range(len(zus)):
        context(zus[row], zvs[row], c, ctx)
        middle = field[0] + field[1] * zus[row] + field[2] * zvs[row]
        centre = field[4] + field[5] * zus[row] + field[6] * zvs[row]
        for i in range(len(us)):
            for j in range(len(vs)):
                _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(us[i], vs[j], ctx)
                x, y = whitened(us[i], vs[j], l_u, l_v, middle, centre, field, Va, Vb)
                t = x * x + y * y + distances[row]
                if t > reach * reach:
                    continue
                extent[0], extent[1] = max(extent[0], abs(us[i])), max(extent[1], abs(vs[j]))
                rest = math.sqrt(max(digits - t, 0.25 * digits))
                x_u, x_v = Vb * l_uv / field[3], (1.0 + Vb * l_vv) / field[3]
                y_u = (1.0 + Va * l_uu - field[7] * x_u) / field[8]
                y_v = (Va * l_uv - field[7] * x_v) / field[8]
                h = math.pi / (rest * math.sqrt(x_u * x_u + y_u * y_u))
                across[0] = min(across[0], h)
                h = math.pi / (rest * math.sqrt(x_v * x_v + y_v * y_v))
                along[i] = min(along[i], h)


@njit(cache=True, nogil=True, error_model="numpy")
def out_of_reach(grid, i, j, reach):
    """Whether a cell, to judge by its corners, lies beyond the range of the density."""
    p, q, r, s = grid[i, j], grid[i + 1, j], grid[i, j + 1], grid[i + 1, j + 1]
    low, high = min(min(p, q), min(r, s)), max(max(p, q), max(r, s))
    pad = reach + 0.5 * (high - low)
    return low > pad or high < -pad


@njit(cache=True, nogil=True, error_model="numpy")
def plane_sums(first, last, zus, zvs, zweights, reaches, field, response, us, steps, half, table,
               c, n_context, n_moments, sums, sizes, checks):  # fmt: skip
    """Rows ``first:last`` of the sums, one row for each pair of sources.

    Parameters
    ----------
    zus, zvs, zweights, reaches : arrays
        Sources, their weights, and the range of (xi, xi') for each, in standard deviations.
    field : (9,) array
        b = f0 + f1 zu + f2 zv + f3 xi and a = f4 + f5 zu + f6 zv + f7 xi + f8 xi'.
    response : (2,) array
        Va and Vb.
    us, steps, half, table
        Grid of proximal points ``(us[i], steps[i] (j - half))`` and their features
        (`plane_features`); the spacing of ``us`` is even.
    sums : (rows, 3, moments) array, filled with the sums over all points, over those of even i
        (twice), and over those of even j (twice)
    sizes : (rows, moments) array, filled with sums of magnitudes
    checks : (rows, 3) array, filled with the mass, the mass of folded points out of the lens, and
        the number of points
    """  # fmt: skip
    Va, Vb = response[0], response[1]
    ctx, out = np.empty(n_context), np.empty(n_moments)
    cusp, jumps = np.zeros(5), np.empty((LINES + 1, JUMP))
    rows, columns = (len(us) - 1) // CELL + 1, (table.shape[1] - 1) // CELL + 1
    xs, ys = np.empty((rows, columns)), np.empty((rows, columns))
    total = np.empty((4, n_moments))  # by the parities of i and j
    for row in range(first, last):
        zu, zv = zus[row], zvs[row]
        context(zu, zv, c, ctx)
        middle = field[0] + field[1] * zu + field[2] * zv
        centre = field[4] + field[5] * zu + field[6] * zv
        norm = zweights[row] * (us[1] - us[0]) / (2.0 * math.pi * field[3] * field[8])
        reach = reaches[row]
        sizes[row], checks[row], total[:] = 0.0, 0.0, 0.0
        edge, count, looked = 0.0, 0, False
        for i in range(rows):
            for j in range(columns):
                u, v = us[CELL * i], steps[CELL * i] * (CELL * j - half)
                l_u, l_v = slopes_of_features(u, v, table[CELL * i, CELL * j], ctx)
                xs[i, j], ys[i, j] = whitened(u, v, l_u, l_v, middle, centre, field, Va, Vb)
        for i in range(rows - 1):
            for j in range(columns - 1):
                if out_of_reach(xs, i, j, reach) or out_of_reach(ys, i, j, reach):
                    continue
                for k in range(CELL * CELL):
                    p, q = CELL * i + k // CELL, CELL * j + k % CELL
                    u, v = us[p], steps[p] * (q - half)
                    l_u, l_v, l_uu, l_uv, l_vv = of_features(u, v, table[p, q], ctx)
                    x, y = whitened(u, v, l_u, l_v, middle, centre, field, Va, Vb)
                    t = x * x + y * y
                    if t > reach * reach:
                        continue
                    det = (1.0 + Va * l_uu) * (1.0 + Vb * l_vv) - Va * Vb * l_uv * l_uv
                    weight = norm * steps[p] * det * math.exp(-0.5 * t)
                    checks[row, 0] += weight
                    checks[row, 2] += 1.0
                    if det < 0.0:
                        if not looked:
                            limit = abs(middle) + reach * field[3]
                            edge, count = lens(
                                limit, limit, len(jumps) - 1, cusp, Va, Vb, ctx, jumps
                            )
                            looked = True
                        if not explained(u, v + Vb * l_v, edge, jumps, count):
                            checks[row, 1] -= weight
                    a, b = u + Va * l_u, v + Vb * l_v
                    moments_of_features(a, b, u, v, table[p, q], ctx, out)
                    kind = 2 * (p % 2) + q % 2
                    for m in range(n_moments):
                        term = weight * out[m]
                        total[kind, m] += term
                        sizes[row, m] += abs(term)
        for m in range(n_moments):
            sums[row, 0, m] = total[0, m] + total[1, m] + total[2, m] + total[3, m]
            sums[row, 1, m] = 2.0 * (total[0, m] + total[1, m])
            sums[row, 2, m] = 2.0 * (total[0, m] + total[2, m])
