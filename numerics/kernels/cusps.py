"""Cusps, where the two minima of a jump become one and the lens of points between them closes."""

import math

import numpy as np
from numba import njit

from numerics.kernels.envelope import maxwell, settle
from numerics.kernels.jumps import JUMP, follow, put, take


@njit(cache=True, nogil=True, error_model="numpy")
def close(limit, cusp, Va, Vb, ctx, jumps):
    """b at the cusp that ends the lens; negative where it is not closed.

    The square of the jump's width vanishes linearly at a cusp, and ``cusp`` becomes a first guess.
    Otherwise ``-b`` of the last jump found: that at ``limit``, or the last before another minimum
    comes in between. ``jumps[0]`` is the jump at b = 0.
    """
    cusp[1] = 0.0
    last, trial = np.empty(JUMP), np.empty(JUMP)
    take(jumps[0], last)
    wide = (last[4] - last[2]) * (last[4] - last[2])
    width = wide
    step = limit / 6.0
    for _ in range(100):
        b = min(last[0] + step, limit)
        found = follow(last, b, Va, Vb, ctx, trial)
        new = (trial[4] - trial[2]) * (trial[4] - trial[2])
        if not found or new > 4.0 * width:
            step *= 0.4
            if step < 1e-6 * limit:
                return -last[0]
            continue
        if b >= limit:
            return -limit
        slope = (width - new) / (b - last[0])
        end = b + new / slope if slope > 0.0 else np.inf
        width = new
        take(trial, last)
        if end < limit and width < 0.03 * wide:
            cusp[0], cusp[1] = 0.5 * (trial[2] + trial[4]), end
            cusp[2] = 0.5 * (trial[3] + trial[5])
            return end
        step = min(2.0 * step, 0.7 * (end - b))
    return -last[0]


@njit(cache=True, nogil=True, error_model="numpy")
def opening_at(u, b, v, Va, Vb, ctx):
    """da/du along the line b at u, with v(u) started at v: (da/du, v, a)."""
    v, l_u, _tilt, curvature, regular = settle(u, v, b, Vb, 0.3, 1e-11, ctx)
    return 1.0 + Va * curvature if regular else np.nan, v, u + Va * l_u


@njit(cache=True, nogil=True, error_model="numpy")
def polish(cusp, limit, Va, Vb, ctx):
    """Newton for the cusp, ``da/du = d2a/du2 = 0``; whether it has converged below ``limit``.

    ``cusp`` holds u, b, v, and on return also half the width of the jump in units of
    ``sqrt(b* - b)`` and the drift du/db of its middle.
    """
    h = 5e-4
    u, b, v = cusp[0], cusp[1], cusp[2]
    for _ in range(12):
        mid, v, _a = opening_at(u, b, v, Va, Vb, ctx)
        right, _v, _a = opening_at(u + h, b, v, Va, Vb, ctx)
        left, _v, _a = opening_at(u - h, b, v, Va, Vb, ctx)
        above, _v, _a = opening_at(u, b + h, v, Va, Vb, ctx)
        below, _v, _a = opening_at(u, b - h, v, Va, Vb, ctx)
        pp, _v, _a = opening_at(u + h, b + h, v, Va, Vb, ctx)
        mp, _v, _a = opening_at(u - h, b + h, v, Va, Vb, ctx)
        pm, _v, _a = opening_at(u + h, b - h, v, Va, Vb, ctx)
        mm, _v, _a = opening_at(u - h, b - h, v, Va, Vb, ctx)
        r_u, r_b = (right - left) / (2 * h), (above - below) / (2 * h)
        r_uu, r_ub = (right - 2 * mid + left) / (h * h), (pp - mp - pm + mm) / (4 * h * h)
        det = r_u * r_ub - r_b * r_uu
        du, db = -(r_ub * mid - r_b * r_u) / det, -(r_u * r_u - r_uu * mid) / det
        if not (abs(du) < 0.3 and abs(db) < 0.3):
            return False
        u, b = u + du, b + db
        if abs(du) + abs(db) < 1e-6:
            cusp[0], cusp[1], cusp[2] = u, b, v
            ratio = 6.0 * r_b / r_uu
            cusp[3], cusp[4] = math.sqrt(max(ratio, 0.0)), -r_ub / r_uu
            return ratio > 0.0 and 0.0 < b < limit
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def from_cusp(cusp, limit, lines, Va, Vb, ctx, jumps):
    """Jumps at ``b = b* sin(k pi / 2 lines)``, k < lines, followed from the cusp inwards.

    Both sides are one analytic function of the angle, extrapolated from one line to the next.
    False where ``cusp`` leads to none below ``limit``, or a jump is lost.
    """
    if not polish(cusp, limit, Va, Vb, ctx):
        return False
    step = 0.5 * math.pi / lines
    for k in range(lines - 1, -1, -1):
        b = cusp[1] * math.sin(k * step)
        jump = jumps[k]
        if k > lines - 3:
            middle = cusp[0] + cusp[4] * (b - cusp[1])
            half = cusp[3] * math.sqrt(cusp[1] - b)
            uL, vL, uR, vR = middle - half, cusp[2], middle + half, cusp[2]
        elif k == lines - 3:
            p, q = jumps[k + 1], jumps[k + 2]
            uL, vL = 2.0 * p[2] - q[2], 2.0 * p[3] - q[3]
            uR, vR = 2.0 * p[4] - q[4], 2.0 * p[5] - q[5]
        else:
            p, q, s = jumps[k + 1], jumps[k + 2], jumps[k + 3]
            uL, vL = 3.0 * (p[2] - q[2]) + s[2], 3.0 * (p[3] - q[3]) + s[3]
            uR, vR = 3.0 * (p[4] - q[4]) + s[4], 3.0 * (p[5] - q[5]) + s[5]
        # near the cusp minima are flat, and the field must fit them
        _r, vL, aL = opening_at(uL, b, vL, Va, Vb, ctx)
        _r, vR, aR = opening_at(uR, b, vR, Va, Vb, ctx)
        a = 0.5 * (aL + aR)
        a, uL, vL, uR, vR, status = maxwell(a, b, uL, vL, uR, vR, Va, Vb, ctx)
        if status != 1 or not uR > uL:
            return False
        put(jump, b, a, uL, vL, uR, vR, Va, Vb, ctx)
        # a periodic function of the angle
        jump[11] = step * cusp[1] * math.cos(k * step) * (1.0 if k > 0 else 0.5)
        jump[12] = 2.0 * jump[11] if k % 2 == 0 else 0.0
    return True
