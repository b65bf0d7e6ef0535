"""Folds and branch points as roots of augmented systems, solved by Newton.

All work on scaled unknowns. The Jacobian of the augmented system is a difference quotient of exact
first derivatives; its residual, which decides, is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from numerics.continuation.equations import BranchEquations
from numerics.continuation.stability import full_jacobian

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Polished:
    """Solution of an augmented system.

    Attributes
    ----------
    y : array
        State and parameter(s) of the point itself.
    rest : array
        The auxiliary unknowns.
    error : array
        Of each component of y: what the residual and rounding leave open.
    residual : float
    converged : bool
    """

    y: np.ndarray
    rest: np.ndarray
    error: np.ndarray
    residual: float
    converged: bool


def newton(
    function: Callable[[np.ndarray], np.ndarray],
    z: np.ndarray,
    kept: int,
    scale: np.ndarray,
    *,
    tolerance: float = 1e-11,
    steps: int = 25,
) -> Polished:
    """Newton in units of ``scale`` until it no longer moves; differences for the Jacobian."""
    n = len(z)
    residual, move, converged = function(z), np.inf, False
    inverse = np.full((n, n), np.inf)
    for _ in range(steps):
        if not np.all(np.isfinite(residual)):
            break
        jacobian = np.empty((len(residual), n))
        for j in range(n):
            h = 6e-6 * scale[j]
            ahead, behind = z.copy(), z.copy()
            ahead[j] += h
            behind[j] -= h
            jacobian[:, j] = (function(ahead) - function(behind)) / (2 * h) * scale[j]
        if not np.all(np.isfinite(jacobian)):
            break
        try:
            inverse = np.linalg.inv(jacobian)
        except np.linalg.LinAlgError:
            break
        step = inverse @ residual
        largest = float(np.max(np.abs(step)))
        if largest > 1.0:
            step /= largest
        new = z - scale * step
        after = function(new)
        if not np.all(np.isfinite(after)):
            break
        if np.max(np.abs(after)) > np.max(np.abs(residual)) and largest < 1e-7:
            converged = True
            break
        z, residual, move = new, after, largest
        if move <= 4 * EPS or (move <= tolerance and np.max(np.abs(residual)) <= 8 * EPS):
            converged = True
            break
    size = float(np.max(np.abs(residual)))
    converged = converged or (move <= 1e-8 and size <= tolerance)
    bound = scale * (np.abs(inverse) @ (np.abs(residual) + 8 * EPS))
    return Polished(z[:kept], z[kept:], bound[:kept], size, converged)


def singular_system(equations: BranchEquations, scale, rows, transverse: bool):
    """F(x, p) = 0, J v = 0, |v| = 1: a fold; or, with the full J, a transverse branch point.

    Regular at both, singular where the own system has a branch point.
    """
    n = len(equations.names) - 1
    problem = equations.problem

    def function(z):
        y, v = z[: n + 1], z[n + 1 :]
        if not equations.inside(y):
            return np.full(n + len(v) + 1, np.nan)
        flow = equations.residual(y) / rows
        if transverse:
            x, params = equations.at(y)
            matrix = full_jacobian(problem, x, params, equations.accuracy)
        else:
            matrix = equations.jacobian(y)[:, :-1] * scale[:-1] / rows[:, None]
        return np.concatenate([flow, matrix @ v, [v @ v - 1.0]])

    return function


def branch_point_system(equations: BranchEquations, scale, rows):
    """F + b w = 0, J^T w = 0, w . F_p = 0, |w| = 1 in (x, p, w, b): regular at a branch point."""
    n = len(equations.names) - 1

    def function(z):
        y, w, b = z[: n + 1], z[n + 1 : 2 * n + 1], z[-1]
        if not equations.inside(y):
            return np.full(2 * n + 2, np.nan)
        matrix = equations.jacobian(y) * scale / rows[:, None]
        return np.concatenate([
            equations.residual(y) / rows + b * w, matrix[:, :-1].T @ w, [w @ matrix[:, -1]],
            [w @ w - 1.0],
        ])  # fmt: skip

    return function


def null_vectors(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Right and left null vectors of the matrix nearest to singular, and its singular value."""
    left, values, right = np.linalg.svd(matrix)
    return right[-1], left[:, -1], float(values[-1])


def curvature(equations: BranchEquations, y, direction, w, scale, rows) -> tuple[float, float]:
    """Second and third derivative of w . F along ``direction`` (scaled unknowns)."""
    h = 1e-3

    def along(t):
        point = y.copy()
        point[: len(direction)] += t * h * scale[: len(direction)] * direction
        if not equations.inside(point):
            return math.nan
        matrix = equations.jacobian(point)[:, : len(direction)]
        return float(w @ (matrix * scale[: len(direction)] / rows[:, None]) @ direction)

    ahead, here, behind = along(1.0), along(0.0), along(-1.0)
    return (ahead - behind) / (2 * h), (ahead - 2 * here + behind) / h**2


def cubic(equations: BranchEquations, y, v, w, scale, rows) -> float:
    """Cubic coefficient of a pitchfork's normal form, the bend of the other unknowns included.

    Positive where the left and the right null vector are on one side of each other and the residual
    grows with the third power of the displacement along ``v``.
    """
    n, h = len(v), 1e-3

    def matrix(move):
        point = y.copy()
        point[:n] += scale[:n] * move
        if not equations.inside(point):
            return np.full((n, n), math.nan)
        return equations.jacobian(point)[:, :n] * scale[:n] / rows[:, None]

    bordered = np.block([[matrix(0 * v), w[:, None]], [v[None, :], np.zeros((1, 1))]])
    square = (matrix(h * v) - matrix(-h * v)) @ v / (2 * h)
    try:
        bend = -np.linalg.solve(bordered, np.append(square, 0.0))[:n]
    except np.linalg.LinAlgError:
        return math.nan
    # slopes of w . F along the parabola x + t v + t^2 bend / 2
    slopes = [w @ matrix(t * v + 0.5 * t**2 * bend) @ (v + t * bend) for t in (h, 0.0, -h)]
    return float(slopes[0] - 2 * slopes[1] + slopes[2]) / h**2 * math.copysign(1.0, w @ v)


def criticality(equations: BranchEquations, y) -> str:
    """Whether a pitchfork's side branches are where the symmetric one has lost this direction."""
    scale, rows = equations.scale(y), equations.row_scale(y)
    v, w, _ = null_vectors(equations.jacobian(y)[:, :-1] * scale[:-1] / rows[:, None])
    third = cubic(equations, y, v, w, scale, rows)
    if not abs(third) > 1e-4:
        return ""
    upward = third > 0 if equations.problem.form == "gradient" else third < 0
    return "supercritical" if upward else "subcritical"


def eigenvalue_slope(equations: BranchEquations, y, v, w, scale, rows) -> float:
    """Derivative of ``w . J v`` with the parameter, along the branch that is not tangent to v."""
    matrix = equations.jacobian(y) * scale / rows[:, None]
    n = len(v)
    bordered = np.block([[matrix[:, :n], w[:, None]], [v[None, :], np.zeros((1, 1))]])
    move = np.append(-np.linalg.solve(bordered, np.append(matrix[:, -1], 0.0))[:n], 1.0)
    h = 1e-4 / max(float(np.linalg.norm(move)), 1.0)
    ends = []
    for sign in (1.0, -1.0):
        point = y + sign * h * scale * move
        if not equations.inside(point):
            return math.nan
        ends.append(w @ (equations.jacobian(point) * scale / rows[:, None])[:, :n] @ v)
    return float((ends[0] - ends[1]) / (2 * h)) / scale[-1]
