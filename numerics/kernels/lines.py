"""Expectation over a planar model, every line resolved by the convex envelope of its objective.

For fixed sources (zu, zv) and transverse field b the proximal point moves along a curve
``(u, v(u))`` as the field a runs, with ``a(u) = u + Va l_u(u, v(u))`` explicit: integrating over u
in place of a needs no root in u. The u that are global minimisers for some a are those where
``phi(u) = u^2/2Va + min_v [(v-b)^2/2Vb + loss]`` touches its convex envelope; the gaps are the
jumps of the proximal point, with an equal-energy (Maxwell) condition at each.

The loss is tabulated once for each (zu, zv). For each row of the table the minimum over v at *any*
b is a vertex of a convex hull (a proximal map again), so that a global phi on the grid, hence
every jump wide enough to matter, costs a few operations a node on every line.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.envelope import (
    GAPS,
    MOST,
    find_gaps,
    normal_mass,
    scan,
    settle,
    spacing,
    tabulate,
)
from numerics.kernels.interface import context, derivatives, loss, moments
from numerics.kernels.jumps import opening
from numerics.kernels.minima import minimise


@njit(cache=True, nogil=True, error_model="numpy")
def piece(knots, n, b, mean, sd, Va, Vb, x, w, wide, ctx, weight, out, sums, sizes):
    """Add the integral over u between the first and the last knot; (folded mass, mass).

    Rows of ``knots``: u, v, dv/du, a, da/du, and the arc length that spaces the panels. Folded
    mass is that of nodes at which a(u) does not increase: a jump narrower than the grid.
    """
    knots[5, 0] = 0.0
    for k in range(1, n):
        da, du = (knots[3, k] - knots[3, k - 1]) / sd, knots[0, k] - knots[0, k - 1]
        bend = math.log((max(knots[4, k], 0.0) + 0.1) / (max(knots[4, k - 1], 0.0) + 0.1))
        far = math.sqrt(da * da + 4.0 * du * du + 2.0 * bend * bend) / wide
        knots[5, k] = knots[5, k - 1] + far
    total = knots[5, n - 1]
    panels = min(max(int(math.ceil(total)), 1), 40)
    norm = weight / (sd * math.sqrt(2.0 * math.pi))
    folded, mass, k, cell, right = 0.0, 0.0, 0, 0, knots[0, 0]
    for p in range(panels):
        left = right
        length = total * (p + 1) / panels
        while cell < n - 2 and knots[5, cell + 1] < length:
            cell += 1
        part = (length - knots[5, cell]) / max(knots[5, cell + 1] - knots[5, cell], 1e-300)
        right = knots[0, cell] + min(part, 1.0) * (knots[0, cell + 1] - knots[0, cell])
        for i in range(len(x)):
            u = left + (right - left) * x[i]
            while k < n - 2 and knots[0, k + 1] < u:
                k += 1
            # cubic Hermite guess of v between two knots of the globally minimal curve
            h = knots[0, k + 1] - knots[0, k]
            s = (u - knots[0, k]) / h
            dv, r = knots[1, k + 1] - knots[1, k], 1.0 - s
            v = knots[1, k] + s * dv
            v += s * r * (r * (h * knots[2, k] - dv) + s * (dv - h * knots[2, k + 1]))
            v, l_u, _t, curvature, regular = settle(u, v, b, Vb, 1.0, 1e-6, ctx)
            a, rate = u + Va * l_u, 1.0 + Va * curvature
            t = (a - mean) / sd
            density = norm * math.exp(-0.5 * t * t) * rate * (right - left) * w[i]
            if density < 1e-30 * weight and rate > 0.0:
                continue
            mass += density / weight
            if rate <= 0.0 or not regular:
                folded += abs(density / weight)
            moments(a, b, u, v, ctx, out)
            for m in range(len(out)):
                sums[m] += density * out[m]
                sizes[m] += abs(density * out[m])
    return folded, mass


@njit(cache=True, nogil=True, error_model="numpy")
def put_knot(knots, n, u, v, b, Va, Vb, ctx):
    """Append the point (u, v) of the curve to the knots."""
    v, l_u, tilt, curvature, _r = settle(u, v, b, Vb, 0.1, 1e-6, ctx)
    knots[0, n], knots[1, n], knots[2, n] = u, v, tilt
    knots[3, n], knots[4, n] = u + Va * l_u, 1.0 + Va * curvature
    return n + 1


@njit(cache=True, nogil=True, error_model="numpy")
def end_of(a, b, nodes, n, left, right, edge, u, v, Va, Vb, ctx):
    """Proximal point at field a within [left, right], from the nearest node or jump (u, v)."""
    distance = abs(edge - a)
    for k in range(n):
        if left <= nodes[0, k] <= right and abs(nodes[3, k] - a) < distance:
            u, v, distance = nodes[0, k], nodes[1, k], abs(nodes[3, k] - a)
    u, v, _ = minimise(a, b, u, v, Va, Vb, 1e-10, ctx)
    return u, v, left <= u <= right


@njit(cache=True, nogil=True, error_model="numpy")
def line(b, mean, sd, Va, Vb, x, w, reach, wide, nodes, n, ctx, weight, out, sums, sizes, hull,
         gaps, knots):  # fmt: skip
    """Integrate over a at fixed b and sources; returns the mass that could not be resolved."""
    low, high = mean - reach * sd, mean + reach * sd
    count, lost = find_gaps(nodes, n, b, mean, sd, Va, Vb, ctx, hull, gaps)
    for g in range(count + 1):
        aL, aR = (gaps[g - 1, 0] if g > 0 else -np.inf), (gaps[g, 0] if g < count else np.inf)
        if aR <= low or aL >= high:
            continue
        left, vb = (gaps[g - 1, 3], gaps[g - 1, 4]) if g > 0 else (-np.inf, b)
        right, ve = (gaps[g, 1], gaps[g, 2]) if g < count else (np.inf, b)
        begin, end, okb, oke = left, right, True, True
        edge, ue, we = aR, right, ve
        if aR == np.inf or (aL > -np.inf and low - aL < aR - high):
            edge, ue, we = aL, left, vb
        if aL < low:
            begin, vb, okb = end_of(low, b, nodes, n, left, right, edge, ue, we, Va, Vb, ctx)
        if aR > high:
            end, ve, oke = end_of(high, b, nodes, n, left, right, edge, ue, we, Va, Vb, ctx)
        if not (okb and oke and begin < end):
            lost += normal_mass(max(aL, low), min(aR, high), mean, sd)
            continue
        m = put_knot(knots, np.int64(0), begin, vb, b, Va, Vb, ctx)
        slack = 1e-3 * min(end - begin, 0.03)
        for k in range(n):
            if begin + slack < nodes[0, k] < end - slack:
                for r in range(5):
                    knots[r, m] = nodes[r, k]
                m += 1
        m = put_knot(knots, m, end, ve, b, Va, Vb, ctx)
        folded, mass = piece(
            knots, m, b, mean, sd, Va, Vb, x, w, wide, ctx, weight, out, sums, sizes
        )
        defect = abs(mass - normal_mass(max(aL, low), min(aR, high), mean, sd))
        lost += max(folded, defect)
    return lost * weight


@njit(cache=True, nogil=True, error_model="numpy")
def opening_roots(start, step, samples, along_b, zu, zv, Va, Vb, c, n_context, roots):
    """Sign changes of `opening` in b (at fixed zu) or in zu (at b = 0); returns their number."""
    ctx = np.empty(n_context)
    context(zu, zv, c, ctx)
    count, previous = 0, np.nan
    for k in range(samples + 1):
        t = start + k * step
        if not along_b:
            context(t, zv, c, ctx)
        value = opening(t if along_b else 0.0, Va, Vb, ctx)
        if value * previous < 0.0 and count < len(roots):
            left, right = t - step, t
            for _ in range(46):
                t = 0.5 * (left + right)
                if not along_b:
                    context(t, zv, c, ctx)
                if opening(t if along_b else 0.0, Va, Vb, ctx) * previous > 0.0:
                    left = t
                else:
                    right = t
            roots[count] = 0.5 * (left + right)
            count += 1
        previous = value
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def transverse(middle, centre, field, roots, edges, bx, bw, gx, gw, reach, Va, ctx, bs, weights):
    """Nodes and weights in b; their number.

    Panels end where a jump across zero opens, and around the b at which its field
    ``Va l_u(0, b)`` sweeps over the line, if it does so fast; Gauss-Hermite if neither is in range.
    """
    sb, low, high = field[3], middle - reach * field[3], middle + reach * field[3]
    stops, n = np.empty(2 * len(roots) + 6), 0
    for k in range(2 * edges):
        stops[n] = roots[k // 2] if k % 2 == 0 else -roots[k // 2]
        n += 1
    _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(0.0, middle, ctx)
    rate = (Va * l_uv - field[7] / sb) / field[8]
    if abs(rate) * sb > 1.5:
        for k in range(4):
            stops[n] = middle + ((-6.0, -2.0, 2.0, 6.0)[k] - (Va * l_u - centre) / field[8]) / rate
            n += 1
    inside = 0
    for k in range(n):
        if low < stops[k] < high:
            stops[inside] = stops[k]
            inside += 1
    if inside == 0:
        for i in range(len(bx)):
            bs[i], weights[i] = middle + sb * bx[i], bw[i]
        return len(bx)
    stops[inside] = high
    ordered = np.sort(stops[: inside + 1])
    count, left = 0, low
    for right in ordered:
        panels = int(math.ceil((right - left) / (4.0 * sb) - 1e-9))
        for i in range(panels * len(gx)):
            h = (right - left) / panels
            bs[count] = left + h * (i // len(gx) + gx[i % len(gx)])
            t = (bs[count] - middle) / sb
            weights[count] = h * gw[i % len(gx)] * math.exp(-0.5 * t * t)
            weights[count] /= sb * math.sqrt(2.0 * math.pi)
            count += 1
        left = right
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def line_sums(first, last, zus, zvs, zweights, field, response, bx, bw, gx, gw, x, w, split,
                reach, wide, c, n_context, n_moments, sums, sizes, lost):  # fmt: skip
    """Rows ``first:last`` of the sums, one row for each pair of sources.

    Parameters
    ----------
    zus, zvs, zweights : arrays
        Sources and their weights.
    field : (9,) array
        b = f0 + f1 zu + f2 zv + f3 xi and a = f4 + f5 zu + f6 zv + f7 xi + f8 xi'.
    response : (2,) array
        Va and Vb.
    bx, bw : arrays
        Rule for the standard normal xi.
    gx, gw : arrays
        Gauss-Legendre rule on [0, 1] for panels in b.
    x, w : arrays
        Gauss-Legendre rule on [0, 1] for each panel in u.
    split : bool
        End panels in b where a jump opens, too.
    reach, wide : float
        Range of a (and b) on either side, and the longest panel; in standard deviations.
    sums, sizes : (nodes, moments) arrays, filled with sums of the integrands and their magnitudes
    lost : (nodes,) array, filled with the probability missing or doubtful: the defect of each
        piece's mass (the integral of one), that of folded nodes, and of jumps not found
    """  # fmt: skip
    Va, Vb = response[0], response[1]
    ctx, out, roots = np.empty(n_context), np.empty(n_moments), np.empty(2)
    table, grid_v = np.empty((MOST + 1, 2 * MOST + 1)), np.empty(2 * MOST + 1)
    hulls, tops = np.empty((MOST + 1, 2 * MOST + 1), np.int64), np.empty(MOST + 1, np.int64)
    nodes, hull = np.empty((6, 2 * MOST + 1)), np.empty(2 * MOST + 1, np.int64)
    gaps, knots = np.zeros((GAPS + 1, 5)), np.empty((6, 2 * MOST + 3))
    span = math.sqrt(field[7] * field[7] + field[8] * field[8]) * reach
    bs, weights = np.empty(len(bx) + 14 * len(gx)), np.empty(len(bx) + 14 * len(gx))
    grid = np.zeros(MOST + 1)
    for i in range(MOST):
        grid[i + 1] = grid[i] + spacing(grid[i])
    for row in range(first, last):
        zu, zv = zus[row], zvs[row]
        middle = field[0] + field[1] * zu + field[2] * zv
        centre = field[4] + field[5] * zu + field[6] * zv
        most = abs(middle) + reach * field[3]
        edges = 0
        if split:
            # (a literal number would be compiled by itself)
            samples = np.int64(8)
            edges = opening_roots(0.0, most / samples, samples, split, zu, zv, Va, Vb, c,
                                  n_context, roots)  # fmt: skip
        context(zu, zv, c, ctx)
        count = transverse(
            middle, centre, field, roots, edges, bx, bw, gx, gw, reach, Va, ctx, bs, weights
        )
        # |u*-a| <= sqrt(2 Va loss(a, b)), and the same for v
        worst = 0.0
        for i in range(9):
            worst = max(
                worst,
                loss(centre + (i // 3 - 1) * span, middle + (i % 3 - 1) * reach * field[3], ctx),
            )
        far_u = abs(centre) + span + math.sqrt(2.2 * Va * worst) + 0.1
        far_v = most + math.sqrt(2.2 * Vb * worst) + 0.1
        nu = min(np.searchsorted(grid, far_u), MOST)
        nv = min(np.searchsorted(grid, far_v), MOST)
        for j in range(2 * nv + 1):
            grid_v[j] = grid[j - nv] if j >= nv else -grid[nv - j]
        tabulate(nu, nv, grid, grid_v[: 2 * nv + 1], Vb, ctx, table, hulls, tops)
        sums[row], sizes[row], lost[row] = 0.0, 0.0, 0.0
        for j in range(count):
            weight = zweights[row] * weights[j]
            if weight < 1e-18:
                continue
            mean = centre + field[7] * (bs[j] - middle) / field[3]
            begin, end = scan(mean - reach * field[8], mean + reach * field[8], bs[j], nu, grid,
                              grid_v, Va, Vb, table, hulls, tops, ctx, nodes)  # fmt: skip
            lost[row] += line(bs[j], mean, field[8], Va, Vb, x, w, reach, wide,
                              nodes[:, begin:end], end - begin, ctx, weight, out, sums[row],
                              sizes[row], hull, gaps, knots)  # fmt: skip
