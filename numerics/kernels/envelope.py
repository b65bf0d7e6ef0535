"""Jumps of a planar proximal point along a line: gaps of the convex envelope of its objective."""

import math

import numpy as np
from numba import njit

from numerics.kernels.interface import derivatives, loss
from numerics.kernels.minima import minimise

MOST = 84  # nodes on half of a grid
GAPS = 16  # jumps on one line


@njit(cache=True, nogil=True, error_model="numpy")
def newton(a, b, u, v, Va, Vb, ctx):
    """Newton step (du, dv), objective after it, d(u, v)/da, and whether it is convex here."""
    value, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
    g_u, g_v = (u - a) / Va + l_u, (v - b) / Vb + l_v
    h_uu, h_vv = 1.0 / Va + l_uu, 1.0 / Vb + l_vv
    det = h_uu * h_vv - l_uv * l_uv
    du, dv = -(h_vv * g_u - l_uv * g_v) / det, -(h_uu * g_v - l_uv * g_u) / det
    value += 0.5 * (u - a) * (u - a) / Va + 0.5 * (v - b) * (v - b) / Vb
    value += 0.5 * (g_u * du + g_v * dv)
    return du, dv, value, h_vv / (Va * det), -l_uv / (Va * det), h_uu > 0.0 and det > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def maxwell(a, b, uL, vL, uR, vR, Va, Vb, ctx):
    """Field at which two minima have equal energy: (a, uL, vL, uR, vR, status).

    Newton on both minima and the field at once, with separate minimisations where it misleads.
    Status 1: found; 0: the two minima are one; -1: not converged.
    """
    resets = 0
    for _ in range(60):
        width = uR - uL
        duL, dvL, fL, puL, pvL, convexL = newton(a, b, uL, vL, Va, Vb, ctx)
        duR, dvR, fR, puR, pvR, convexR = newton(a, b, uR, vR, Va, Vb, ctx)
        longest = max(abs(duL), abs(duR), 0.2 * abs(dvL), 0.2 * abs(dvR))
        if not (convexL and convexR and longest <= 0.3 * width):
            resets += 1
            if resets > 8:
                return a, uL, vL, uR, vR, -1
            uL, vL, _ = minimise(a, b, uL, vL, Va, Vb, 1e-9, ctx)
            uR, vR, _ = minimise(a, b, uR, vR, Va, Vb, 1e-9, ctx)
            if not uR - uL > 1e-6 * (1.0 + abs(uL)):
                return a, uL, vL, uR, vR, 0
            continue
        da = Va * (fR - fL) / (width + duR - duL)
        limit = 0.4 * width / max(puL, puR)
        da = min(max(da, -limit), limit)
        uL, vL, uR, vR = (
            uL + duL + puL * da,
            vL + dvL + pvL * da,
            uR + duR + puR * da,
            vR + dvR + pvR * da,
        )
        a += da
        moved = longest + max(puL, puR) * abs(da)
        if moved <= 1e-7 * width:
            return a, uL, vL, uR, vR, 1
    return a, uL, vL, uR, vR, -1


