"""Integral over the lens of proximal points that are no global minima (`numerics.kernels.lens`).

On lines at b = b* sin(phi), with straight chords from one side of the lens to the other, everything
is analytic.
"""

import math

import numpy as np
from numba import njit

from numerics.kernels.envelope import settle
from numerics.kernels.interface import (
    context,
    derivatives,
    features,
    moments_of_features,
    of_features,
)
from numerics.kernels.jumps import JUMP
from numerics.kernels.lens import lens

SAMPLES = 10  # segments of a chord whose paths are measured, and fewer of the way to its line
SHORT = 3
SLACK = 12.0  # of the squared radius of the lens, where its end is hard to reach


@njit(cache=True, nogil=True, error_model="numpy")
def whitened(u, v, l_u, l_v, middle, centre, field, Va, Vb):
    """Standard normal variables (xi, xi') whose fields have (u, v) as proximal point."""
    x = (v + Vb * l_v - middle) / field[3]
    return x, (u + Va * l_u - centre - field[7] * x) / field[8]


@njit(cache=True, nogil=True, error_model="numpy")
def weigh(u, v, reach, middle, centre, field, Va, Vb, tab, ctx, out):
    """Density over proximal points at (u, v); ``out`` becomes the moments where it is not zero."""
    features(u, v, tab)
    l_u, l_v, l_uu, l_uv, l_vv = of_features(u, v, tab, ctx)
    x, y = whitened(u, v, l_u, l_v, middle, centre, field, Va, Vb)
    t = x * x + y * y
    if t > reach * reach:
        return 0.0
    moments_of_features(u + Va * l_u, v + Vb * l_v, u, v, tab, ctx, out)
    return ((1.0 + Va * l_uu) * (1.0 + Vb * l_vv) - Va * Vb * l_uv * l_uv) * math.exp(-0.5 * t)


@njit(cache=True, nogil=True, error_model="numpy")
def chord_fields(u, v, u_end, v_end, Va, Vb, ctx, a, b):
    """Fields at equally spaced points of a chord, as many as fit into ``a`` and ``b``."""
    for i in range(len(a)):
        s = i / (len(a) - 1)
        x, y = u + s * (u_end - u), v + s * (v_end - v)
        _l, l_u, l_v, _uu, _uv, _vv = derivatives(x, y, ctx)
        a[i], b[i] = x + Va * l_u, y + Vb * l_v


@njit(cache=True, nogil=True, error_model="numpy")
def chord_panels(a, b, sign, middle, centre, field, reach, wide, starts, ends):
    """Panels of a chord, of about equal lengths of the fields' path; their number.

    Lengths are in standard deviations; segments beyond the reach of the density are left out.
    ``a`` and ``b`` are `chord_fields`, and ``sign`` -1 is the chord's mirror image.
    """
    count, begin, first, segments = 0, 0.0, 0, len(a) - 1
    lengths = np.zeros(len(a))
    x0, y0 = 0.0, 0.0
    near = False
    for i in range(segments + 2):
        inside, length = False, 0.0
        if i <= segments:
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
            begin, k = first / segments, first
            for p in range(panels):
                target = total * (p + 1) / panels
                while k < last - 1 and lengths[k + 1] < target:
                    k += 1
                part = (target - lengths[k]) / max(lengths[k + 1] - lengths[k], 1e-300)
                end = (k + min(part, 1.0)) / segments if p < panels - 1 else last / segments
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
def cap_sums(jump, middle, centre, norm, field, reach, wide, x, half, Va, Vb, tab, ctx, out,
             path_a, path_b, starts, ends, n_moments, total, sizes):  # fmt: skip
    """Add what lies between the last chord, which bends back, and its line; the mass of it.

    All points of the line ``b = const`` through both sides, ``v = v(u)``, are where the density has
    decayed; fields of the chord are not. So little is left that the rule of half the order serves.
    """
    mass = 0.0
    uL, vL, uR, vR = jump[2], jump[3], jump[4], jump[5]
    chord_fields(uL, vL, uR, vR, Va, Vb, ctx, path_a, path_b)
    length = 0.0
    for i in range(SAMPLES):
        length += math.hypot((path_a[i + 1] - path_a[i]) / field[8],
                             (path_b[i + 1] - path_b[i]) / field[3])  # fmt: skip
    pieces, reached = min(int(length / wide) + 1, 24), False
    for side in range(2):
        panels = chord_panels(path_a, path_b, 1.0 - 2.0 * side, middle, centre, field, reach, wide,
                              starts, ends)  # fmt: skip
        reached = reached or panels > 0
    if not reached:
        return mass
    v_line = vL
    short_a, short_b = np.empty(SHORT + 1), np.empty(SHORT + 1)
    nodes = len(x) // 2 + 1
    for i in range(pieces * nodes):
        p, q = i // nodes, 2 * (i % nodes)
        s = (p + x[q]) / pieces
        u, v = uL + s * (uR - uL), vL + s * (vR - vL)
        _l, _u, l_v, _uu, _uv, _vv = derivatives(u, v, ctx)
        bent = v + Vb * l_v
        if bent > jump[0]:
            continue
        v_line, _l_u, _tilt, _curvature, regular = settle(u, v_line, jump[0], Vb, 0.3, 1e-11, ctx)
        if not regular:
            return np.inf
        chord_fields(u, v, u, v_line, Va, Vb, ctx, short_a, short_b)
        for side in range(2):
            sign = 1.0 - 2.0 * side
            panels = chord_panels(short_a, short_b, sign, middle, centre, field, reach, wide,
                                  starts, ends)  # fmt: skip
            for j in range(panels * nodes):
                n, r = j // nodes, 2 * (j % nodes)
                share = (ends[n] - starts[n]) / pieces
                y = v + (starts[n] + (ends[n] - starts[n]) * x[r]) * (v_line - v)
                weight = (
                    norm
                    * half[q]
                    * half[r]
                    * share
                    * (uR - uL)
                    * (v_line - v)
                    * weigh(sign * u, sign * y, reach, middle, centre, field, Va, Vb, tab, ctx, out)
                )
                if weight == 0.0:
                    continue
                mass += weight
                for m in range(n_moments):
                    term = weight * out[m]
                    for part in range(3):
                        total[part, m] += term
                    sizes[m] += abs(term)
    return mass


