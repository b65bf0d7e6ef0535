"""Where the energies of two stretches of branches seem to be equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from numerics.continuation.branch import Branch
from numerics.solvers import Solution
from theory.joint import slope, value_of

if TYPE_CHECKING:
    from scipy.interpolate import CubicHermiteSpline

ENDING = ("pitchfork", "transcritical", "branch point", "fold", "oscillatory")

Stretch = tuple[Branch, int, int]  # points [first, last), between turns of the parameter


def stable_stretches(branch: Branch, level: int = 0) -> list[tuple[int, int]]:
    """Ranges of points with ``level`` growing directions between turns; [first, last)."""
    found = []
    for first, last in branch.stretches():
        k = first
        while k < last:
            if branch.unstable[k] != level:
                k += 1
                continue
            end = k
            while end < last and branch.unstable[end] == level:
                end += 1
            found.append((k, end))
            k = end
    return found


def widened(stretch: Stretch) -> Stretch:
    """With one more point on either side, up to the turns of the parameter.

    Stability changes somewhere on the way to it.
    """
    branch, first, last = stretch
    a, b = next((a, b) for a, b in branch.stretches() if a <= first and last <= b)
    return branch, max(a, first - 1), min(b, last + 1)


def reaches(stretch: Stretch, value: float) -> bool:
    """Whether a value lies on a stretch, or beyond its end but before the event that ends it."""
    branch, first, last = stretch
    ends = branch.values[first:last]
    low, high = min(ends), max(ends)
    gap = (value, low) if value < low else (high, value)
    return low <= value <= high or not any(
        gap[0] < e.value < gap[1] for e in branch.events if e.kind in ENDING
    )


def nearest(stretch: Stretch, value: float) -> Solution:
    branch, first, last = stretch
    k = int(np.argmin(np.abs(branch.values[first:last] - value)))
    return branch.points[first + k]


def energy_curve(stretch: Stretch) -> CubicHermiteSpline:
    """Energy along a stretch, with its exact slopes."""
    from scipy.interpolate import CubicHermiteSpline  # slow to import

    branch, first, last = stretch
    parameter = branch.parameter
    points = sorted(branch.points[first:last], key=lambda s: value_of(s.params, parameter))
    x = np.array([value_of(s.params, parameter) for s in points])
    keep = np.append(True, np.diff(x) > 1e-14)
    kept = [s for s, k in zip(points, keep, strict=True) if k]
    return CubicHermiteSpline(x[keep], [s.energy for s in kept],
                              [slope(s.gradient, parameter) for s in kept])  # fmt: skip


def meetings(one: Stretch, other: Stretch) -> list[float]:
    """Values at which the interpolated energies of two stretches are equal."""
    if any(np.ptp(b.values[i:j]) <= 1e-14 for b, i, j in (one, other)):
        return []
    curves = [energy_curve(s) for s in (one, other)]
    low, high = max(c.x[0] for c in curves), min(c.x[-1] for c in curves)
    if not low < high:
        return []
    nodes = np.unique(np.concatenate([c.x for c in curves]))
    nodes = np.unique(np.clip(nodes, low, high))
    grid = np.unique(np.concatenate([nodes, 0.5 * (nodes[1:] + nodes[:-1])]))
    gap = curves[0](grid) - curves[1](grid)
    # equal energies all along, or up to rounding, are a symmetry and no crossing
    size = np.abs(curves[0](grid)) + np.abs(curves[1](grid))
    clear = np.abs(gap) > 1e-13 * np.max(size)
    grid, gap = grid[clear], gap[clear]
    found = []
    for k in np.flatnonzero(gap[1:] * gap[:-1] < 0):
        share = gap[k] / (gap[k] - gap[k + 1])
        found.append(float(grid[k] + share * (grid[k + 1] - grid[k])))
    return found


def apart(one: Stretch, other: Stretch) -> list[tuple[float, float]]:
    """(parameter, interpolated energy difference) where two stretches overlap."""
    curves = [energy_curve(s) for s in (one, other)]
    low, high = max(c.x[0] for c in curves), min(c.x[-1] for c in curves)
    grid = [x for c in curves for x in c.x if low <= x <= high]
    return sorted((float(x), float(curves[0](x) - curves[1](x))) for x in grid)


def passes(branch: Branch, value: float) -> list[np.ndarray]:
    """Where the chords of a branch pass a value of the parameter."""
    p = branch.curve[:, -1] if len(branch.curve) else np.empty(0)
    if len(p) == 1 and abs(p[0] - value) < 1e-12 * max(abs(value), 1.0):
        return [branch.curve[0].copy()]
    found = []
    for k in range(len(p) - 1):
        a, b = p[k], p[k + 1]
        slack = 1e-12 * max(abs(a), abs(b))
        if min(a, b) - slack <= value <= max(a, b) + slack:
            t = 0.5 if a == b else (value - a) / (b - a)
            y = branch.curve[k] + t * (branch.curve[k + 1] - branch.curve[k])
            y[-1] = value
            found.append(y)
    return found
