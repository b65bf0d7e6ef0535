"""Expectation over a planar model, line by line in the coordinates of the proximal point.

For fixed sources (zu, zv) and transverse field b the proximal point moves along a curve
``(u, v(u))`` as the field a runs: v(u) minimises over v, and ``a(u) = u + Va l_u(u, v(u))`` is
explicit. Integrating over u in place of a needs no root in u, and the integrand is analytic. The
values of u that are global minimisers for some a are those where the reduced objective
``phi(u) = min_v [u^2/2Va + (v-b)^2/2Vb + loss]`` touches its convex envelope; its gaps are the
jumps of the proximal point, found by the equal-energy (Maxwell) condition.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.interface import context, derivatives, moments
from numerics.kernels.minima import best_of, maxwell, minimise, slow_maxwell, transverse, undercut

SCAN = 96  # grid of the fallback


@njit(cache=True, nogil=True, error_model="numpy")
def piece(lo, hi, v, b, mean, sd, Va, Vb, x, w, panels, ctx, weight, out, sums, sizes):
    """Add the integral over u in [lo, hi]; (hidden mass, v at hi).

    The hidden mass is that of nodes at which a(u) does not increase: a jump hides there.
    """
    norm = weight / (sd * math.sqrt(2.0 * math.pi))
    step = (hi - lo) / panels
    hidden = 0.0
    before, tilt, across, u = lo, 0.0, 1.0, lo
    for node in range(panels * len(x) + 1):
        p, k = node // len(x), node % len(x)
        last = p == panels
        u = hi if last else lo + step * (p + x[k])
        v += tilt * (u - before)
        before = u
        for _ in range(30):
            _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
            across = 1.0 / Vb + l_vv
            slope = (v - b) / Vb + l_v
            dv = -slope / across if across > 0.0 else -slope * Vb
            dv = min(max(dv, -1.0), 1.0)
            v += dv
            if abs(dv) <= 1e-8 * (1.0 + abs(v)):
                break
        l_u += l_uv * dv
        tilt = -l_uv / across
        slope = 1.0 + Va * (l_uu + l_uv * tilt)
        folded = across <= 0.0 or slope <= 0.0
        if not abs(tilt) < 10.0:
            tilt = 0.0
        if last:
            break
        a = u + Va * l_u
        t = (a - mean) / sd
        density = norm * math.exp(-0.5 * t * t) * slope * step * w[k]
        if folded:
            hidden += abs(density)
        moments(a, b, u, v, ctx, out)
        for i in range(len(out)):
            sums[i] += density * out[i]
            sizes[i] += abs(density * out[i])
    return hidden, v


@njit(cache=True, nogil=True, error_model="numpy")
def thorough(
    low, high, lo, hi, b, mean, sd, Va, Vb, x, w, panels, ctx, weight, out, sums, sizes, work
):
    """A line by scanning: convex envelope of phi on a grid, each gap polished.

    ``lo, hi`` are guesses of the ends in u. Returns the ends and the mass left unresolved.
    """  # fmt: skip
    grid, phi, vs, hull = work[0], work[1], work[2], work[3]
    first, final = min(lo, low), max(hi, high)
    margin = 0.1 * (final - first) + 1e-3
    for sweep in range(3):
        # tracked from either side, and from the field itself
        v = b
        for k in range(SCAN):
            i = SCAN - 1 - k if sweep == 1 else k
            u = first - margin + (final - first + 2.0 * margin) * i / (SCAN - 1.0)
            v, value = transverse(u, b, b if sweep == 2 else v, Vb, ctx)
            if sweep == 0 or value < phi[i]:
                grid[i], vs[i], phi[i] = u, v, value
    for i in range(SCAN):
        phi[i] += 0.5 * grid[i] * grid[i] / Va
    top = 0
    for i in range(SCAN):
        while top >= 2:
            j, k = int(hull[top - 1]), int(hull[top - 2])
            if (phi[j] - phi[k]) * (grid[i] - grid[j]) < (phi[i] - phi[j]) * (grid[j] - grid[k]):
                break
            top -= 1
        hull[top] = i
        top += 1
    # the ends are where the envelope has the slopes low/Va and high/Va
    begin, end = 0, top - 1
    for h in range(1, top):
        i, j = int(hull[h - 1]), int(hull[h])
        slope = Va * (phi[j] - phi[i]) / (grid[j] - grid[i])
        if slope < low:
            begin = h
        if slope > high and end == top - 1:
            end = h - 1
    i, j = int(hull[begin]), int(hull[end])
    lo, vlo, _l = minimise(low, b, grid[i], vs[i], Va, Vb, 1e-6, ctx)
    hi, vhi, _l = minimise(high, b, grid[j], vs[j], Va, Vb, 1e-6, ctx)
    lost = 0.0
    start, v = lo, vlo
    for h in range(begin + 1, end + 2):
        uL, uR, vR = hi, hi, v
        if h <= end:
            i, j = int(hull[h - 1]), int(hull[h])
            if j - i < 2:
                continue
            a = Va * (phi[j] - phi[i]) / (grid[j] - grid[i])
            a, uL, vL, uR, vR, found = slow_maxwell(
                a, b, grid[i], vs[i], grid[j], vs[j], Va, Vb, ctx
            )
            if not found:
                # a gap narrower than the grid, or none: v must not be tracked across it
                v = vs[j]
                continue
            if uR <= start or uL >= hi:
                continue
        if uL > start:
            hidden, v = piece(start, uL, v, b, mean, sd, Va, Vb, x, w, panels, ctx, weight, out,
                              sums, sizes)  # fmt: skip
            lost += hidden
        start, v = max(start, uR), vR
    return lo, vlo, hi, vhi, lost


@njit(cache=True, nogil=True, error_model="numpy")
def line(b, mean, sd, Va, Vb, x, w, reach, wide, ctx, weight, out, sums, sizes, warm, work, scan):
    """Integrate over a at fixed b and sources; returns the mass that could not be resolved.

    ``warm`` carries over from the last line: 0-3 the minima on both sides of the jump, 4-7 those
    at the ends, 8 the distance of the jump from the image of u = 0, 9 whether there was a jump,
    10 whether the entries are set.
    """
    low, high = mean - reach * sd, mean + reach * sd
    _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(0.0, b, ctx)
    centre = Va * l_u
    folded = 1.0 + Va * (l_uu - l_uv * l_uv / (1.0 / Vb + l_vv)) < 0.0
    if warm[10] == 0.0:
        warm[0], warm[1], warm[2], warm[3] = min(low, -1.0), b, max(high, 1.0), b
        lo, vlo = best_of(low, b, low, b, warm[0], b, Va, Vb, 1e-4, ctx)
        hi, vhi = best_of(high, b, high, b, warm[2], b, Va, Vb, 1e-4, ctx)
        warm[8], warm[9] = 0.0, 0.0
    else:
        lo, vlo = best_of(low, b, warm[4], warm[5], -warm[2], -warm[3], Va, Vb, 1e-4, ctx)
        hi, vhi = best_of(high, b, warm[6], warm[7], -warm[0], -warm[1], Va, Vb, 1e-4, ctx)
    jump, uL, vL, uR, vR = centre + warm[8], warm[0], warm[1], warm[2], warm[3]
    gap = False
    if warm[9] == 1.0:
        jump, uL, vL, uR, vR, gap = maxwell(jump, b, uL, vL, uR, vR, Va, Vb, ctx)
    clean = True
    if not gap:
        # from the fold itself where there is one, else from outside
        start = 0.1 if folded else 1.0
        tilt = -l_uv / (1.0 / Vb + l_vv) if folded else 0.0
        uL, vL, _l = minimise(centre, b, -start, b - start * tilt, Va, Vb, 1e-9, ctx)
        uR, vR, _l = minimise(centre, b, start, b + start * tilt, Va, Vb, 1e-9, ctx)
        if uR - uL > 1e-6:
            jump, uL, vL, uR, vR, gap = slow_maxwell(centre, b, uL, vL, uR, vR, Va, Vb, ctx)
            clean = gap
        else:
            clean = not folded
    if gap:
        clean = not undercut(jump, b, uL, vL, uR, vR, Va, Vb, ctx)
        if jump < low and lo < uL + 1e-3:
            lo, vlo, _l = minimise(low, b, uR, vR, Va, Vb, 1e-6, ctx)
        if jump > high and hi > uR - 1e-3:
            hi, vhi, _l = minimise(high, b, uL, vL, Va, Vb, 1e-6, ctx)
        # u increases with a: anything else means a minimum that is not global
        slack = 1e-3 * (hi - lo)
        clean = clean and (lo <= uL + slack if jump > low else lo >= uR - slack)
        clean = clean and (hi >= uR - slack if jump < high else hi <= uL + slack)
        warm[0], warm[1], warm[2], warm[3], warm[8] = uL, vL, uR, vR, jump - centre
    warm[4], warm[5], warm[6], warm[7] = lo, vlo, hi, vhi
    warm[9], warm[10] = 1.0 if gap else 0.0, 1.0
    for i in range(len(sums)):
        work[4, i] = sums[i]
        work[5, i] = sizes[i]
    if clean and not scan:
        if gap and low < jump < high:
            if lo < uL:
                panels = int(math.ceil((jump - low) / (wide * sd)))
                hidden, end = piece(lo, uL, vlo, b, mean, sd, Va, Vb, x, w, panels, ctx, weight,
                                     out, sums, sizes)  # fmt: skip
                clean = hidden == 0.0 and abs(end - vL) < 1e-3 * (1.0 + abs(vL))
            if clean and uR < hi:
                panels = int(math.ceil((high - jump) / (wide * sd)))
                hidden, end = piece(uR, hi, vR, b, mean, sd, Va, Vb, x, w, panels, ctx, weight,
                                     out, sums, sizes)  # fmt: skip
                clean = hidden == 0.0 and abs(end - vhi) < 1e-2 * (1.0 + abs(vhi))
        else:
            panels = int(math.ceil((high - low) / (wide * sd)))
            hidden, end = piece(lo, hi, vlo, b, mean, sd, Va, Vb, x, w, panels, ctx, weight, out,
                                 sums, sizes)  # fmt: skip
            clean = hidden == 0.0 and abs(end - vhi) < 1e-2 * (1.0 + abs(vhi))
        if clean:
            return 0.0
    for i in range(len(sums)):
        sums[i] = work[4, i]
        sizes[i] = work[5, i]
    panels = int(math.ceil((high - low) / (wide * sd)))
    lo, vlo, hi, vhi, lost = thorough(low, high, lo, hi, b, mean, sd, Va, Vb, x, w, panels, ctx,
                                      weight, out, sums, sizes, work)  # fmt: skip
    warm[4], warm[5], warm[6], warm[7], warm[9] = lo, vlo, hi, vhi, 0.0
    return lost


@njit(cache=True, nogil=True, error_model="numpy")
def unfolding(b, Va, Vb, ctx):
    """da/du at u = 0: negative where the proximal point jumps across zero on this line."""
    value, l_u, l_v, l_uu, l_uv, l_vv = derivatives(0.0, b, ctx)
    return 1.0 + Va * (l_uu - l_uv * l_uv / (1.0 / Vb + l_vv))


@njit(cache=True, nogil=True, error_model="numpy")
def opening(zu, zv, Va, Vb, c, ctx):
    """da/du at u = b = 0: negative where the proximal point jumps on central lines."""
    context(zu, zv, c, ctx)
    return unfolding(0.0, Va, Vb, ctx)


@njit(cache=True, nogil=True, error_model="numpy")
def opening_roots(lo, hi, zv, Va, Vb, c, n_context, samples, roots):
    """Values of zu in [lo, hi] at which jumps set in; returns their number."""
    ctx = np.empty(n_context)
    count = 0
    previous = opening(lo, zv, Va, Vb, c, ctx)
    for i in range(1, samples + 1):
        right = lo + (hi - lo) * i / samples
        value = opening(right, zv, Va, Vb, c, ctx)
        if previous * value < 0.0 and count < len(roots):
            left, at_left = lo + (hi - lo) * (i - 1) / samples, previous
            upper = right
            for _ in range(50):
                middle = 0.5 * (left + upper)
                inside = opening(middle, zv, Va, Vb, c, ctx)
                if at_left * inside > 0.0:
                    left, at_left = middle, inside
                else:
                    upper = middle
            roots[count] = 0.5 * (left + upper)
            count += 1
        previous = value
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def closing_b(zu, zv, Va, Vb, ctx, most):
    """The |b| at which the jump of a line closes: 0 without a jump, at most ``most``."""
    if unfolding(0.0, Va, Vb, ctx) >= 0.0:
        return 0.0
    left, right = 0.0, most
    if unfolding(most, Va, Vb, ctx) <= 0.0:
        return most
    for _ in range(50):
        middle = 0.5 * (left + right)
        if unfolding(middle, Va, Vb, ctx) < 0.0:
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


@njit(cache=True, nogil=True, error_model="numpy")
def transverse_rule(middle, sd, edge, reach, b_nodes, b_weights, g, gw, bs, bw):
    """Nodes and weights in b: panels that end where the jump closes, else Gauss-Hermite."""
    low, high = middle - reach * sd, middle + reach * sd
    if edge <= 0.0 or (not low < edge < high and not low < -edge < high):
        for j in range(len(b_nodes)):
            bs[j], bw[j] = middle + sd * b_nodes[j], b_weights[j]
        return len(b_nodes)
    norm = 1.0 / (sd * math.sqrt(2.0 * math.pi))
    count = 0
    left = low
    for k in range(3):
        right = min(max((-edge, edge, high)[k], low), high)
        width = right - left
        if width <= 0.0:
            continue
        panels = int(math.ceil(width / (4.0 * sd)))
        for p in range(panels):
            for i in range(len(g)):
                b = left + width / panels * (p + g[i])
                t = (b - middle) / sd
                weight = norm * width / panels * gw[i] * math.exp(-0.5 * t * t)
                if weight > 1e-14:
                    bs[count], bw[count] = b, weight
                    count += 1
        left = right
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def line_sums(
    first,
    last,
    zus,
    zvs,
    zweights,
    field,
    response,
    b_nodes,
    b_weights,
    g,
    gw,
    x,
    w,
    panelled,
    reach,
    wide,
    c,
    n_context,
    n_moments,
    scan,
    sums,
    sizes,
    lost,
):
    """Rows ``first:last`` of the sums, one row for each pair of sources.

    Parameters
    ----------
    zus, zvs, zweights : arrays
        Sources and their weights.
    field : (7,) array
        mean of b, its slopes in (zu, zv), its deviation; the same means for a follow:
        b = field[0] + field[1] zu + field[2] zv + field[3] xi,
        a = field[4] + field[5] zu + field[6] zv + field[7] xi + field[8] xi'.
    response : (2,) array
        Va and Vb.
    b_nodes, b_weights : arrays
        Rule for the standard normal xi.
    g, gw : arrays
        Gauss-Legendre rule on [0, 1], used in b where the lines' jump closes within range (if
        ``panelled``).
    x, w : arrays
        Gauss-Legendre rule on [0, 1], used on each panel in u.
    reach, wide : float
        Range of a on either side of its mean, and the longest panel; in standard deviations.
    scan : bool
        Treat every line by the thorough scan (slow; the reference).
    sums, sizes : (nodes, moments) arrays, filled; lost : (nodes,) array, filled
    """  # fmt: skip
    ctx = np.empty(n_context)
    out = np.empty(n_moments)
    warm = np.zeros(11)
    work = np.empty((6, max(SCAN + 1, n_moments)))
    work[0, SCAN] = 0.0
    bs, bw = np.empty(8 * len(g) + len(b_nodes)), np.empty(8 * len(g) + len(b_nodes))
    Va, Vb = response[0], response[1]
    for row in range(first, last):
        zu, zv = zus[row], zvs[row]
        context(zu, zv, c, ctx)
        for i in range(n_moments):
            sums[row, i] = 0.0
            sizes[row, i] = 0.0
        lost[row] = 0.0
        warm[10] = 0.0
        middle = field[0] + field[1] * zu + field[2] * zv
        edge = 0.0
        if panelled:
            edge = closing_b(zu, zv, Va, Vb, ctx, abs(middle) + reach * field[3])
        count = transverse_rule(middle, field[3], edge, reach, b_nodes, b_weights, g, gw, bs, bw)
        for j in range(count):
            b = bs[j]
            mean = field[4] + field[5] * zu + field[6] * zv
            mean += field[7] * (b - middle) / field[3]
            lost[row] += line(b, mean, field[8], Va, Vb, x, w, reach, wide, ctx,
                              zweights[row] * bw[j], out, sums[row], sizes[row], warm,
                              work, scan)  # fmt: skip
