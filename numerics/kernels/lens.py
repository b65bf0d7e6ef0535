"""Jumps of the proximal point across zero: the lens of points that they pass over.

For an even loss a jump opens at H = 0 where ``det d(a, b)/d(u, v) < 0``. On the lines b = const it
leads from (uL, vL) to (uR, vR), two minima of equal energy (Maxwell), and the points between are
passed over: a smooth body that closes in two cusps at +-b*, where the two minima become one.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.envelope import maxwell, settle
from numerics.kernels.interface import derivatives
from numerics.kernels.minima import minimise

JUMP = 13  # numbers that describe one jump: see `put`, and the weights of its line

DENSE = 0.12  # strength of the concentration of lines around a bend, in units of the half lens


@njit(cache=True, nogil=True, error_model="numpy")
def opening(b, Va, Vb, ctx):
    """da/du at u = 0: negative where the proximal point jumps across zero."""
    _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(0.0, b, ctx)
    return 1.0 + Va * (l_uu - l_uv * l_uv / (1.0 / Vb + l_vv))


@njit(cache=True, nogil=True, error_model="numpy")
def tangent(u, v, rise, Va, Vb, ctx):
    """d(u, v)/db of one side of a jump, where the field changes by ``Va rise`` db."""
    _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
    h_uu, h_vv = 1.0 / Va + l_uu, 1.0 / Vb + l_vv
    det = h_uu * h_vv - l_uv * l_uv
    return (h_vv * rise - l_uv / Vb) / det, (h_uu / Vb - l_uv * rise) / det


@njit(cache=True, nogil=True, error_model="numpy")
def put(jump, b, a, uL, vL, uR, vR, Va, Vb, ctx):
    """Fill a row of jumps: b, a, uL, vL, uR, vR, and the derivatives of a, uL, ... by b."""
    rise = -(vR - vL) / (Vb * (uR - uL))
    jump[0], jump[1], jump[2], jump[3], jump[4], jump[5] = b, a, uL, vL, uR, vR
    jump[6] = Va * rise
    jump[7], jump[8] = tangent(uL, vL, rise, Va, Vb, ctx)
    jump[9], jump[10] = tangent(uR, vR, rise, Va, Vb, ctx)


@njit(cache=True, nogil=True, error_model="numpy")
def take(jump, other):
    """Copy a row of jumps (slices compile for seconds)."""
    for i in range(JUMP):
        other[i] = jump[i]


@njit(cache=True, nogil=True, error_model="numpy")
def follow(jump, b, Va, Vb, ctx, found):
    """The jump on the line b, from one on a line nearby; whether there is one."""
    s = b - jump[0]
    a, uL, vL, uR, vR, status = maxwell(
        jump[1] + s * jump[6],
        b,
        jump[2] + s * jump[7],
        jump[3] + s * jump[8],
        jump[4] + s * jump[9],
        jump[5] + s * jump[10],
        Va,
        Vb,
        ctx,
    )
    if status != 1 or not uR > uL:
        return False
    put(found, b, a, uL, vL, uR, vR, Va, Vb, ctx)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def advance(jump, b, Va, Vb, ctx, found):
    """`follow` in as many steps as it takes."""
    if follow(jump, b, Va, Vb, ctx, found):
        return True
    reached = np.empty(JUMP)
    take(jump, reached)
    step = 0.5 * (b - jump[0])
    for _ in range(50):
        step = min(step, b - reached[0])
        if not follow(reached, reached[0] + step, Va, Vb, ctx, reached):
            step *= 0.4
        elif reached[0] >= b:
            take(reached, found)
            return True
        else:
            step *= 1.5
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def central(Va, Vb, ctx, jump):
    """The jump at a = b = 0, between mirror images; whether there is one."""
    u, v, _value = minimise(0.0, 0.0, 0.5, 0.0, Va, Vb, 1e-12, ctx)
    if abs(u) < 1e-9:
        return False
    if u < 0.0:
        u, v = -u, -v
    put(jump, 0.0, 0.0, -u, -v, u, v, Va, Vb, ctx)
    return True


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


@njit(cache=True, nogil=True, error_model="numpy")
def levelness(jump):
    """Inverse of the steeper of the slopes of both sides of a jump."""
    slope = max(math.hypot(jump[7], jump[8]), math.hypot(jump[9], jump[10]))
    return 1.0 / max(slope, 1e-9)


@njit(cache=True, nogil=True, error_model="numpy")
def branch_point(jumps, count, Va, Vb, ctx, near):
    """Where a side of the jump changes fastest, and how near a branch point is in the complex b.

    Close to where one of two equal minima is about to split, the side follows the root of
    ``x^3 + p x = q (b - place)``: the inverse of its slope is a parabola about the place, whose
    roots lie at 1.5 times the distance of the branch points.
    """
    steepest = 1
    for k in range(2, count - 1):
        if levelness(jumps[k]) < levelness(jumps[steepest]):
            steepest = k
    place, width = 0.0, math.inf
    for turn in range(5):
        middle = jumps[steepest] if turn == 0 else near[1]
        left = jumps[steepest - 1] if turn == 0 else near[0]
        right = jumps[steepest + 1] if turn == 0 else near[2]
        x, y = left[0] - middle[0], right[0] - middle[0]
        base = levelness(middle)
        p, q = (levelness(left) - base) / x, (levelness(right) - base) / y
        curvature = (q - p) / (y - x)
        slope = p - curvature * x
        least = base - 0.25 * slope * slope / curvature
        shift = -0.5 * slope / curvature
        if not (curvature > 0.0 and x < shift < y):
            return place, width
        place = middle[0] + shift
        width = math.sqrt(max(least, 0.01 * base) / curvature) / 1.5
        if turn > 0 and width > 0.4 * (y - x):
            return place, width
        gap = min(width, 0.5 * (y - x))
        for k in range(3):
            if not advance(jumps[steepest - 1], place + (k - 1) * gap, Va, Vb, ctx, near[k]):
                return place, width
    return place, width


@njit(cache=True, nogil=True, error_model="numpy")
def stretched(b, place, width, dense):
    """A coordinate along b that moves faster within ``width`` of ``+-place``."""
    return b + dense * (math.asinh((b - place) / width) + math.asinh((b + place) / width))


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_lines(lines, jumps):
    """Clenshaw-Curtis weights of lines at ``sin(k pi / 2 lines)``, and those of every other line.

    For the half of [-1, 1]; the middle line has a half of its weight.
    """
    for part in range(2):
        m = lines >> part
        for k in range(m + 1):
            total = 1.0
            for i in range(1, m + 1):
                share = (2.0 if i < m else 1.0) / (4.0 * i * i - 1.0)
                total -= share * math.cos((i * (m - k)) % (2 * m) * (math.pi / m))
            jumps[k << part, 11 + part] = total / m * (0.5 if k in (0, m) else 1.0)
    for k in range(1, lines, 2):
        jumps[k, 12] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def outwards(far, lines, place, width, dense, Va, Vb, ctx, jumps):
    """Jumps on ``lines + 1`` lines from b = 0 (``jumps[0]``) to ``far``; whether all are found.

    The lines are at ``Y sin(k pi / 2 lines)`` in the coordinate `stretched`.
    """
    length = stretched(far, place, width, dense)
    step = 0.5 * math.pi / lines
    weigh_lines(lines, jumps)
    b, w, every_other = 0.0, jumps[0, 11], jumps[0, 12]
    for k in range(lines + 1):
        target = length * math.sin(k * step)
        low, high, last = b, far, far
        b, rise = max(target / length * far, b), 0.0
        for _ in range(80 if dense > 0.0 else 0):
            off = stretched(b, place, width, dense) - target
            rise = dense / math.hypot(b - place, width) + dense / math.hypot(b + place, width)
            if off > 0.0:
                high = b
            else:
                low = b
            move = off / (1.0 + rise)
            if abs(move) < 1e-14 * far:
                break
            # Newton's steps alone may run in circles around the bend
            if not (low < b - move < high and abs(move) < 0.5 * last):
                move = b - 0.5 * (low + high)
            b, last = b - move, abs(move)
        w, every_other = jumps[k, 11], jumps[k, 12]
        if k > 0 and not advance(jumps[k - 1], b, Va, Vb, ctx, jumps[k]):
            return False
        jumps[k, 11] = w * length / (1.0 + rise)
        jumps[k, 12] = every_other * length / (1.0 + rise)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def closing(jumps, count, limit):
    """Whether the square of the jump's width falls so that it would vanish before the next line."""
    for k in range(1, count + 1):
        before, here = jumps[k - 1], jumps[k]
        old, new = before[4] - before[2], here[4] - here[2]
        ahead = here[0] + 1.5 * (jumps[k + 1, 0] - here[0]) if k < count else limit
        fall = (old * old - new * new) / (here[0] - before[0])
        if new * new < fall * (ahead - here[0]):
            return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def lens(far, enough, lines, cusp, Va, Vb, ctx, jumps):
    """Jumps on lines of the half b > 0: where the lens ends, and the number of lines.

    The end is b* at its cusp, the lines at ``b* sin(k pi / 2 lines)``, k < lines. It is ``-b``
    where the lens is followed to b only, ``far`` or the last before another minimum comes in
    between; then the last line is there (`outwards`). Zero if nothing jumps at b = 0.

    Parameters
    ----------
    far, enough : float
        Where the density has decayed, and where it has decayed so far that the lens may end at a
        place that many lines would be needed to go past.
    lines : int
        Even.
    cusp : (5,) array
        See `polish`; the cusp of a lens nearby, if ``cusp[1] > 0``.
    jumps : (lines + 1 or more, JUMP) array
        Filled; see `put`, and the weights of the lines and of every other line.
    """
    limit = 1.3 * far
    if not opening(0.0, Va, Vb, ctx) < -1e-9:
        return 0.0, 0
    if cusp[1] > 0.0 and from_cusp(cusp, limit, lines, Va, Vb, ctx, jumps):
        return cusp[1], lines
    cusp[1] = 0.0
    if not central(Va, Vb, ctx, jumps[0]):
        return 0.0, 0
    found = outwards(far, lines, 0.0, 1.0, 0.0, Va, Vb, ctx, jumps)
    if not found or closing(jumps, lines, limit):
        central(Va, Vb, ctx, jumps[0])
        edge = close(limit, cusp, Va, Vb, ctx, jumps)
        if edge > 0.0 and from_cusp(cusp, limit, lines, Va, Vb, ctx, jumps):
            return cusp[1], lines
        cusp[1] = 0.0
        if not found:  # or else it was a neck
            far = min(far, 0.985 * abs(edge))
        central(Va, Vb, ctx, jumps[0])
        found = outwards(far, lines, 0.0, 1.0, 0.0, Va, Vb, ctx, jumps)
    if not found:
        return 0.0, -1
    near = np.empty((3, JUMP))
    dense, narrow, count = DENSE * far, DENSE * far, lines
    for _ in range(4):
        place, width = branch_point(jumps, count + 1, Va, Vb, ctx, near)
        if not width < narrow:
            break
        central(Va, Vb, ctx, jumps[0])
        if 0.97 * place > enough:
            far = 0.97 * place
            found = outwards(far, lines, 0.0, 1.0, 0.0, Va, Vb, ctx, jumps)
            return (-far, lines + 1) if found else (0.0, -1)
        # closer lines may show that it is nearer
        narrow = 0.7 * width
        length = stretched(far, place, width, dense)
        count = min(2 * int(math.ceil(0.5 * lines * length / far)), len(jumps) - 1)
        if not outwards(far, count, place, width, dense, Va, Vb, ctx, jumps):
            central(Va, Vb, ctx, jumps[0])
            outwards(far, lines, 0.0, 1.0, 0.0, Va, Vb, ctx, jumps)
            return -far, lines + 1
    return -far, count + 1


@njit(cache=True, nogil=True, error_model="numpy")
def explained(u, b, edge, jumps, count):
    """Whether the point u on the line b is one that a jump of the lens passes over."""
    if count < 2:
        return False
    if b < 0.0:
        u, b = -u, -b
    slack = 0.05 * (jumps[0, 4] - jumps[0, 2]) + 0.01
    if b > abs(edge) * 1.02 + slack:
        return False
    k = 0
    while k < count - 2 and jumps[k + 1, 0] < b:
        k += 1
    s = min((b - jumps[k, 0]) / (jumps[k + 1, 0] - jumps[k, 0]), 1.0)
    left = jumps[k, 2] + s * (jumps[k + 1, 2] - jumps[k, 2])
    right = jumps[k, 4] + s * (jumps[k + 1, 4] - jumps[k, 4])
    return left - slack < u < right + slack
