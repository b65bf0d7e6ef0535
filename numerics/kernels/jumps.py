"""Jumps of the proximal point between two minima of equal energy, followed by their tangents."""

import numpy as np
from numba import njit

from numerics.kernels.envelope import maxwell
from numerics.kernels.interface import derivatives
from numerics.kernels.minima import minimise

JUMP = 13  # numbers that describe one jump: see `put`, and the weights of its line


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
