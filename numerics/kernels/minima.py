"""Minima of the proximal objective of a planar model."""

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
