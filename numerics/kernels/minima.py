"""Minima of the proximal objective of a planar model, and the fields at which two exchange."""

import math

from numba import njit

from numerics.kernels.interface import derivatives, loss


@njit(cache=True, nogil=True, error_model="numpy")
def objective(a, b, u, v, Va, Vb, ctx):
    """``(u-a)^2/2Va + (v-b)^2/2Vb + loss(u, v)``."""
    return 0.5 * (u - a) * (u - a) / Va + 0.5 * (v - b) * (v - b) / Vb + loss(u, v, ctx)


@njit(cache=True, nogil=True, error_model="numpy")
def minimise(a, b, u, v, Va, Vb, tolerance, ctx):
    """Local minimum reached from (u, v) by damped Newton; returns u, v and the objective."""
    value = objective(a, b, u, v, Va, Vb, ctx)
    damping = 0.0
    for _ in range(80):
        _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
        g_u, g_v = (u - a) / Va + l_u, (v - b) / Vb + l_v
        h_uu, h_vv = 1.0 / Va + l_uu, 1.0 / Vb + l_vv
        shift = damping
        if h_uu <= 0.0 or h_uu * h_vv - l_uv * l_uv <= 0.0:
            mean, half = 0.5 * (h_uu + h_vv), 0.5 * (h_uu - h_vv)
            lowest = mean - math.sqrt(half * half + l_uv * l_uv)
            shift = max(damping, 1e-3 * (abs(h_uu) + abs(h_vv) + 1.0 / Va) - lowest)
        determinant = (h_uu + shift) * (h_vv + shift) - l_uv * l_uv
        du = -((h_vv + shift) * g_u - l_uv * g_v) / determinant
        dv = -((h_uu + shift) * g_v - l_uv * g_u) / determinant
        longest = max(abs(du), abs(dv))
        if longest > 0.7:
            du, dv = 0.7 * du / longest, 0.7 * dv / longest
        new = objective(a, b, u + du, v + dv, Va, Vb, ctx)
        small = abs(du) + abs(dv) <= tolerance * (1.0 + abs(u) + abs(v))
        if new <= value + 1e-14 * abs(value):
            u, v, value = u + du, v + dv, new
            if small and shift == 0.0:
                break
            damping = 0.2 * damping if damping > 1e-4 / Va else 0.0
        elif small:
            break
        else:
            damping = max(5.0 * damping, 0.1 * (abs(h_uu) + abs(h_vv)))
    return u, v, value


@njit(cache=True, nogil=True, error_model="numpy")
def correction(a, b, u, v, Va, Vb, ctx):
    """Newton step at (u, v), objective after it, response of (u, v) to a, and convexity there."""
    value, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
    f = 0.5 * (u - a) * (u - a) / Va + 0.5 * (v - b) * (v - b) / Vb + value
    g_u, g_v = (u - a) / Va + l_u, (v - b) / Vb + l_v
    h_uu, h_vv = 1.0 / Va + l_uu, 1.0 / Vb + l_vv
    det = h_uu * h_vv - l_uv * l_uv
    du, dv = -(h_vv * g_u - l_uv * g_v) / det, -(h_uu * g_v - l_uv * g_u) / det
    f += 0.5 * (g_u * du + g_v * dv)
    return f, du, dv, h_vv / (Va * det), -l_uv / (Va * det), h_uu > 0.0 and det > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def maxwell(a, b, uL, vL, uR, vR, Va, Vb, ctx):
    """Field of equal energy of two minima by Newton on both at once.

    Returns (a, uL, vL, uR, vR, found); not found where the two do not stay apart and convex.
    """
    for _ in range(12):
        fL, duL, dvL, puL, pvL, convex_left = correction(a, b, uL, vL, Va, Vb, ctx)
        fR, duR, dvR, puR, pvR, convex_right = correction(a, b, uR, vR, Va, Vb, ctx)
        convex = convex_left and convex_right
        width = uR + duR - uL - duL
        if not (convex and width > 0.2 * (uR - uL) and width < 5.0 * (uR - uL)):
            break
        da = Va * (fR - fL) / width
        uL, vL, uR, vR = (
            uL + duL + puL * da,
            vL + dvL + pvL * da,
            uR + duR + puR * da,
            vR + dvR + pvR * da,
        )
        a += da
        if not uR - uL > 1e-6:
            break
        change = abs(da) + abs(duL) + abs(dvL) + abs(duR) + abs(dvR)
        if change <= 1e-6 * (1.0 + abs(uR) + abs(uL)):
            return a, uL, vL, uR, vR, change <= 1e-2 * (uR - uL)
    return a, uL, vL, uR, vR, False


@njit(cache=True, nogil=True, error_model="numpy")
def slow_maxwell(a, b, uL, vL, uR, vR, Va, Vb, ctx):
    """The same by nested minimisation: slower, from farther away."""
    for _ in range(40):
        uL, vL, left = minimise(a, b, uL, vL, Va, Vb, 1e-9, ctx)
        uR, vR, right = minimise(a, b, uR, vR, Va, Vb, 1e-9, ctx)
        width = uR - uL
        if not width > 1e-6:
            return a, uL, vL, uR, vR, False
        step = Va * (right - left) / width
        limit = 0.5 * width
        a += min(max(step, -limit), limit)
        if abs(step) <= 1e-4 * width:
            break
    return maxwell(a, b, uL, vL, uR, vR, Va, Vb, ctx)


@njit(cache=True, nogil=True, error_model="numpy")
def transverse(u, b, v, Vb, ctx):
    """Local minimum over v at fixed u: (v, ``min_v [(v-b)^2/2Vb + loss]``)."""
    for _ in range(60):
        _l, l_u, l_v, l_uu, l_uv, l_vv = derivatives(u, v, ctx)
        slope, across = (v - b) / Vb + l_v, 1.0 / Vb + l_vv
        dv = -slope / across if across > 0.0 else -slope * Vb
        dv = min(max(dv, -1.0), 1.0)
        v += dv
        if abs(dv) <= 1e-7 * (1.0 + abs(v)):
            break
    return v, 0.5 * (v - b) * (v - b) / Vb + loss(u, v, ctx)


@njit(cache=True, nogil=True, error_model="numpy")
def best_of(a, b, u, v, mu, mv, Va, Vb, tolerance, ctx):
    """Lowest minimum reached from a candidate, from the field, and from a mirrored minimum.

    Far out, where the loss saturates, the field is a minimum; the loss is even in (u, v), so the
    image of a minimum on the other side competes with the one on this side.
    """
    u, v, value = minimise(a, b, u, v, Va, Vb, tolerance, ctx)
    for k in range(2):
        su, sv = (a, b) if k == 0 else (mu, mv)
        tu, tv, new = minimise(a, b, su, sv, Va, Vb, tolerance, ctx)
        if new < value - 1e-12 * abs(value):
            u, v, value = tu, tv, new
    return u, v


@njit(cache=True, nogil=True, error_model="numpy")
def undercut(a, b, uL, vL, uR, vR, Va, Vb, ctx):
    """Whether another minimum lies below the two that meet at the jump."""
    value = objective(a, b, uL, vL, Va, Vb, ctx)
    limit = value - 1e-12 * abs(value)
    if objective(a, b, 0.0, b, Va, Vb, ctx) < limit:
        return True
    if abs(uL + uR) + abs(vL + vR) < 0.3:
        return False
    _u, _v, first = minimise(a, b, -uL, -vL, Va, Vb, 1e-3, ctx)
    _u, _v, second = minimise(a, b, -uR, -vR, Va, Vb, 1e-3, ctx)
    return min(first, second) < limit
