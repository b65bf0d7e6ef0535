"""Pseudo-arclength continuation of any curve: predictor, bordered Newton corrector, step control.

All lengths are in natural units: components are divided by `CurveEquations.scale`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from numerics.continuation.equations import CurveEquations
from numerics.status import Status


@dataclass(frozen=True)
class Settings:
    """Settings of a continuation.

    Attributes
    ----------
    step, longest, shortest : float
        First, largest and smallest step, in natural units.
    max_points : int
        Accepted points.
    max_attempts : int
        All attempts, accepted or not.
    newton : int
        Corrector steps aimed at; twice as many, and the step is rejected.
    angle : float
        Largest angle between the tangents of neighbouring points (radians).
    method : {"arclength", "natural"}
        Natural continuation holds the parameter fixed while correcting; it cannot pass folds.
    predictor : {"tangent", "secant"}
    """

    step: float = 0.05
    longest: float = 0.25
    shortest: float = 1e-7
    max_points: int = 2000
    max_attempts: int = 5000
    newton: int = 4
    angle: float = 0.3
    method: str = "arclength"
    predictor: str = "tangent"


@dataclass(frozen=True)
class CurvePoint:
    """A point of a curve.

    Attributes
    ----------
    y : (N + 1,) array
    tangent : (N + 1,) array
        Unit vector in natural units.
    jacobian : (N, N + 1) array
        In the units of the equations.
    scale, row_scale : arrays
    residual : float
        Largest component in units of the equations' natural sizes.
    steps : int
        Of the corrector.
    fresh : bool
        Whether the Jacobian was computed here, or is the corrector's.
    """

    y: np.ndarray
    tangent: np.ndarray
    jacobian: np.ndarray
    scale: np.ndarray
    row_scale: np.ndarray
    residual: float
    steps: int
    fresh: bool = True

    @property
    def scaled_jacobian(self) -> np.ndarray:
        return self.jacobian * self.scale / self.row_scale[:, None]

    def distance(self, y: np.ndarray) -> float:
        """Distance of ``y`` in natural units."""
        return float(np.linalg.norm((y - self.y) / self.scale))


@dataclass(frozen=True)
class Corrected:
    """Outcome of the corrector."""

    y: np.ndarray
    jacobian: np.ndarray | None
    residual: float
    steps: int
    status: Status


def correct(
    equations: CurveEquations,
    guess: np.ndarray,
    normal: np.ndarray,
    *,
    jacobian: np.ndarray | None = None,
    max_steps: int = 12,
) -> Corrected:
    """Newton on the equations bordered by ``normal . (y - guess) = 0`` (normal in natural units).

    Convergence is the residual in natural units: at most ``equations.tolerance``, or as small as
    rounding allows when Newton no longer moves.
    """
    y, scale, rows = guess.copy(), equations.scale(guess), equations.row_scale(guess)
    residual = equations.residual(y) / rows
    size, fresh = _size(residual), False
    steps, matrix = 0, None if jacobian is None else jacobian * scale / rows[:, None]
    refreshed = 0
    for steps in range(max_steps + 1):
        if not math.isfinite(size):
            return Corrected(y, None, size, steps, Status.NON_FINITE)
        if size <= equations.tolerance:
            return _end(y, matrix, size, steps, scale, rows)
        if steps == max_steps:
            break
        if matrix is None or equations.exact:
            matrix, fresh = equations.jacobian(y) * scale / rows[:, None], True
        bordered = np.vstack([matrix, normal])
        right = np.append(residual, normal @ ((y - guess) / scale))
        try:
            move = -np.linalg.solve(bordered, right)
        except np.linalg.LinAlgError:
            return Corrected(y, None, size, steps, Status.SINGULAR)
        if np.count_nonzero(normal) == 1:
            # held exactly, so that a component on the edge of the domain stays there
            held = int(np.argmax(np.abs(normal)))
            move[held] = (guess[held] - y[held]) / scale[held]
        if not np.all(np.isfinite(move)):
            return Corrected(y, None, size, steps, Status.SINGULAR)
        new, length = y + scale * move, 1.0
        while not equations.inside(new):
            length /= 2
            if length < 1e-3:
                return Corrected(y, None, size, steps, Status.LEFT_DOMAIN)
            new = y + length * scale * move
        after = equations.residual(new) / rows
        if not equations.exact:
            taken = length * move
            matrix = matrix + np.outer(after - residual - matrix @ taken, taken) / (taken @ taken)
        if _size(after) > 0.5 * size:
            if np.linalg.norm(move) < 1e-11 and size < 1e4 * equations.tolerance:
                # as far as rounding lets Newton come
                return _end(y, matrix, size, steps, scale, rows)
            if not fresh and refreshed < 2:
                matrix, refreshed = None, refreshed + 1
            elif _size(after) > 2.0 * size and steps > 1:
                return Corrected(y, None, size, steps, Status.STALLED)
        fresh = False
        y, residual, size = new, after, _size(after)
    return Corrected(y, None, size, steps, Status.MAX_STEPS)


def _end(y, matrix, size, steps, scale, rows) -> Corrected:
    jacobian = None if matrix is None else matrix * rows[:, None] / scale
    return Corrected(y, jacobian, size, steps, Status.CONVERGED)


def _size(residual: np.ndarray) -> float:
    value = float(np.max(np.abs(residual), initial=0.0))
    return value if math.isfinite(value) else math.inf


def tangent(jacobian: np.ndarray, toward: np.ndarray) -> np.ndarray:
    """Unit null vector of a scaled Jacobian, on the side of ``toward``.

    At a branch point the null space is a plane: then the direction in it nearest to ``toward``.
    """
    _, sizes, right = np.linalg.svd(jacobian)
    null = right[-1]
    if sizes[-1] <= 1e-12 * max(sizes[0], 1.0):
        within = right[-2:].T @ (right[-2:] @ toward)
        length = float(np.linalg.norm(within))
        null = within / length if length > 0.1 * np.linalg.norm(toward) else null
    return null if null @ toward >= 0 else -null


def make_point(
    equations: CurveEquations, found: Corrected, toward: np.ndarray, *, lazy: bool | None = None
) -> CurvePoint:
    """The point with a Jacobian of its own (or, if that is enough, the corrector's)."""
    scale, rows = equations.scale(found.y), equations.row_scale(found.y)
    lazy = getattr(equations, "lazy", False) if lazy is None else lazy
    fresh = not lazy or found.jacobian is None
    jacobian = equations.jacobian(found.y) if fresh else found.jacobian
    scaled = jacobian * scale / rows[:, None]
    if np.all(np.isfinite(scaled)):
        direction = tangent(scaled, toward)
    else:
        direction = np.full(len(found.y), np.nan)
    return CurvePoint(
        found.y, direction, jacobian, scale, rows, found.residual, found.steps, fresh
    )  # fmt: skip


def renewed(equations: CurveEquations, point: CurvePoint) -> CurvePoint:
    """The point with a Jacobian of its own."""
    found = Corrected(point.y, None, point.residual, point.steps, Status.CONVERGED)
    return make_point(equations, found, point.tangent, lazy=False)


def start(
    equations: CurveEquations, y: np.ndarray, toward: np.ndarray, fixed: int = -1
) -> CurvePoint | Status:
    """First point near ``y``: with component ``fixed`` held, else (at a fold) the nearest."""
    normal = np.zeros(len(y))
    normal[fixed] = 1.0
    if not equations.inside(y):
        return Status.LEFT_DOMAIN
    found = correct(equations, y, normal, max_steps=25)
    if found.status is not Status.CONVERGED:
        matrix = equations.jacobian(y) * equations.scale(y) / equations.row_scale(y)[:, None]
        if not np.all(np.isfinite(matrix)):
            return Status.NON_FINITE
        found = correct(equations, y, np.linalg.svd(matrix)[2][-1], max_steps=25)
    if found.status is not Status.CONVERGED:
        return found.status
    return make_point(equations, found, toward)


def advance(
    equations: CurveEquations,
    here: CurvePoint,
    length: float,
    settings: Settings,
    previous: CurvePoint | None = None,
) -> CurvePoint | Status:
    """The point at ``length`` along the tangent, or why there is none."""  # fmt: skip
    direction = here.tangent
    if settings.predictor == "secant" and previous is not None:
        secant = (here.y - previous.y) / here.scale
        direction = secant / np.linalg.norm(secant)
    if settings.method == "natural":
        normal = np.zeros(len(here.y))
        normal[-1] = 1.0
    else:
        normal = direction
    guess = here.y + length * here.scale * direction
    if not equations.inside(guess):
        return Status.LEFT_DOMAIN
    found = correct(
        equations, guess, normal, jacobian=here.jacobian, max_steps=2 * settings.newton + 2
    )
    if found.status is not Status.CONVERGED:
        return found.status
    off = float(np.linalg.norm((found.y - guess) / here.scale))
    if off > 0.5 * abs(length) + 10 * equations.tolerance:
        return Status.WRONG_BRANCH
    return make_point(equations, found, direction * math.copysign(1.0, length))


def angle(a: CurvePoint, b: CurvePoint) -> float:
    """Angle between two tangents, in the natural units of the first."""
    turned = b.tangent * b.scale / a.scale
    cosine = float(a.tangent @ turned / np.linalg.norm(turned))
    return math.acos(min(max(cosine, -1.0), 1.0))


Watch = Callable[[CurvePoint, CurvePoint, float], Status | str | None]


def trace(
    equations: CurveEquations,
    first: CurvePoint,
    settings: Settings,
    *,
    bounds: Mapping[int, tuple[float, float]],
    watch: Watch = lambda a, b, h: None,
) -> Iterator[CurvePoint | Status]:
    """Points after ``first``, then the status that ended the run.

    Parameters
    ----------
    bounds : mapping of int to (low, high)
        Of components of y; the run ends on them exactly.
    watch : callable
        Gets the last point, the new one and the step between; may return "refine" to have the step
        halved, or a status to end the run after the new point.
    """
    here, previous = first, None
    length, travelled, accepted = settings.step, 0.0, 0
    outward = _leaving(first, bounds)
    if outward:
        yield Status.REACHED_BOUND
        return
    why = Status.STEP_TOO_SMALL
    for _ in range(settings.max_attempts):
        if accepted >= settings.max_points:
            break
        if length < settings.shortest:
            yield why
            return
        new = advance(equations, here, length, settings, previous)
        if new is Status.LEFT_DOMAIN:
            new = _onto_edge(equations, here, length, bounds)
        if isinstance(new, Status) and not here.fresh:
            here = renewed(equations, here)
            continue
        if isinstance(new, Status):
            why = new if new in (Status.LEFT_DOMAIN, Status.NON_FINITE) else Status.STEP_TOO_SMALL
            length /= 2
            continue
        if not np.all(np.isfinite(new.tangent)):
            why, length = Status.NON_FINITE, length / 2
            continue
        turn = angle(here, new)
        if turn > settings.angle and not (here.fresh and new.fresh):
            # a borrowed Jacobian may be to blame
            new = renewed(equations, new)
            if not here.fresh:
                here = renewed(equations, here)
            turn = angle(here, new)
        if turn > settings.angle and length > 4 * settings.shortest:
            why, length = Status.STEP_TOO_SMALL, length / 2
            continue
        ended = False
        crossed = _first_crossed(here, new, bounds)
        if crossed is not None and new.y[crossed[0]] == crossed[1]:
            ended = True
        elif crossed is not None:
            final = onto_bound(equations, here, new, *crossed)
            if final is None:
                length /= 2
                continue
            new, ended = final, True
        verdict = watch(here, new, length)
        if verdict == "refine" and length > 4 * settings.shortest:
            length /= 2
            continue
        yield new
        accepted += 1
        travelled += here.distance(new.y)
        if isinstance(verdict, Status):
            yield verdict
            return
        if ended:
            yield Status.REACHED_BOUND
            return
        if _closed(first, here, new, travelled):
            yield Status.CLOSED_LOOP
            return
        pace = math.sqrt((settings.newton + 1) / (new.steps + 1))
        bend = 0.5 * settings.angle / max(turn, 1e-9)
        length = min(length * min(max(min(pace, bend), 0.5), 2.0), settings.longest)
        previous, here = here, new
    yield Status.MAX_STEPS


def _leaving(point: CurvePoint, bounds) -> bool:
    """Whether a start on a bound (or beyond) is headed out."""
    for k, (low, high) in bounds.items():
        slack = 1e-12 * max(abs(low), abs(high), high - low)
        value, pace = point.y[k], point.tangent[k]
        if (value >= high - slack and pace > 0) or (value <= low + slack and pace < 0):
            return True
    return False


def _first_crossed(here: CurvePoint, new: CurvePoint, bounds):
    """The bound that the chord meets first: (component, value, fraction)."""
    best = None
    for k, (low, high) in bounds.items():
        for limit, beyond in ((low, new.y[k] <= low), (high, new.y[k] >= high)):
            move = new.y[k] - here.y[k]
            if beyond and move * (limit - here.y[k]) > 0:
                fraction = (limit - here.y[k]) / move
                if best is None or fraction < best[2]:
                    best = (k, limit, fraction)
    return best


def _onto_edge(equations, here: CurvePoint, length: float, bounds) -> CurvePoint | Status:
    """The point on a bound that is the domain's own edge, where no step leads beyond."""
    beyond = replace(here, y=here.y + length * here.scale * here.tangent)
    crossed = _first_crossed(here, beyond, bounds)
    if crossed is None:
        return Status.LEFT_DOMAIN
    found = onto_bound(equations, here, beyond, *crossed)
    return Status.LEFT_DOMAIN if found is None else found


def onto_bound(equations, here, new, k, limit, fraction) -> CurvePoint | None:
    """The point with component ``k`` on ``limit``, at about a fraction of the chord."""
    guess = here.y + fraction * (new.y - here.y)
    guess[k] = limit
    normal = np.zeros(len(guess))
    normal[k] = 1.0
    if not equations.inside(guess):
        return None
    found = correct(equations, guess, normal, jacobian=here.jacobian)
    chord = here.distance(new.y)
    if found.status is not Status.CONVERGED or here.distance(found.y) > 1.5 * chord + 1e-9:
        return None
    point = make_point(equations, found, new.tangent)
    return replace(point, y=np.where(np.arange(len(guess)) == k, limit, point.y))


def _closed(first: CurvePoint, here: CurvePoint, new: CurvePoint, travelled: float) -> bool:
    """Whether the segment from here to new passes the first point in its direction."""
    chord = (new.y - here.y) / first.scale
    length = float(np.linalg.norm(chord))
    if travelled < 4 * length or length == 0.0:
        return False
    along = float((first.y - here.y) / first.scale @ chord) / length
    off = (first.y - here.y) / first.scale - along * chord / length
    near = 0.0 < along <= length and float(np.linalg.norm(off)) < 0.1 * length
    return near and float(first.tangent @ new.tangent) > 0.5
