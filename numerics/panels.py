"""Figures of events: a diagram in one parameter as panels, and all lines in two parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from numerics.continuation import Branch, Diagram
from numerics.continuation.landmarks import Trust
from numerics.continuation.lines import Line
from numerics.maps import DASHES
from numerics.plotting import STYLES, _pyplot, _save, subscripted, symbol
from theory.errors import ParameterError
from theory.joint import slope

COLORS = (*(c for c, _ in STYLES), "#8a5aa5", "#b8860b")
DASHED = (0, (3, 2))
DOUBT = "#f0c36a"


def plot_diagram(
    found: Diagram, path: Path, trusts: Sequence[Trust | None] = (), quantity: str = "energy"
) -> None:
    """Energy, order parameters, compared observables and stability against the parameter.

    Parameters
    ----------
    found : Diagram
    path : path
        png, pdf or svg.
    trusts : sequence of Trust or None
        For each branch; stretches beyond a limit are underlaid.
    quantity : str
        Of the first panel.

    Raises
    ------
    ParameterError
        If there is nothing to draw, or the file cannot be written.
    """
    shown = [k for k, b in enumerate(found.branches) if len(b)]
    branches = [found.branches[k] for k in shown]
    if not branches:
        raise ParameterError("nothing to draw: no branch has a point")
    doubts = [trusts[k] if k < len(trusts) else None for k in shown]
    plt = _pyplot()
    panels = _panels(branches, quantity)
    rows = 1 if len(panels) < 4 else 2
    columns = -(-len(panels) // rows)
    figure, axes = plt.subplots(
        rows, columns, figsize=(3.7 * columns, 3.0 * rows + 0.3), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    kinds = [_kind(b) for b in branches]
    styles = {k: (COLORS[i % len(COLORS)], 0.04 * i) for i, k in enumerate(dict.fromkeys(kinds))}
    low, high = found.span
    marks = _marks(found)
    for axis, (name, label) in zip(axes.flat, panels, strict=False):
        axis.set(xlim=(low, high), xlabel=symbol(found.parameter), ylabel=label,
                 xscale="log" if low > 0 and high / low > 20 else "linear")  # fmt: skip
        for branch, kind, doubt in zip(branches, kinds, doubts, strict=True):
            _draw(axis, branch, branches[_reference(branches)], name, styles[kind], doubt)
        _vertical(axis, marks)
    for axis in list(axes.flat)[len(panels) :]:
        axis.set_axis_off()
    figure.legend(handles=_legend(styles, panels, branches, doubts), loc="outside lower center",
                  ncol=8, fontsize=8)  # fmt: skip
    settings = ", ".join(f"{symbol(k)} = {v:g}" for k, v in found.params.items())
    name = branches[0].points[0].model
    figure.suptitle(f"{name}{': ' + settings if settings else ''}", fontsize=9)
    _save(figure, path)


def _kind(branch: Branch) -> str:
    kind, _ = Counter(p.kind for p in branch.points).most_common(1)[0]
    return kind


def _panels(branches: list[Branch], quantity: str) -> list[tuple[Any, str]]:
    panels: list[tuple[Any, str]] = [(quantity, _said(quantity))]
    if len(branches) > 1 and quantity == "energy":
        other = _kind(branches[_reference(branches)])
        panels.append(("difference", rf"energy $-$ energy of {other}"))
    unknowns = dict.fromkeys(u for b in branches for u in b.points[0].state)
    everywhere = [u for u in unknowns if all(u in b.points[0].state for b in branches)]
    moving = [u for u in unknowns if u not in everywhere] or everywhere
    panels += [(u, symbol(u)) for u in moving[:3]]
    model = getattr(branches[0].problem, "model", None)
    for pair in getattr(model, "comparisons", {}).values():
        panels.append((pair, _said(pair[0])))
    if any(u >= 0 for b in branches for u in b.unstable):
        panels.append(("unstable", "unstable directions"))
    return panels


def _said(name: str) -> str:
    return name.replace("_", " ")


def _reference(branches: list[Branch]) -> int:
    """The branch that reaches furthest; of equals the one with the fewest unknowns."""
    reach = [(-np.ptp(b.values), len(b.points[0].state)) for b in branches]
    return min(range(len(branches)), key=lambda k: (round(reach[k][0], 6), reach[k][1]))


def _column(branch: Branch, reference: Branch, name: Any) -> np.ndarray:
    if name == "unstable":
        return np.array(branch.unstable, float)
    if name == "difference":
        x, y = reference.values, reference["energy"]
        order = np.argsort(x)
        slopes = np.array([slope(p.gradient, branch.parameter) for p in reference.points])[order]
        x, y = x[order], y[order]
        from scipy.interpolate import CubicHermiteSpline

        keep = np.append(True, np.diff(x) > 1e-12)
        curve = CubicHermiteSpline(x[keep], y[keep], slopes[keep], extrapolate=False)
        return branch["energy"] - curve(branch.values)
    key = name[0] if isinstance(name, tuple) else name
    known = key == "energy" or key in branch.points[0].state | branch.points[0].observables
    return branch[key] if known else np.zeros(len(branch))


def _draw(axis, branch, reference, name, style: tuple[str, float], doubt) -> None:
    """One branch in one panel; ``style`` is its colour and its offset among the step curves."""
    color, offset = style
    cuts = [e.value for e in branch.events if e.kind not in ("bound", "user")]
    x, y = branch.values, _column(branch, reference, name)
    known = len(branch.unstable) == len(branch) and min(branch.unstable) >= 0
    stable = branch.stable if known else np.ones(len(x), bool)
    flat = name == "unstable"
    if doubt is not None:
        for part, on in _runs(x, y + offset * flat, doubt.beyond(), cuts, flat):
            if on:
                axis.plot(*part, color=DOUBT, lw=6, alpha=0.45, solid_capstyle="butt", zorder=1)
    for part, on in _runs(x, y + offset * flat, stable, cuts, flat):
        axis.plot(*part, color=color, lw=1.7 if on else 1.1, ls="-" if on else DASHED, zorder=3)
    if isinstance(name, tuple):
        axis.plot(x, branch[name[1]], color="black", lw=0.9, zorder=2)
    if flat:
        axis.yaxis.get_major_locator().set_params(integer=True)


def _runs(x, y, flags, cuts, flat: bool):
    """Stretches of equal flags, each up to the event at which the flag changes.

    Without an event between two points they meet in the middle; ``flat`` curves jump there.
    """
    places = [np.flatnonzero(np.diff(np.asarray(flags, int)) | ((np.diff(y) != 0) & flat))][0]
    begin, xs, ys = 0, [], []
    for k in [*places, len(x) - 1]:
        xs, ys = [*xs, *x[begin : k + 1]], [*ys, *y[begin : k + 1]]
        if k == len(x) - 1:
            yield (xs, ys), bool(flags[k])
            return
        low, high = sorted((x[k], x[k + 1]))
        here = next((c for c in cuts if low <= c <= high), 0.5 * (low + high))
        share = (here - x[k]) / (x[k + 1] - x[k]) if high > low else 0.5
        between = y[k] + share * (y[k + 1] - y[k])
        yield ([*xs, here], [*ys, y[k] if flat else between]), bool(flags[k])
        xs, ys, begin = [here], [y[k + 1] if flat else between], k + 1


def _marks(found: Diagram) -> list[tuple[float, str]]:
    """Values and symbols of what is marked."""
    pairs = zip(found.events, found.names, strict=True)
    return sorted((e.value, n.symbol) for e, n in pairs if e.kind not in ("bound", "user"))


def _vertical(axis, marks: list[tuple[float, str]]) -> None:
    """Vertical lines, named above the axis on as many rows as keep the names apart."""
    low, high = axis.get_xlim()
    scale = np.log if axis.get_xscale() == "log" else np.asarray
    ends: list[float] = []
    for value, label in marks:
        place = float((scale(value) - scale(low)) / (scale(high) - scale(low)))
        width = 0.05 + 0.012 * len(label.partition("_")[2])
        row = next((r for r, end in enumerate(ends) if place - width / 2 > end), len(ends))
        ends[row : row + 1] = [place + width / 2]
        axis.axvline(value, color="black", lw=0.7, ls=(0, (1, 2)), zorder=0)
        axis.annotate(subscripted(label), (value, 1.0), xycoords=("data", "axes fraction"),
                      ha="center", xytext=(0, 2 + 10 * row), textcoords="offset points",
                      va="bottom", fontsize=8)  # fmt: skip


def _legend(styles, panels, branches: list[Branch], doubts) -> list:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=c, lw=1.7, label=k) for k, (c, _) in styles.items()]
    if any(u > 0 for b in branches for u in b.unstable):
        handles.append(Line2D([], [], color="gray", ls=DASHED, lw=1.1, label="unstable"))
    handles += [Line2D([], [], color="black", lw=0.9, label=_said(p[1]))
                for p, _ in panels if isinstance(p, tuple)]  # fmt: skip
    limits = next((d.limits for d in doubts if d is not None), {})
    if limits:
        words = " or ".join(f"{_said(k)} > {v:g}" for k, v in limits.items())
        handles.append(Line2D([], [], color=DOUBT, lw=6, alpha=0.45, label=words))
    return handles


def plot_lines(lines: Sequence[Line], path: Path, title: str = "") -> None:
    """All lines in the plane of both parameters, special points and ends marked."""
    drawn = [line for line in lines if line.curve is not None and len(line)]
    if not drawn:
        raise ParameterError("nothing to draw: no line was traced")
    plt = _pyplot()
    assert drawn[0].curve is not None
    first, second = drawn[0].curve.parameters
    figure, axis = plt.subplots(figsize=(5.4, 4.4), layout="constrained")
    for k, line in enumerate(drawn):
        jump = line.event.kind == "first-order"
        color = "black" if jump else COLORS[k % len(COLORS)]
        axis.plot(line[second], line[first], color=color, ls=DASHES[k % len(DASHES)], zorder=3,
                  lw=1.8 if jump else 1.3, label=line.label)  # fmt: skip
        for point in line.special:
            axis.plot([point.values[second]], [point.values[first]], "o", color=color, mfc="white",
                      ms=5, zorder=4)  # fmt: skip
        for end in line.ends:
            if not end["reason"].success and "CRITICAL" not in end["reason"].name:
                axis.plot([end["values"][second]], [end["values"][first]], "x", color=color, ms=5)
    values = np.concatenate([line[first] for line in drawn])
    wide = values.min() > 0 and values.max() / values.min() > 20
    axis.set(xlabel=symbol(second), ylabel=symbol(first), yscale="log" if wide else "linear")
    figure.legend(loc="outside lower center", ncol=1 if len(drawn) < 4 else 2, fontsize=7.5)
    if title:
        axis.set_title(title, fontsize=8, loc="left")
    _save(figure, path)
