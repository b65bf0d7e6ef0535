"""Jumps of the proximal point across zero: the lens of points that they pass over.

For an even loss a jump opens at H = 0 where ``det d(a, b)/d(u, v) < 0``. On the lines b = const it
leads from (uL, vL) to (uR, vR), two minima of equal energy (Maxwell), and the points between are
passed over: a smooth body that closes in two cusps at +-b*, where the two minima become one.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.cusps import close, from_cusp
from numerics.kernels.jumps import JUMP, advance, central, opening

DENSE = 0.12  # strength of the concentration of lines around a bend, in units of the half lens


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
