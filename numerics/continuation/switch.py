"""Leaving a branch point along the branches that cross there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from numerics.continuation.equations import BranchEquations
from numerics.continuation.event import Event
from numerics.continuation.stability import embed, whole
from numerics.continuation.tracer import Corrected, CurvePoint, correct, make_point, onto_bound
from numerics.protocol import ProblemLike
from numerics.status import Status
from theory.joint import moved

FIRST_STEPS = (0.02, 0.05, 0.1, 0.2, 0.005, 0.001)


def new_directions(equations: BranchEquations, y: np.ndarray, old: np.ndarray) -> list[np.ndarray]:
    """Tangents (natural units) of the curves through a branch point, other than ``old``.

    The null space of [F_x, F_p] is two-dimensional there; the tangents are the roots of the
    quadratic form that w . F makes on it.
    """
    scale, rows = equations.scale(y), equations.row_scale(y)
    matrix = equations.jacobian(y) * scale / rows[:, None]
    left, _, right = np.linalg.svd(matrix)
    plane, w = right[-2:], left[:, -1]
    h = 1e-3

    def slope(direction):
        ahead, behind = y + h * scale * direction, y - h * scale * direction
        if not (equations.inside(ahead) and equations.inside(behind)):
            return np.full(len(y), math.nan)
        change = equations.jacobian(ahead) - equations.jacobian(behind)
        return w @ (change * scale / rows[:, None]) / (2 * h)

    form = np.array([[slope(a) @ b for b in plane] for a in plane])
    form = 0.5 * (form + form.T)
    if not np.all(np.isfinite(form)):
        return []
    values, axes = np.linalg.eigh(form)
    if values[0] * values[1] >= 0:
        # degenerate: fall back to the soft direction of the unknowns
        soft = np.append(np.linalg.svd(matrix[:, :-1])[2][-1], 0.0)
        return [soft]
    tilt = math.atan2(math.sqrt(-values[0]), math.sqrt(values[1]))
    found = []
    for sign in (1.0, -1.0):
        mixed = math.cos(tilt) * axes[:, 0] + sign * math.sin(tilt) * axes[:, 1]
        direction = mixed @ plane
        found.append(direction / np.linalg.norm(direction))
    found.sort(key=lambda d: abs(float(d @ old)))
    return found[:1]


def leave(equations: BranchEquations, y: np.ndarray, direction: np.ndarray) -> CurvePoint | None:
    """First point of the branch that leaves ``y`` along ``direction``; None if there is none."""
    scale = equations.scale(y)
    for step in FIRST_STEPS:
        guess = y + step * scale * direction
        if not equations.inside(guess):
            continue
        found = correct(equations, guess, direction, max_steps=15)
        if found.status is not Status.CONVERGED:
            continue
        move = (found.y - y) / scale
        cosine = float(move @ direction) / max(float(np.linalg.norm(move)), 1e-300)
        if cosine > 0.8:
            return make_point(equations, found, direction)
    return None


def departure(equations: BranchEquations, y: np.ndarray, direction: np.ndarray) -> CurvePoint:
    """The branch point itself, as first point of the branch that leaves it along ``direction``."""
    found = Corrected(y, None, 0.0, 0, Status.CONVERGED)
    return replace(make_point(equations, found, direction), tangent=direction)


def into(
    equations: BranchEquations, origin: CurvePoint, point: CurvePoint, span: tuple[float, float]
) -> CurvePoint | None:
    """A first point that is inside the range: ``point``, or else the one on the bound.

    None if the branch point is on the bound itself.
    """
    low, high = span
    value, bound = point.y[-1], min(max(point.y[-1], low), high)
    if value == bound:
        return point
    if abs(origin.y[-1] - bound) <= 1e-9 * (high - low):
        return None
    fraction = (bound - origin.y[-1]) / (value - origin.y[-1])
    return onto_bound(equations, origin, point, len(point.y) - 1, bound, fraction)


def narrowest(
    problem: ProblemLike, x: np.ndarray, params: Mapping[str, float], tolerance: float = 1e-9
) -> tuple[ProblemLike, np.ndarray]:
    """The reduction with the fewest unknowns that contains a state of the whole problem.

    ``tolerance`` is on what the reduction leaves out, in natural units.
    """
    best, state = problem, x
    full = dict(zip(problem.unknowns, x, strict=True))
    for smaller in getattr(problem, "family", []):
        own = np.array([full[u] for u in smaller.unknowns])
        scale = problem.scale(x, params)
        fits = float(np.max(np.abs(embed(smaller, own) - x) / scale)) < tolerance
        if fits and len(smaller.unknowns) < len(best.unknowns):
            best, state = smaller, own
    return best, state


def prepared(equations: BranchEquations, event: Event, old: np.ndarray):
    """Problem, point and directions with which to leave ``event`` (found on ``equations``).

    A transverse branch point is left in the smallest reduction of the model that contains it.
    """
    y = np.append(event.state.x, event.value)
    if not event.transverse:
        return equations.problem, y, new_directions(equations, y, old)
    full = whole(equations.problem)
    x = embed(equations.problem, event.state.x)
    assert event.direction is not None
    soft = event.direction / np.linalg.norm(event.direction)
    soft = np.where(np.abs(soft) > 1e-6, soft, 0.0)
    params = moved(equations.params, equations.parameter, event.value)
    target, _ = narrowest(full, x + 1e-3 * full.scale(x, params) * soft, params)
    names = dict(zip(full.unknowns, soft, strict=True))
    base = dict(zip(full.unknowns, x, strict=True))
    start = np.array([base[u] for u in target.unknowns])
    direction = np.append([names[u] for u in target.unknowns], 0.0)
    scale = np.append(target.scale(start, params), 1.0)
    direction = direction / scale
    return target, np.append(start, event.value), [direction / np.linalg.norm(direction)]