@njit(cache=True, nogil=True, error_model="numpy")
def fold_sums(first, last, zus, zvs, zweights, reaches, fars, lines, wide, field, response, x,
              w, half, c, n_context, n_features, n_moments, sums, sizes, checks):  # fmt: skip
    """Rows ``first:last`` of the integrals over the lens, one row for each pair of sources.

    Parameters
    ----------
    zus, zvs, zweights, reaches, fars : arrays
        Sources, their weights, and for each the range of the density and where the lens may end,
        in standard deviations.
    lines, wide : arrays
        For each row: lines b = const across half of the lens, and the length of the fields' path in
        one panel of a chord, in standard deviations.
    x, w, half : arrays
        Rule on [0, 1] for panels of the chords, and the weights of one of half the order.
    sums : (rows, 3, moments) array, filled with the sums, those over every other line, and
        those by the rule of half the order
    sizes : (rows, moments) array, filled with sums of magnitudes
    checks : (rows, 2) array, filled with the mass, which is zero for a lens whose jumps are all
        found, and the mass beyond its lines
    """  # fmt: skip
    Va, Vb = response[0], response[1]
    ctx, tab, out = np.empty(n_context), np.empty(n_features), np.empty(n_moments)
    most = 0
    for row in range(first, last):
        most = max(most, lines[row])
    cusp, jumps = np.zeros(5), np.empty((4 * most + 1, JUMP))
    starts, ends = np.empty(48), np.empty(48)
    path_a, path_b = np.empty(SAMPLES + 1), np.empty(SAMPLES + 1)
    total = np.empty((3, n_moments))
    for row in range(first, last):
        zu, zv = zus[row], zvs[row]
        context(zu, zv, c, ctx)
        sums[row], sizes[row], checks[row] = 0.0, 0.0, 0.0
        total[:] = 0.0
        middle = field[0] + field[1] * zu + field[2] * zv
        centre = field[4] + field[5] * zu + field[6] * zv
        far = abs(middle) + fars[row] * field[3]
        enough = abs(middle) + math.sqrt(max(fars[row] * fars[row] - SLACK, 0.0)) * field[3]
        edge, count = lens(far, enough, lines[row], cusp, Va, Vb, ctx, jumps)
        if count == 0:
            continue
        if edge <= 0.0:
            checks[row, 1] = 2.0 * zweights[row] * beyond(-edge, middle, field[3])
        norm = zweights[row] / (2.0 * math.pi * field[3] * field[8])
        for k in range(count):
            uL, vL, uR, vR = jumps[k, 2], jumps[k, 3], jumps[k, 4], jumps[k, 5]
            uL_b, vL_b = jumps[k, 7], jumps[k, 8]
            uR_b, vR_b = jumps[k, 9], jumps[k, 10]
            chord_fields(uL, vL, uR, vR, Va, Vb, ctx, path_a, path_b)
            for side in range(2):
                sign = 1.0 - 2.0 * side
                panels = chord_panels(path_a, path_b, sign, middle, centre, field, reaches[row],
                                      wide[row], starts, ends)  # fmt: skip
                for i in range(panels * len(x)):
                    p, q = i // len(x), i % len(x)
                    s = starts[p] + (ends[p] - starts[p]) * x[q]
                    u, v = uL + s * (uR - uL), vL + s * (vR - vL)
                    u_b, v_b = uL_b + s * (uR_b - uL_b), vL_b + s * (vR_b - vL_b)
                    area = norm * (ends[p] - starts[p]) * ((uR - uL) * v_b - (vR - vL) * u_b)
                    weight = area * weigh(sign * u, sign * v, reaches[row], middle, centre, field,
                                          Va, Vb, tab, ctx, out)  # fmt: skip
                    if weight == 0.0:
                        continue
                    line, every_other = jumps[k, 11], jumps[k, 12]
                    checks[row, 0] += line * weight * w[q]
                    for m in range(n_moments):
                        term = weight * out[m]
                        total[0, m] += line * w[q] * term
                        total[1, m] += every_other * w[q] * term
                        total[2, m] += line * half[q] * term
                        sizes[row, m] += abs(line * w[q] * term)
        if edge < 0.0:
            checks[row, 0] += cap_sums(
                jumps[count - 1], middle, centre, norm, field, reaches[row], wide[row], x, half,
                Va, Vb, tab, ctx, out, path_a, path_b, starts, ends, n_moments, total, sizes[row],
            )  # fmt: skip
        for m in range(n_moments):
            for part in range(3):
                sums[row, part, m] = total[part, m]