@njit(cache=True, nogil=True, error_model="numpy")
def lower_hull(x, y, n, hull):
    """Indices of the lower convex hull of n points with ascending x; their number."""
    top = 0
    for i in range(n):
        while top >= 2:
            j, k = hull[top - 1], hull[top - 2]
            if (y[j] - y[k]) * (x[i] - x[j]) < (y[i] - y[j]) * (x[j] - x[k]):
                break
            top -= 1
        hull[top] = i
        top += 1
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def spacing(x):
    """Distance of grid nodes: fine at zero and at the logistic's valleys, whose width is 1/x."""
    return min(0.03 + 0.08 * abs(x), 0.19) + max(0.15 * (abs(x) - 8.0), 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def tabulate(nu, nv, grid, grid_v, Vb, ctx, table, hulls, tops):
    """Loss on the rows u >= 0 of the grid, and each row's hull of ``loss + v^2/2Vb``."""
    lifted = np.empty(2 * nv + 1)
    for i in range(nu + 1):
        u = grid[i]
        for j in range(2 * nv + 1):
            table[i, j] = loss(u, grid_v[j], ctx)
            lifted[j] = table[i, j] + 0.5 * grid_v[j] * grid_v[j] / Vb
        tops[i] = lower_hull(grid_v, lifted, 2 * nv + 1, hulls[i])


@njit(cache=True, nogil=True, error_model="numpy")
def lowest_vertex(row, hull, top, grid_v, b, Vb):
    """Grid index that minimises ``row + (v-b)^2/2Vb``: bisection on the slopes of the hull."""
    left, right = 0, top - 1
    while left < right:
        middle = (left + right) // 2
        j, k = hull[middle], hull[middle + 1]
        rise = (row[k] - row[j]) / (grid_v[k] - grid_v[j])
        if rise + (0.5 * (grid_v[k] + grid_v[j]) - b) / Vb < 0.0:
            left = middle + 1
        else:
            right = middle
    return hull[left]


@njit(cache=True, nogil=True, error_model="numpy")
def settle(u, v, b, Vb, bound, tolerance, ctx):
    """v(u) by Newton from v: (v, l_u, dv/du, curvature along the curve less 1/Va, regular)."""
    for _ in range(30):
        _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
        across = 1.0 / Vb + l_vv
        slope = (v - b) / Vb + l_v
        dv = -slope / across if across > 0.0 else -slope * Vb
        dv = min(max(dv, -bound), bound)
        v += dv
        if abs(dv) <= tolerance * (1.0 + abs(v)):
            break
    tilt = -l_uv / across
    return v, l_u + l_uv * dv, tilt, l_uu + l_uv * tilt, across > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def scan(low, high, b, nu, grid, grid_v, Va, Vb, table, hulls, tops, ctx, nodes):
    """Global phi on the grid nodes that the fields from low to high can reach.

    Returns their range of indices. Rows of ``nodes``: u, v, dv/du, a, da/du, phi.
    """
    first, last, below, above = 0, 0, np.inf, np.inf
    for k in range(2 * nu + 1):
        i, sign = abs(k - nu), 1.0 if k >= nu else -1.0
        j = lowest_vertex(table[i], hulls[i], tops[i], grid_v, sign * b, Vb)
        u, v = sign * grid[i], sign * grid_v[j]
        phi = table[i, j] + 0.5 * (v - b) * (v - b) / Vb + 0.5 * u * u / Va
        nodes[0, k], nodes[1, k], nodes[5, k] = u, v, phi
        if phi - u * low / Va < below:
            first, below = k, phi - u * low / Va
        if phi - u * high / Va < above:
            last, above = k, phi - u * high / Va
    begin, end, slack = first, first - 1, 0.0
    first, last = max(first - 2, 0), min(last + 2, 2 * nu)
    while first < begin or last > end:
        for k in range(first, last + 1):
            if begin <= k <= end:
                continue
            u, v = nodes[0, k], nodes[1, k]
            v, l_u, tilt, curvature, regular = settle(u, v, b, Vb, spacing(v), 1e-4, ctx)
            nodes[1, k], nodes[2, k] = v, tilt
            nodes[3, k], nodes[4, k] = u + Va * l_u, 1.0 + Va * curvature if regular else -1.0
            phi = 0.5 * (v - b) * (v - b) / Vb + loss(u, v, ctx) + 0.5 * u * u / Va
            slack = max(slack, nodes[5, k] - phi)
            nodes[5, k] = phi
            below, above = min(below, phi - u * low / Va), min(above, phi - u * high / Va)
        begin, end = first, last
        # all nodes that the true minimum over v, below that of the table, may bring into play
        for k in range(2 * nu + 1):
            near = nodes[5, k] - 2.0 * slack
            if near - nodes[0, k] * low / Va < below or near - nodes[0, k] * high / Va < above:
                first, last = min(first, max(k - 2, 0)), max(last, min(k + 2, 2 * nu))
    return begin, end + 1


@njit(cache=True, nogil=True, error_model="numpy")
def normal_mass(low, high, mean, sd):
    """Gaussian mass of an interval."""
    scale = 1.0 / (math.sqrt(2.0) * sd)
    return 0.5 * (math.erf((high - mean) * scale) - math.erf((low - mean) * scale))


@njit(cache=True, nogil=True, error_model="numpy")
def find_gaps(nodes, n, b, mean, sd, Va, Vb, ctx, hull, gaps):
    """Jumps of the proximal point: (number, mass around those that could not be resolved).

    Rows of ``gaps``: a, uL, vL, uR, vR.
    """
    top = lower_hull(nodes[0], nodes[5], n, hull)
    count, covered, lost = 0, 0, 0.0
    for h in range(1, top):
        i, j = hull[h - 1], hull[h]
        if j - i == 1:
            du, dv = nodes[0, j] - nodes[0, i], nodes[1, j] - nodes[1, i]
            bend = abs(dv - 0.5 * du * (nodes[2, i] + nodes[2, j]))
            branch = bend > 0.1 * (abs(dv) + 0.1 * du) and bend > 0.02
            if nodes[4, i] > 0.0 and nodes[4, j] > 0.0 and not branch:
                continue
        a = Va * (nodes[5, j] - nodes[5, i]) / (nodes[0, j] - nodes[0, i])
        while i > 0 and nodes[4, i] <= 0.0:
            i -= 1
        while j < n - 1 and nodes[4, j] <= 0.0:
            j += 1
        if j <= covered or count == GAPS:
            continue
        covered = j
        a, uL, vL, uR, vR, status = maxwell(
            a, b, nodes[0, i], nodes[1, i], nodes[0, j], nodes[1, j], Va, Vb, ctx
        )
        while status == 1 and count > 0 and uL < gaps[count - 1, 3]:
            # two jumps overlap: one from the outer minima takes their place
            count -= 1
            a, uL, vL, uR, vR, status = maxwell(
                0.5 * (a + gaps[count, 0]), b, gaps[count, 1], gaps[count, 2], uR, vR, Va, Vb, ctx
            )
        if status == -1:
            lost += abs(normal_mass(nodes[3, i], nodes[3, j], mean, sd))
        if status == 1:
            gaps[count, 0], gaps[count, 1], gaps[count, 2] = a, uL, vL
            gaps[count, 3], gaps[count, 4] = uR, vR
            count += 1
    return count, lost
