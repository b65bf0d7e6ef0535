"""Expectations of planar models line by line, whatever the jumps (host part).

See ``numerics/kernels/lines.py`` for the inner integral and docs/integration.md for the choices.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from numerics.quadrature.moments import Moments
from numerics.quadrature.nodes import hermite, legendre
from numerics.quadrature.planar import Kernels, Specification
from numerics.quadrature.threads import in_ranges


@dataclass(frozen=True)
class Rung:
    """One rule of the ladder.

    Attributes
    ----------
    b : int
        Gauss-Hermite nodes in the transverse field.
    panel_b : int
        Gauss-Legendre nodes per panel in b, where panels are needed.
    split : bool
        End panels in b where a jump closes, too (else Gauss-Hermite suffices there).
    zv : int
        Gauss-Hermite nodes.
    zu : int
        Nodes per panel of at most 1.5 standard deviations, split where jumps set in.
    u : int
        Nodes per panel along a line.
    reach, wide, z_reach : float
        Range of a line, its longest panel, and range of zu; in standard deviations.
    """

    b: int
    panel_b: int
    split: bool
    zv: int
    zu: int
    u: int
    reach: float
    wide: float
    z_reach: float = 7.0


LADDER = (
    Rung(4, 5, False, 8, 5, 5, 4.5, 3.0, 5.0),
    Rung(6, 6, False, 11, 6, 6, 5.0, 3.0, 5.5),
    Rung(10, 7, False, 15, 7, 7, 5.4, 3.0, 6.0),
    Rung(12, 8, True, 20, 9, 8, 5.8, 3.0, 6.5),
    Rung(14, 10, True, 27, 11, 10, 6.2, 3.0),
    Rung(18, 14, True, 36, 14, 12, 6.7, 3.0),
    Rung(24, 20, True, 48, 20, 15, 7.2, 3.0, 7.5),
    Rung(32, 28, True, 64, 26, 20, 7.5, 3.0, 8.0),
)


@functools.cache
def _half_hermite(n: int) -> tuple[np.ndarray, np.ndarray]:
    x, w = hermite(n)
    keep = x > -1e-12
    return x[keep], w[keep] * np.where(x[keep] > 1e-12, 2.0, 1.0)


def sources(kernels: Kernels, spec: Specification, c, rung: Rung):
    """Nodes and weights in (zu, zv); zu in panels split where jumps set in."""
    v_nodes, v_weights = (_half_hermite if spec.mirrored[1] else hermite)(rung.zv)
    sd, high = spec.deviation[0], rung.z_reach * spec.deviation[0]
    low, factor = (0.0, 2.0) if spec.mirrored[0] else (-high, 1.0)
    x, w = legendre(rung.zu)
    roots = np.empty(8)
    zu, zv, weights = [], [], []
    for z, weight in zip(spec.deviation[1] * v_nodes, v_weights, strict=True):
        count = kernels.opening_roots(low, (high - low) / 64, 64, False, 0.0, z, *spec.response, c,
                                      kernels.context, roots)  # fmt: skip
        breaks = np.array([low, *roots[:count], high])
        panels = np.ceil(np.diff(breaks) / (1.5 * sd) - 1e-9).astype(int)
        edges = np.concatenate(
            [np.linspace(*ends, n, endpoint=False)
             for *ends, n in zip(breaks[:-1], breaks[1:], panels, strict=True)] + [[high]]
        )  # fmt: skip
        step = np.diff(edges)[:, None]
        u = (edges[:-1, None] + step * x).ravel()
        zu.append(u)
        zv.append(np.full(len(u), z))
        density = np.exp(-0.5 * (u / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        weights.append(factor * weight * (step * w).ravel() * density)
    zu, zv, weights = (np.concatenate(part) for part in (zu, zv, weights))
    heavy = weights > 1e-16
    return zu[heavy], zv[heavy], weights[heavy]


Sums = tuple[np.ndarray, np.ndarray, float, int]


def apply(kernels: Kernels, spec: Specification, c, rung: Rung) -> Sums:
    """Sums, magnitudes, unresolved mass and number of lines of one rule.

    Rows are added in a fixed order, so that the result does not depend on the threads.
    """
    zu, zv, weights = sources(kernels, spec, c, rung)
    n = len(zu)
    sums, sizes = np.empty((n, kernels.moments)), np.empty((n, kernels.moments))
    lost = np.empty(n)
    rules = *hermite(rung.b), *legendre(rung.panel_b), *legendre(rung.u)
    kernel = kernels.line_sums

    def part(first, last):
        kernel(first, last, zu, zv, weights, spec.field, spec.response, *rules,
               rung.split, rung.reach, rung.wide, c, kernels.context, kernels.moments, sums,
               sizes, lost)  # fmt: skip

    in_ranges(part, n)
    return sums.sum(axis=0), sizes.sum(axis=0), float(lost.sum()), n * rung.b


# relative accuracy that a rung's estimate usually meets, from rung 1 on
USUAL = (3e-4, 3e-5, 4e-6, 5e-7, 6e-8, 1e-8)


def rung_for(target: float) -> int:
    """The cheapest rung whose error estimate usually meets a relative accuracy."""
    return 1 + sum(target < t for t in USUAL)


def integrate(
    rule: Callable[[int], Sums], target: float, estimate: bool, always: int | None = None
) -> Moments:
    """Moments by the rung that fits ``target``; on request with errors from the rungs below.

    Parameters
    ----------
    rule : callable
        What `apply` returns, for each rung of the ladder.
    target : float
        Relative accuracy.
    estimate : bool
        Without, the errors are NaN and the rungs below are not needed.
    always : int, optional
        The moments beyond the first ``always`` may converge more slowly: each has its own error.
    """
    level = rung_for(target)
    values, sizes, lost, points = rule(level)
    if not estimate:
        return Moments(values, np.full(len(values), np.nan), sizes, points, lost)
    below = [rule(k) for k in range(level - 1, max(level - 4, -1), -1)]
    history, always = [values, *(b[0] for b in below)], always or len(values)
    error = np.full(len(values), ladder_error([h[:always] for h in history], sizes[:always]))
    for k in range(always, len(values)):
        own = ladder_error([h[k : k + 1] for h in history], sizes[k : k + 1])
        error[k] = max(own, error[0])
    errors = (error + lost) * np.maximum(sizes, 1e-300)
    return Moments(values, errors, sizes, points + sum(b[3] for b in below), lost)


def ladder_error(history: Sequence[np.ndarray], sizes: np.ndarray) -> float:
    """Relative error of ``history[0]``, the finest of consecutive rules, for all moments together.

    The largest relative difference D to the rule below, times r/(1-r) with r the ratio of the last
    two differences (the tail of a geometric series), but at least D/2, and a quarter of the
    difference before (three quarters unless the ladder is known to have converged before). Single
    moments, and whole rules, agree by chance, hence the largest, and the share of the one before.
    Where D is above 1e-4 the ladder has not begun to converge, and three times the largest
    difference counts; so it does where there is but one, and nine times that if it is large.
    """
    size = np.maximum(sizes, 1e-300)
    steps = [float(np.max(np.abs(a - b) / size)) for a, b in itertools.pairwise(history)]
    error = steps[0]
    if len(steps) > 1:
        ratio = steps[0] / steps[1] if steps[1] > 0 else 0.0
        tail = min(max(ratio / (1.0 - ratio), 0.5), 8.0) if ratio < 1.0 else 8.0
        slow = len(steps) == 2 or steps[1] > 0.3 * steps[2]
        error = max(tail * steps[0], (0.75 if slow else 0.25) * steps[1])
    if steps[0] > 1e-4 or len(steps) == 1:
        error = max(error, 3.0 * max(steps))
    if steps[0] > 1e-3 and len(steps) == 1:
        error *= 3.0
    return max(error, 1e-14) if error < 0.3 else math.inf  # nothing is resolved then
