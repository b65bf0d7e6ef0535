"""Integral over the lens of proximal points that are no global minima (`numerics.kernels.lens`).

On lines at b = b* sin(phi), with straight chords from one side of the lens to the other, everything
is analytic.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.interface import (
    context,
    derivatives,
    features,
    moments_of_features,
    of_features,
)
from numerics.kernels.lens import JUMP, lens

SAMPLES = 10  # segments of a chord whose paths are measured


@njit(cache=True, nogil=True, error_model="numpy")
def chord_fields(jump, Va, Vb, ctx, a, b):
    """Fields at equally spaced points of a chord."""
    for i in range(SAMPLES + 1):
        s = i / SAMPLES
        u, v = jump[2] + s * (jump[4] - jump[2]), jump[3] + s * (jump[5] - jump[3])
        _l, l_u, l_v, _uu, _uv, _vv = derivatives(u, v, ctx)
        a[i], b[i] = u + Va * l_u, v + Vb * l_v


@njit(cache=True, nogil=True, error_model="numpy")
def chord_panels(a, b, sign, middle, centre, field, reach, wide, starts, ends):
    """Panels of a chord, of about equal lengths of the fields' path; their number.

    Lengths are in standard deviations; segments beyond the reach of the density are left out.
    ``a`` and ``b`` are `chord_fields`, and ``sign`` -1 is the chord's mirror image.
    """
    count, begin, first = 0, 0.0, 0
    lengths = np.zeros(SAMPLES + 1)
    x0, y0 = 0.0, 0.0
    near = False
    for i in range(SAMPLES + 2):
        inside, length = False, 0.0
        if i <= SAMPLES:
            x = (sign * b[i] - middle) / field[3]
            y = (sign * a[i] - centre - field[7] * x) / field[8]
            length = math.sqrt((x - x0) * (x - x0) + (y - y0) * (y - y0))
            closest = min(x * x + y * y, x0 * x0 + y0 * y0)
            far = reach + 0.25 * length
            inside = closest < far * far or x * x0 < 0.0 or y * y0 < 0.0
            x0, y0 = x, y
        if i > 0 and inside:
            if not near:
                first, near = i - 1, True
                lengths[first] = 0.0
            lengths[i] = lengths[i - 1] + length
        elif near:
            # a run of segments ends at the point i - 1
            near = False
            last = i - 1
            total = lengths[last]
            panels = min(int(total / wide) + 1, len(starts) - count)
            begin, k = first / SAMPLES, first
            for p in range(panels):
                target = total * (p + 1) / panels
                while k < last - 1 and lengths[k + 1] < target:
                    k += 1
                part = (target - lengths[k]) / max(lengths[k + 1] - lengths[k], 1e-300)
                end = (k + min(part, 1.0)) / SAMPLES if p < panels - 1 else last / SAMPLES
                starts[count], ends[count] = begin, end
                count += 1
                begin = end
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def beyond(b, mean, sd):
    """Gaussian mass outside of [-b, b]."""
    scale = 1.0 / (math.sqrt(2.0) * sd)
    return 0.5 * (math.erfc((b - mean) * scale) + math.erfc((b + mean) * scale))


@njit(cache=True, nogil=True, error_model="numpy")
def fold_sums(first, last, zus, zvs, zweights, reaches, lines, wide, field, response, x, w, half,
              c, n_context, n_features, n_moments, sums, sizes, checks):  # fmt: skip
    """Rows ``first:last`` of the integrals over the lens, one row for each pair of sources.

    Parameters
    ----------
    zus, zvs, zweights, reaches : arrays
        Sources, their weights, and the range of the density for each, in standard deviations.
    lines, wide : arrays
        For each row: lines b = const across half of the lens, and the length of the fields' path in
        one panel of a chord, in standard deviations.
    x, w, half : arrays
        Rule on [0, 1] for panels of the chords, and the weights of one of half the order.
    sums : (rows, 3, moments) array, filled with the sums, those over every other line (twice), and
        those by the rule of half the order
    sizes : (rows, moments) array, filled with sums of magnitudes
    checks : (rows, 2) array, filled with the mass, which is zero for a lens whose jumps are all
        found, and the mass beyond the lines to which they could be followed
    """  # fmt: skip
    Va, Vb = response[0], response[1]
    ctx, tab, out = np.empty(n_context), np.empty(n_features), np.empty(n_moments)
    most = 0
    for row in range(first, last):
        most = max(most, lines[row])
    cusp, jumps = np.zeros(5), np.empty((most + 1, JUMP))
    starts, ends = np.empty(48), np.empty(48)
    path_a, path_b = np.empty(SAMPLES + 1), np.empty(SAMPLES + 1)
    total = np.empty((3, n_moments))
    for row in range(first, last):
        zu, zv = zus[row], zvs[row]
        context(zu, zv, c, ctx)
        sums[row], sizes[row], checks[row] = 0.0, 0.0, 0.0
        total[:] = 0.0
        middle = field[0] + field[1] * zu + field[2] * zv
        limit = abs(middle) + (reaches[row] + 1.5) * field[3]
        edge, count = lens(limit, lines[row], cusp, Va, Vb, ctx, jumps)
        if edge == 0.0:
            continue
        if count < lines[row] or (edge < 0.0 and edge > -limit):
            known = jumps[count - 1, 0] if 0 < count < lines[row] else -edge * (count > 0)
            checks[row, 1] = zweights[row] * beyond(known, middle, field[3])
        centre = field[4] + field[5] * zu + field[6] * zv
        norm = zweights[row] / (2.0 * math.pi * field[3] * field[8])
        reach = reaches[row] * reaches[row]
        for k in range(count):
            if edge > 0.0:  # an analytic periodic function of phi
                step = 0.5 * math.pi / lines[row]
                share = step * edge * math.cos((k + 0.5) * step)
            else:
                share = -edge / lines[row]
            uL, vL, uR, vR = jumps[k, 2], jumps[k, 3], jumps[k, 4], jumps[k, 5]
            uL_b, vL_b = jumps[k, 7], jumps[k, 8]
            uR_b, vR_b = jumps[k, 9], jumps[k, 10]
            chord_fields(jumps[k], Va, Vb, ctx, path_a, path_b)
            for side in range(2):
                sign = 1.0 - 2.0 * side
                panels = chord_panels(path_a, path_b, sign, middle, centre, field, reaches[row],
                                      wide[row], starts, ends)  # fmt: skip
                for i in range(panels * len(x)):
                    p, q = i // len(x), i % len(x)
                    s = starts[p] + (ends[p] - starts[p]) * x[q]
                    u, v = uL + s * (uR - uL), vL + s * (vR - vL)
                    u_b, v_b = uL_b + s * (uR_b - uL_b), vL_b + s * (vR_b - vL_b)
                    area = share * (ends[p] - starts[p]) * ((uR - uL) * v_b - (vR - vL) * u_b)
                    u, v = sign * u, sign * v
                    features(u, v, tab)
                    l_u, l_v, l_uu, l_uv, l_vv = of_features(u, v, tab, ctx)
                    det = (1.0 + Va * l_uu) * (1.0 + Vb * l_vv) - Va * Vb * l_uv * l_uv
                    fa, fb = u + Va * l_u, v + Vb * l_v
                    xi = (fb - middle) / field[3]
                    eta = (fa - centre - field[7] * xi) / field[8]
                    t = xi * xi + eta * eta
                    if t > reach:
                        continue
                    weight = norm * area * det * math.exp(-0.5 * t)
                    checks[row, 0] += weight * w[q]
                    moments_of_features(fa, fb, u, v, tab, ctx, out)
                    even = (k + side) % 2
                    for m in range(n_moments):
                        term = weight * out[m]
                        total[even, m] += w[q] * term
                        total[2, m] += half[q] * term
                        sizes[row, m] += abs(w[q] * term)
        for m in range(n_moments):
            sums[row, 0, m] = total[0, m] + total[1, m]
            sums[row, 1, m], sums[row, 2, m] = 2.0 * total[0, m], total[2, m]
