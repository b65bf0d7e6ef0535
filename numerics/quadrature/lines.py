"""Expectations of planar models to high accuracy: lines of proximal points (host part).

See ``numerics/kernels/lines.py`` for the inner integral and docs/integration.md for the choices.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from numerics.quadrature.moments import Moments, covariance_root
from numerics.quadrature.nodes import hermite, legendre
from numerics.quadrature.threads import in_ranges

Z_REACH = 7.0


@dataclass(frozen=True)
class Rung:
    """One rule of the ladder.

    Attributes
    ----------
    b : int
        Gauss-Hermite nodes in the transverse field.
    panel_b : int
        Gauss-Legendre nodes on each of the panels that end where the jump of the lines closes; 0
        for Gauss-Hermite throughout (cheaper, but algebraic convergence).
    zv : int
        Gauss-Hermite nodes.
    zu : int
        Nodes per panel of 1.5 standard deviations, split where jumps set in.
    u : int
        Nodes per panel along a line.
    reach, wide : float
        Range of a line on either side and longest panel, in standard deviations.
    """

    b: int
    panel_b: int
    zv: int
    zu: int
    u: int
    reach: float
    wide: float
    width: float = 1.5


LADDER = (
    Rung(4, 0, 8, 5, 8, 4.5, 4.0),
    Rung(6, 0, 11, 6, 8, 5.0, 3.0),
    Rung(10, 0, 15, 7, 10, 5.4, 2.8),
    Rung(12, 7, 20, 9, 12, 5.8, 3.0),
    Rung(14, 10, 27, 11, 13, 6.2, 3.0),
    Rung(18, 14, 36, 14, 16, 6.7, 3.0),
    Rung(24, 20, 48, 20, 22, 7.2, 3.0),
)


@dataclass(frozen=True)
class Specification:
    """Gaussian and proximal numbers of a planar integral, in rotated coordinates.

    Attributes
    ----------
    deviation : (float, float)
        Standard deviations of zu and zv.
    field : (9,) array
        b = f0 + f1 zu + f2 zv + f3 xi and a = f4 + f5 zu + f6 zv + f7 xi + f8 xi'.
    response : (2,) array
        Va and Vb.
    mirrored : (bool, bool)
        Whether zu > 0, and zv > 0, carry half of each expectation.
    """

    deviation: tuple[float, float]
    field: np.ndarray
    response: np.ndarray
    mirrored: tuple[bool, bool]


def specification(group, mean, covariance, response) -> Specification | None:
    """Rotate and condition: (zu, zv), then b, then a. None if the coordinates do not separate."""
    rotation = np.array(group["rotation"])
    turn = np.zeros((4, 4))
    turn[:2, :2] = rotation
    turn[2, 2:], turn[3, 2:] = rotation[1], rotation[0]  # b before a
    order = np.array(group["order"])
    mean, covariance = turn @ mean[order], turn @ covariance[np.ix_(order, order)] @ turn.T
    turned = rotation @ response @ rotation.T
    if abs(turned[0, 1]) > 1e-12 * turned[0, 0] or abs(covariance[0, 1]) > 1e-12 * covariance[0, 0]:
        return None
    root = covariance_root(covariance)
    zu, zv = root[0, 0], root[1, 1]
    field = np.array([
        mean[2], root[2, 0] / zu, root[2, 1] / zv, root[2, 2],
        mean[3], root[3, 0] / zu, root[3, 1] / zv, root[3, 2], root[3, 3],
    ])  # fmt: skip
    return Specification((zu, zv), field, np.diag(turned).copy(), tuple(group["mirrored"]))


def _sources(kernel_roots, spec: Specification, c, n_context: int, rung: Rung):
    """Nodes and weights in (zu, zv); zu in panels split where jumps set in."""
    v_nodes, v_weights = hermite(rung.zv)
    if spec.mirrored[1]:
        keep = v_nodes > -1e-12
        doubled = np.where(v_nodes[keep] > 1e-12, 2.0, 1.0)
        v_nodes, v_weights = v_nodes[keep], v_weights[keep] * doubled
    sd = spec.deviation[0]
    low = 0.0 if spec.mirrored[0] else -Z_REACH * sd
    high, factor = Z_REACH * sd, 2.0 if spec.mirrored[0] else 1.0
    x, w = legendre(rung.zu)
    roots = np.empty(8)
    zu, zv, weights = [], [], []
    for node, weight in zip(v_nodes, v_weights, strict=True):
        z = spec.deviation[1] * node
        count = kernel_roots(low, high, z, *spec.response, c, n_context, 64, roots)
        breaks = [low, *sorted(roots[:count]), high]
        if not spec.mirrored[0] and count == 0:
            breaks.insert(1, 0.0)
        for left, right in itertools.pairwise(breaks):
            panels = max(1, int(np.ceil((right - left) / (rung.width * sd) - 1e-9)))
            step = (right - left) / panels
            for k in range(panels):
                u = left + step * (k + x)
                density = np.exp(-0.5 * (u / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
                zu.append(u)
                zv.append(np.full(len(u), z))
                weights.append(factor * weight * step * w * density)
    zu, zv, weights = (np.concatenate(part) for part in (zu, zv, weights))
    heavy = weights > 1e-16
    return zu[heavy], zv[heavy], weights[heavy]


def apply(module, suffix: str, group, spec: Specification, c, rung: Rung, scan: bool = False):
    """Sums, magnitudes, unresolved mass and number of points of one rule.

    Rows are added in a fixed order, so that the result does not depend on the threads.
    """
    zu, zv, weights = _sources(
        getattr(module, f"opening_roots{suffix}"), spec, c, group["context"], rung
    )
    b_nodes, b_weights = hermite(rung.b)
    x, w = legendre(rung.u)
    n = len(zu)
    sums, sizes = np.empty((n, group["moments"])), np.empty((n, group["moments"]))
    lost = np.empty(n)
    kernel = getattr(module, f"line_sums{suffix}")

    def part(first, last):
        kernel(first, last, zu, zv, weights, spec.field, spec.response, b_nodes, b_weights,
               *legendre(max(rung.panel_b, 1)), x, w, rung.panel_b > 0, rung.reach, rung.wide, c,
               group["context"], group["moments"], scan, sums, sizes, lost)  # fmt: skip

    in_ranges(part, n)
    return sums.sum(axis=0), sizes.sum(axis=0), float(lost.sum()), 2 * n * rung.b * rung.u


THRESHOLDS = (1e-4, 3.5e-5, 4e-6, 5e-7, 6e-8)


def rung_for(target: float) -> int:
    """The rung whose error estimate usually meets a relative accuracy."""
    return 1 + sum(target < t for t in THRESHOLDS)


def integrate(module, suffix, group, spec, c, target: float, estimate: bool) -> Moments:
    """Moments by the rung that fits ``target``; with an error from the rungs below on request."""
    level = rung_for(target)
    values, sizes, lost, points = apply(module, suffix, group, spec, c, LADDER[level])
    if not estimate:
        return Moments(values, np.full(len(values), np.nan), sizes, points, lost)
    history = [values]
    for lower in LADDER[max(level - 3, 0) : level][::-1]:
        coarse, _, _, more = apply(module, suffix, group, spec, c, lower)
        history.append(coarse)
        points += more
    error = ladder_error(history, sizes) + lost * sizes
    return Moments(values, error, sizes, points, lost)


def ladder_error(history: list[np.ndarray], sizes: np.ndarray) -> np.ndarray:
    """Error of ``history[0]`` from the rules below it, one relative error for all moments.

    The largest last difference D times r/(1-r), with r the ratio of the last two differences (the
    tail of a geometric series), but at least half of D, and at least a quarter of the difference
    before (three quarters where the ladder was not converging yet). The largest is taken since
    single moments agree by chance; the share of the one before, since whole rules do.
    """
    size = np.maximum(sizes, 1e-300)
    steps = [float(np.max(np.abs(a - b) / size)) for a, b in itertools.pairwise(history)]
    error = steps[0]
    if len(steps) > 1:
        ratio = steps[0] / steps[1] if steps[1] > 0 else 0.0
        tail = min(max(ratio / (1.0 - ratio), 0.5), 8.0) if ratio < 1.0 else 8.0
        slow = len(steps) > 2 and steps[1] > 0.3 * steps[2]
        error = max(tail * steps[0], (0.75 if slow else 0.25) * steps[1])
    return max(error, 1e-14) * size
