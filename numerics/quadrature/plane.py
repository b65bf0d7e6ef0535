"""Expectations of planar models in the plane of the proximal point (host part).

The integral over all proximal points (`numerics/kernels/plane.py`) less that over the lens of those
that are no global minima (`numerics/kernels/fold.py`). Both have analytic integrands and no
boundary but the lens's own smooth one, so that every rule here converges geometrically, and the
difference to its own sub-rule of twice the spacing gives its error. See docs/integration.md.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from numerics.quadrature.moments import Moments
from numerics.quadrature.planar import Kernels, Specification
from numerics.quadrature.threads import in_ranges

MOST_FEATURES = 150_000  # points of the grid; beyond, lines are cheaper
ROUNDS = 4
CERTIFIED = 0.05  # the accuracy to aim at, to the error that is certified then
ALGEBRAIC = 2e-4  # what remains at least of a defect at half the spacing
LEFT = 50.0  # errors of moments to that of the mass in the lens, which must vanish
TAIL = 10.0  # moments over mass, far out, to those of the whole


@dataclass(frozen=True)
class Rule:
    """Spacings and orders; all in standard deviations.

    Attributes
    ----------
    reach, lens : float
        Radius of the ball of Gaussian variables, and of that in which the lens is followed.
    digits : float
        Resolution of the grid of proximal points, in natural digits.
    zu, zv : float
        Spacings of the sources.
    across : float
        Factor on the grid's spacing.
    lines, order, panel : int, int, float
        Lines across half of the lens, order of the rule in one panel of a chord, and its length.
    fold : int
        Order of the rule for zu where the lens exists.
    """

    reach: float
    lens: float
    digits: float
    zu: float
    zv: float
    across: tuple[float, float]
    lines: int
    order: int
    panel: float
    fold: int


def rule_for(target: float) -> Rule:
    """The rule that usually meets a relative accuracy."""
    digits = math.log(1.0 / min(max(target, 1e-13), 1e-2))
    return Rule(
        reach=math.sqrt(2.0 * digits + 22.0),
        lens=math.sqrt(2.0 * digits + 14.0),
        digits=digits + 6.5,
        zu=4.9 / (digits + 2.5),
        zv=10.5 / (digits + 3.5),
        across=(1.0, 1.0),
        lines=_even(0.65 * digits),
        order=2 * _even(0.43 * digits),
        panel=3.5,
        fold=2 * _even(0.5 * digits),
    )


def _even(x: float) -> int:
    return 2 * max(math.ceil(0.5 * x), 1)


@functools.cache
def clenshaw_curtis(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes, weights and weights of the rule of half the order on [0, 1]; n a multiple of four."""

    def weights(m):
        angle = np.pi * np.arange(m + 1) / m
        j = np.arange(1, m // 2 + 1)
        share = np.where(j == m // 2, 1.0, 2.0) / (4.0 * j * j - 1.0)
        w = 1.0 - (share * np.cos(2.0 * np.outer(angle, j))).sum(axis=1)
        ends = (np.arange(m + 1) % m) == 0
        return w * np.where(ends, 0.5, 1.0) / m

    half = np.zeros(n + 1)
    half[::2] = weights(n // 2)
    return 0.5 * (1.0 - np.cos(np.pi * np.arange(n + 1) / n)), weights(n), half


def lattice(spacing: float, reach: float, mirrored: bool):
    """Trapezoidal rule for a standard normal variable: nodes, weights, weights of every other."""
    k = np.arange(0 if mirrored else -int(reach / spacing), int(reach / spacing) + 1)
    x = spacing * k
    w = spacing * np.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    w = w * np.where(mirrored & (k > 0), 2.0, 1.0)
    return x, w, 2.0 * w * (k % 2 == 0)


@dataclass(frozen=True)
class Part:
    """Sums over one of the two parts.

    Attributes
    ----------
    values, sizes : (K,) arrays
    defects : dict of str to (K,) array
        Differences to the sub-rules, named after the attribute of `Rule` that reduces them.
    lost : float
        Mass unexplained.
    missing : float
        Mass missing from the whole, or left in the lens.
    points : int
    """

    values: np.ndarray
    sizes: np.ndarray
    defects: dict[str, np.ndarray]
    lost: float
    points: int
    missing: float = 0.0


def grid(kernels: Kernels, spec: Specification, c, rule: Rule):
    """Rows and spacings of the proximal points: (us, steps, half); None if there are too many."""
    radii = [(0.0, 1), (0.35, 4), (0.7, 6), (0.95, 6)]
    turns = math.pi if spec.mirrored[1] else 2.0 * math.pi
    points = [
        (rule.reach * r * math.cos(turns * k / n), rule.reach * r * math.sin(turns * k / n))
        for r, n in radii
        for k in range(n)
    ]
    z = np.array(points)
    zu, zv = z[:, 0] * spec.deviation[0], z[:, 1] * spec.deviation[1]
    f = spec.field
    middle = np.abs(f[0] + f[1] * zu + f[2] * zv) + rule.reach * f[3]
    centre = np.abs(f[4] + f[5] * zu + f[6] * zv) + rule.reach * math.hypot(f[7], f[8])
    far_u, far_v = float(centre.max()) + 0.2, float(middle.max()) + 0.2
    n = 33
    for _ in range(12):
        us, vs = np.linspace(-far_u, far_u, n), np.linspace(-far_v, far_v, n)
        across, along, extent = np.array([np.inf]), np.full(n, np.inf), np.zeros(2)
        kernels.plane_scales(zu, zv, (z * z).sum(axis=1), f, spec.response, us, vs, rule.reach,
                             rule.digits, c, kernels.context, across, along, extent)  # fmt: skip
        wide = extent > [us[-3], vs[-3]]
        if not wide.any():
            break
        far_u, far_v = far_u * (1.3 if wide[0] else 1.0), far_v * (1.3 if wide[1] else 1.0)
    far_u, far_v = extent[0] + us[1] - us[0], extent[1] + vs[1] - vs[0]
    h = across[0] * rule.across[0]
    half_u = 4 * math.ceil(far_u / (4.0 * h)) if h > 0.0 else 0
    rows = h * np.arange(-half_u, half_u + 1)
    # each row is resolved by itself
    padded = np.minimum(along, np.minimum(np.roll(along, 1), np.roll(along, -1)))
    padded = np.minimum(padded, 0.5 * far_v) * rule.across[1]
    steps = np.interp(rows, us, padded)
    half = 4 * math.ceil(float(np.max(far_v / steps)) / 4.0)
    if not 0 < len(rows) * (2 * half + 1) <= MOST_FEATURES:
        return None
    return rows, steps, half


def whole_plane(kernels: Kernels, spec: Specification, c, rule: Rule, found) -> Part:
    """The integral over all proximal points; ``found`` is what `grid` returns."""
    us, steps, half = found
    table = np.empty((len(us), 2 * half + 1, kernels.features))
    kernels.plane_features(us, steps, half, table)
    (xu, wu, eu), (xv, wv, ev) = (
        lattice(h, rule.reach, m)
        for h, m in zip((rule.zu, rule.zv), spec.mirrored, strict=True)
    )  # fmt: skip
    zu, zv = (part.ravel() for part in np.meshgrid(xu, xv, indexing="ij"))
    rest = rule.reach**2 - zu * zu - zv * zv
    inside = rest > 0.0
    weights = np.outer(wu, wv).ravel()[inside]
    by_u, by_v = np.outer(eu, wv).ravel()[inside], np.outer(wu, ev).ravel()[inside]
    zu, zv = zu[inside] * spec.deviation[0], zv[inside] * spec.deviation[1]
    reaches, n = np.sqrt(rest[inside]), int(inside.sum())
    sums, sizes = np.empty((n, 3, kernels.moments)), np.empty((n, kernels.moments))
    checks = np.empty((n, 3))

    def part(first, last):
        kernels.plane_sums(first, last, zu, zv, weights, reaches, spec.field, spec.response, us,
                           steps, half, table, c, kernels.context, kernels.moments, sums,
                           sizes, checks)  # fmt: skip

    in_ranges(part, n)
    total, rows = sums.sum(axis=0), sums[:, 0]
    mass, folded, points = checks.sum(axis=0)
    defects = {
        "across u": total[1] - total[0],
        "across v": total[2] - total[0],
        "zu": (by_u / weights) @ rows - total[0],
        "zv": (by_v / weights) @ rows - total[0],
    }
    return Part(total[0], sizes.sum(axis=0), defects, folded, int(points), abs(1.0 - mass))


def fold(kernels: Kernels, spec: Specification, c, rule: Rule) -> Part:
    """The integral over proximal points that are passed over by a jump."""
    columns, count = fold_sources(kernels, spec, c, rule), kernels.moments
    away = (columns[0] / spec.deviation[0]) ** 2 + (columns[1] / spec.deviation[1]) ** 2
    near = away < rule.lens**2 - 1.0
    left = float(columns[2][~near].sum())
    zu, zv, weights, by_u, by_v = (column[near] for column in columns)
    away, n = away[near], len(zu)
    if n == 0:
        nothing = np.zeros(count)
        return Part(nothing, nothing, {}, left, 0)
    reaches = np.sqrt(rule.lens**2 + 4.0 - away)
    # a row far out weighs little and needs fewer digits
    share = np.clip(1.0 - 0.8 * away / rule.reach**2, 0.25, 1.0)
    fars = np.sqrt(rule.lens**2 - away)
    lines = 2 * np.ceil(0.5 * rule.lines * share).astype(np.int64)
    sums, sizes, checks = np.empty((n, 3, count)), np.empty((n, count)), np.empty((n, 2))
    nodes = clenshaw_curtis(rule.order)

    def part(first, last):
        kernels.fold_sums(first, last, zu, zv, weights, reaches, fars, lines, rule.panel / share,
                          spec.field, spec.response, *nodes, c, kernels.context, kernels.features,
                          count, sums, sizes, checks)  # fmt: skip

    in_ranges(part, n)
    total, rows = sums.sum(axis=0), sums[:, 0]
    defects = {
        "lines": total[1] - total[0],
        "order": total[2] - total[0],
        "fold": (by_u / weights) @ rows - total[0],
        "zv": (by_v / weights) @ rows - total[0],
    }
    points = int(lines.sum()) * (rule.order + 1)
    mass, lost = np.abs(checks).sum(axis=0)
    return Part(total[0], sizes.sum(axis=0), defects, float(lost) + left, points, float(mass))


def fold_sources(kernels: Kernels, spec: Specification, c, rule: Rule):
    """Pairs of sources at which the proximal point jumps, zu from where it sets in.

    Nodes, weights, and the weights of half the order in zu, and of every other zv.
    """
    x, w, half = clenshaw_curtis(rule.fold)
    # the width of zu given the field
    narrow = 1.0 / math.hypot(1.0 / spec.deviation[0], spec.field[5] / spec.field[8])
    sd, roots, ctx = spec.deviation[0], np.empty(8), np.empty(kernels.context)
    columns = []
    for z, weight, even in zip(*lattice(rule.zv, rule.reach, spec.mirrored[1]), strict=True):
        zv = z * spec.deviation[1]
        high = math.sqrt(max(rule.reach**2 - z * z, 0.0)) * sd
        low = 0.0 if spec.mirrored[0] else -high
        count = kernels.opening_roots(low, (high - low) / 64, 64, False, 0.0, zv, *spec.response, c,
                                      kernels.context, roots)  # fmt: skip
        edges = [low, *roots[:count], high]
        for left, right in itertools.pairwise(edges):
            kernels.fill_context(0.5 * (left + right), zv, c, ctx)
            if not (right > left and kernels.opening(0.0, *spec.response, ctx) < 0.0):
                continue
            panels = math.ceil((right - left) / (1.2 * rule.reach * narrow))
            h = (right - left) / panels
            zu = (left + h * (np.arange(panels)[:, None] + x)).ravel()
            density = h * np.exp(-0.5 * (zu / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
            density *= 2.0 if spec.mirrored[0] else 1.0
            fine, coarse = density * np.tile(w, panels), density * np.tile(half, panels)
            columns.append((zu, np.full(len(zu), zv), weight * fine, weight * coarse, even * fine))
    if not columns:
        return (np.empty(0),) * 5
    return tuple(np.concatenate(column) for column in zip(*columns, strict=True))


def integrate(
    kernels: Kernels, spec: Specification, c, target: float, estimate: bool, always: int
) -> Moments | None:
    """Moments to a relative accuracy; None where the plane is not the way.

    Parameters
    ----------
    target : float
        Relative accuracy.
    estimate : bool
        With, rules are refined until the error estimate meets ``target``; without, the errors are
        NaN and the usual rule is taken.
    always : int
        The moments beyond may converge more slowly: each has its own error.
    """
    rule, points, best = rule_for(CERTIFIED * target if estimate else target), 0, None
    for _ in range(ROUNDS if estimate else 1):
        found = grid(kernels, spec, c, rule)
        if found is None:
            return best
        parts = whole_plane(kernels, spec, c, rule, found), fold(kernels, spec, c, rule)
        points += sum(p.points for p in parts)
        lost = TAIL * sum(p.lost for p in parts)
        values = parts[0].values - parts[1].values
        sizes = np.maximum(parts[0].sizes - parts[1].sizes, np.abs(values))
        if not lost <= 3.0 * max(target, 1e-9):
            return best
        if not estimate:
            return Moments(values, np.full(len(values), np.nan), sizes, points, lost)
        shared, single, worst = errors(parts, sizes, always)
        scale = np.maximum(sizes, 1e-300)
        missing = [LEFT * part.missing for part in parts]
        shared += sum(missing)
        relative = np.where(np.arange(len(values)) < always, shared, np.maximum(single, shared))
        new = Moments(values, (relative + lost + 2e-14) * scale, sizes, points, lost)
        if best is None or new.relative_error < best.relative_error:
            best = new
        if relative[:always].max(initial=0.0) <= target:
            break
        rule = refined(rule, worst, target)
        if missing[1] > 0.3 * target:
            rule = replace(rule, lines=_even(1.5 * rule.lines), panel=rule.panel / 1.3)
    return best


def errors(parts, sizes, always):
    """Relative errors: the largest of the first moments, each one's own, and the shares.

    A geometric rule whose sub-rule of twice the spacing is off by D is itself off by D^2; but where
    the lens splits or closes as sources move, convergence is algebraic in the end.
    """
    size = np.maximum(sizes, 1e-300)
    own, worst = np.zeros(len(sizes)), {}
    for part in parts:
        for name, defect in part.defects.items():
            ratio = np.abs(defect) / size
            worst[name] = max(worst.get(name, 0.0), float(ratio[:always].max(initial=0.0)))
            own += _halved(ratio)
    shared = sum(map(_halved, worst.values()))
    return (shared if shared < 0.3 else math.inf), own, worst


def _halved(defect):
    defect = np.asarray(defect)
    return np.where(defect < 0.05, 3.0 * np.square(defect) + ALGEBRAIC * defect, 3.0 * defect)


def refined(rule: Rule, worst: dict[str, float], target: float) -> Rule:
    """Finer where a defect D is larger than the accuracy allows.

    By experience, -log(D) grows like these powers of the number of points.
    """
    power = {"across u": 2.0, "across v": 2.0, "zu": 1.3, "zv": 1.7}
    allowed = math.log(math.sqrt(target / (3.0 * len(worst))))
    factor = {
        name: min(max(1.1 * allowed / math.log(min(max(d, 1e-16), 0.5)), 1.0), 2.0)
        ** (1.0 / power.get(name, 1.0))
        for name, d in worst.items()
    }
    return replace(
        rule,
        zu=rule.zu / factor["zu"],
        zv=rule.zv / factor["zv"],
        across=(rule.across[0] / factor["across u"], rule.across[1] / factor["across v"]),
        lines=_even(rule.lines * factor.get("lines", 1.0)),
        panel=rule.panel / factor.get("order", 1.0),
        fold=2 * _even(0.5 * rule.fold * factor.get("fold", 1.0)),
    )
