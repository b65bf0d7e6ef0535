"""Branches of the attention model for the figures, and the drawing that the figures share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from numerics.branches import compiled, locate
from numerics.continuation import Branch, Settings, follow
from numerics.paper.options import Options
from numerics.plotting import STYLES, _pyplot, _save, symbol
from numerics.solvers import belongs
from theory.errors import ConvergenceError
from theory.models import get

NAMES = ("positional", "semantic", "agnostic")
STYLE = {"positional": STYLES[0], "semantic": STYLES[1], "agnostic": STYLES[3]}


def branch(name: str, parameter: str, at: float, span, options: Options, **fixed) -> Branch:
    """One branch over a range, both ways from a value at which it exists."""
    problem = compiled(get("attention"), name)
    options.tell(f"following the {name} branch")
    state = locate(problem, {**fixed, parameter: at}, accuracy=1e-4, raise_on_failure=False)
    if not belongs(state):
        raise ConvergenceError(f"the {name} branch was not found at {parameter} = {at:g}", state)
    settings = Settings(step=0.15, longest=0.5 if options.quick else 0.25, angle=0.4,
                        shortest=1e-3, max_points=80)  # fmt: skip
    found = follow(problem, state, parameter, span, both=True, stability=False, settings=settings,
                   accuracy=4e-4 if options.quick else 1e-4, callback=options.progress)  # fmt: skip
    return replace(found, name=name)


def column(found: Branch, name: str) -> np.ndarray:
    """A quantity along a branch in the units of the data; zero where the branch lacks it."""
    if not len(found) or (name in ("m", "theta") and name not in found.points[0].state):
        return np.zeros(len(found))
    values = found[name]
    if name == "theta":
        values = values / np.array([p.params["sigma"] ** 2 for p in found.points])
    return np.abs(values) if name in ("m", "theta") else values


def at_value(found: Branch, name: str, value: float) -> float:
    """Between the points of a branch; NaN outside."""
    from scipy.interpolate import PchipInterpolator

    x, y = found.values, column(found, name)
    order = np.argsort(x)
    order = order[np.append(True, np.diff(x[order]) > 0)]
    return float(PchipInterpolator(x[order], y[order], extrapolate=False)(value))


def draw_curves(axis, branches, name: str, scale: float = 1.0) -> None:
    """Each branch in its style, smoothly between its points where it is single-valued."""
    for found in branches:
        color, line = STYLE[found.name]
        x = found.values
        turning = np.any(np.diff(np.sign(np.diff(x))) != 0)
        if turning or len(x) < 3:
            y = column(found, name)
        else:
            x = np.linspace(min(x), max(x), 300)
            y = np.array([at_value(found, name, v) for v in x])
        axis.plot(x, y * scale, line, color=color, lw=1.5)


def draw_data(axis, rows, name: str, scale: float = 1.0) -> None:
    """The authors' means with their standard errors, filled for the semantic start."""
    for informed, marker in ((False, "s"), (True, "o")):
        kept = [r for r in rows if r.informed is informed]
        color = STYLE["semantic" if informed else "positional"][0]
        axis.errorbar(
            [r.params["alpha"] for r in kept], [r.values[name] * scale for r in kept],
            yerr=[r.errors[name] * scale for r in kept], fmt=marker, ms=3.2, color=color,
            mfc="white" if not informed else color, mew=0.8, elinewidth=0.8, zorder=3,
        )  # fmt: skip


def mark(axis, values: dict[str, float]) -> None:
    """Vertical lines, named above the axis."""
    for label, value in values.items():
        axis.axvline(value, color="black", lw=0.8, ls=(0, (1, 2)), zorder=0)
        axis.annotate(label, (value, 1.0), xycoords=("data", "axes fraction"), ha="center",
                      va="bottom", fontsize=8)  # fmt: skip


def panels(number: int, parameter: str):
    plt = _pyplot()
    figure, axes = plt.subplots(1, number, figsize=(3.7 * number, 3.1), squeeze=False)
    for axis in axes[0]:
        axis.set_xlabel(symbol(parameter))
    return figure, list(axes[0])


def finish(figure, names, path: Path, title: str, data: bool = False, extra=()) -> None:
    """Legend below, title above, and out."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=STYLE[n][0], ls=STYLE[n][1], lw=1.5, label=n) for n in names]
    handles += list(extra)
    if data:
        for n, marker in (("positional", "s"), ("semantic", "o")):
            color = STYLE[n][0]
            handles.append(Line2D([], [], color=color, marker=marker, ls="", ms=4, label=f"GD, {n}",
                                  mfc="white" if marker == "s" else color))  # fmt: skip
    figure.legend(handles=handles, loc="lower center", ncol=len(handles), fontsize=8,
                  bbox_to_anchor=(0.5, -0.06))  # fmt: skip
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    _save(figure, path)
