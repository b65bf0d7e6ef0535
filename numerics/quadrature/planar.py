"""Expectations of planar models whose proximal point may jump anywhere (host part).

See ``numerics/kernels/planar.py`` for the inner integral. Slower than a tracked line where there is
at most one jump, and certain where there are more: large response, saturated targets.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from numerics.quadrature.lines import Specification
from numerics.quadrature.moments import Moments
from numerics.quadrature.nodes import hermite, legendre
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


@dataclass(frozen=True)
class Kernels:
    """The generated module's functions and sizes that the host needs."""

    module: object
    context: int
    moments: int
    suffix: str = ""

    def __getattr__(self, name):
        return getattr(self.module, f"{name}{self.suffix}")


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


def apply(kernels: Kernels, spec: Specification, c, rung: Rung):
    """Sums, magnitudes, unresolved mass and number of lines of one rule.

    Rows are added in a fixed order, so that the result does not depend on the threads.
    """
    zu, zv, weights = sources(kernels, spec, c, rung)
    n = len(zu)
    sums, sizes = np.empty((n, kernels.moments)), np.empty((n, kernels.moments))
    lost = np.empty(n)
    rules = *hermite(rung.b), *legendre(rung.panel_b), *legendre(rung.u)
    kernel = kernels.planar_sums

    def part(first, last):
        kernel(first, last, zu, zv, weights, spec.field, spec.response, *rules,
               rung.split, rung.reach, rung.wide, c, kernels.context, kernels.moments, sums,
               sizes, lost)  # fmt: skip

    in_ranges(part, n)
    return sums.sum(axis=0), sizes.sum(axis=0), float(lost.sum()), n * rung.b


def integrate(kernels: Kernels, spec: Specification, c, rung: int) -> np.ndarray:
    """The moments by one rule, without an error."""
    return apply(kernels, spec, c, LADDER[rung])[0]


def integrate_with_error(
    kernels: Kernels, spec: Specification, c, target: float = 1e-6, rung: int | None = None
) -> Moments:
    """The moments with errors that bound the true ones.

    Parameters
    ----------
    target : float
        Climb the ladder until the error relative to the magnitudes is below; at the top, return
        with the larger error.
    rung : int, optional
        Use this rule (and those below it for the error), whatever the target.
    """
    history: list[np.ndarray] = []
    points = 0
    levels = range(len(LADDER)) if rung is None else range(max(rung - 3, 0), rung + 1)
    for level in levels:
        values, sizes, lost, more = apply(kernels, spec, c, LADDER[level])
        history.insert(0, values)
        points += more
        if len(history) > 1:
            result = Moments(values, _error(history, sizes, lost), sizes, points, lost)
            if rung is None and not result.relative_error > target:
                break
    if len(history) == 1:
        result = Moments(values, np.full(len(values), np.inf), sizes, points, lost)
    return result


def _error(history: list[np.ndarray], sizes: np.ndarray, lost: float) -> np.ndarray:
    """One relative error for all moments, since single ones agree by chance.

    From the last three differences between rules, as whole rules agree by chance, too: the last,
    at least about half of the one before; three times the largest where the ladder does not
    converge steadily and fast (or nothing is known about it). Added is three times the mass that
    is not accounted for.
    """
    size = np.maximum(sizes, 1e-300)
    steps = [float(np.max(np.abs(a - b) / size)) for a, b in itertools.pairwise(history)][:3]
    ratios = [a / b if b > 0 else 0.0 for a, b in itertools.pairwise(steps)]
    if ratios and max(ratios) < 0.3:
        error = max(steps[0], (0.45 if len(ratios) == 2 else 0.6) * steps[1])
    else:
        error = 3.0 * max(steps)
    return (max(error, 1e-14) + 3.0 * lost) * size
