"""Positional and semantic branch against omega, sigma or lambda at alpha = 1.5."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from numerics.branches import compiled
from numerics.continuation import crossing
from numerics.paper import curves
from numerics.paper.options import Options
from numerics.paper.report import Report
from numerics.plotting import symbol
from theory.models import get

ALPHA = 1.5
DEFAULTS = {"omega": 0.3, "sigma": 0.5, "lambda": 0.01}


def omega(options: Options) -> Report:
    """Against the weight of the positional part of the target."""
    return _slice("omega", (0.05, 0.6), options)


def sigma(options: Options) -> Report:
    """Against the standard deviation of the tokens; the positional branch ends."""
    return _slice("sigma", (0.35, 0.6), options)


def ridge(options: Options) -> Report:
    """Against the ridge penalty."""
    return _slice("lambda", (0.002, 0.05), options)


def _slice(parameter: str, span: tuple[float, float], options: Options) -> Report:
    fixed = {"alpha": ALPHA, **{k: v for k, v in DEFAULTS.items() if k != parameter}}
    here = DEFAULTS[parameter]
    names = curves.NAMES[:2]
    branches = [curves.branch(n, parameter, here, span, options, **fixed) for n in names]
    options.tell("looking for the transition")
    first, second = (compiled(get("attention"), n) for n in names)
    found = crossing(first, second, fixed, parameter, span, guess=here,
                     accuracy=1e-4 if options.quick else 1e-5)  # fmt: skip
    marks = {}
    if found.status.success and math.isfinite(found.value):
        marks[f"{symbol(parameter)}$_c$"] = found.value
    quantities = ("energy", "m", "theta")
    shown = [(q, b) for q in quantities for b in branches
             if q == "energy" or q in b.points[0].state]  # fmt: skip
    columns = [parameter, *(f"{q} {b.name}" for q, b in shown)]
    rows, data = [], []
    for value in np.linspace(*span, 12):
        numbers = [curves.at_value(b, q, value) for q, b in shown]
        rows.append([f"{value:.4g}", *("-" if math.isnan(v) else f"{v:.6f}" for v in numbers)])
        data.append(dict(zip(columns, [float(value), *numbers], strict=True)))
    rest = ", ".join(f"{k} = {v:g}" for k, v in fixed.items())
    note = f"{parameter}_c = {found.value:.6g} +- {found.error:.1g}" if marks else found.message

    def draw(path: Path) -> None:
        figure, (left, right) = curves.panels(2, parameter)
        curves.draw_curves(left, branches, "energy", 1e3)
        left.set_ylabel(r"energy $E \times 10^3$")
        for b, q, label in ((branches[0], "m", "$|m|$"),
                            (branches[1], "theta", r"$\theta/\sigma^2$")):  # fmt: skip
            curves.draw_curves(right, [b], q)
            k = int(np.argmax(b.values))
            right.annotate(f" {label}", (b.values[k], curves.column(b, q)[k]), va="center",
                           fontsize=8, color=curves.STYLE[b.name][0])  # fmt: skip
        right.set_ylabel("overlaps")
        for axis in (left, right):
            curves.mark(axis, marks)
        title = ", ".join(f"{symbol(k)} = {v:g}" for k, v in fixed.items())
        curves.finish(figure, names, path, title)

    report_data = {"points": data, "transition": found.to_dict()}
    return Report(f"in {parameter}, at {rest}", columns, rows, report_data, [note], draw)
