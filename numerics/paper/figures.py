"""Energies, overlaps and test error against the sample complexity at omega = 0.3."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from numerics.branches import compiled
from numerics.continuation import root
from numerics.continuation.root import difference_of
from numerics.first_order import find_transition
from numerics.paper import curves
from numerics.paper.data import Measured, read_measured
from numerics.paper.options import Options
from numerics.paper.report import Report
from theory.models import get

OMEGA, SPAN = 0.3, (0.1, 2.0)


def _material(options: Options, *, learned: bool):
    """Branches, marked values and data."""
    branches = [curves.branch(n, "alpha", 1.5, SPAN, options, omega=OMEGA) for n in curves.NAMES]
    options.tell("looking for the transition")
    accuracy = 1e-4 if options.quick else 1e-5
    found = find_transition(get("attention"), {"omega": OMEGA}, accuracy=accuracy)
    marks = {r"$\alpha_c$": found.value}
    if learned:
        known = root(compiled(get("attention"), "semantic"),
                     difference_of("test_error", "baseline_error"), {"omega": OMEGA}, guess=1.5,
                     accuracy=accuracy)  # fmt: skip
        marks[r"$\alpha_l$"] = known.value
    rows = [] if options.data is None else read_measured(options.data)
    return branches, marks, [r for r in rows if r.params["omega"] == OMEGA]


def _table(branches, marks, rows: list[Measured], names: tuple[str, ...]):
    """The curves at round values and at those of the data."""
    alphas = sorted({round(a, 4) for a in np.arange(0.25, 2.01, 0.25)} | set(marks.values()))
    columns = ["alpha", *(f"{n} {b.name}" for n in names for b in branches)]
    out, data = [], []
    for alpha in alphas:
        values = [curves.at_value(b, n, alpha) for n in names for b in branches]
        out.append([f"{alpha:.6g}", *("-" if math.isnan(v) else f"{v:.6f}" for v in values)])
        data.append(dict(zip(columns, [alpha, *values], strict=True)))
    notes = [", ".join(f"{k.strip('$').replace(chr(92), '')} = {v:.6g}" for k, v in marks.items())]
    if rows:
        notes.append(f"{len(rows)} means of gradient descent at d = {rows[0].dimension}")
    return columns, out, {"points": data, "marks": marks}, notes


def _report(title, material, names, draw) -> Report:
    columns, rows, data, notes = _table(*material, names)
    return Report(title, columns, rows, data, notes, draw)


def energies(options: Options) -> Report:
    """Energies of the branches, and their distance from the positional one."""
    material = branches, marks, rows = _material(options, learned=False)
    title = rf"energies at $\omega$ = {OMEGA:g}"

    def draw(path: Path) -> None:
        figure, (left, right) = curves.panels(2, "alpha")
        curves.draw_curves(left, branches, "energy", 1e3)
        curves.draw_data(left, rows, "energy", 1e3)
        left.set_ylabel(r"energy $E \times 10^3$")
        base, semantic = branches[0], branches[1]
        low = max(min(base.values), min(semantic.values))
        x = np.linspace(low, SPAN[1], 300)
        gap = [curves.at_value(semantic, "energy", v) - curves.at_value(base, "energy", v)
               for v in x]  # fmt: skip
        right.plot(x, 1e3 * np.array(gap), color="black", lw=1.5)
        for a, value, error in _gaps(rows):
            right.errorbar([a], [1e3 * value], yerr=[1e3 * error], fmt="o", color="black", ms=3.2,
                           elinewidth=0.8)  # fmt: skip
        right.axhline(0, color="gray", lw=0.6)
        right.set(ylabel=r"$(E_{\rm semantic} - E_{\rm positional}) \times 10^3$", xlim=(low, None))
        for axis in (left, right):
            curves.mark(axis, marks)
        curves.finish(figure, curves.NAMES, path, title, bool(rows))

    return _report("energies at omega = 0.3", material, ("energy",), draw)


def _gaps(rows: list[Measured]):
    """Differences of the two starts' energies at equal alpha, with standard errors."""
    positional = {r.params["alpha"]: r for r in rows if not r.informed}
    for r in rows:
        other = positional.get(r.params["alpha"])
        if r.informed and other is not None and r.params["alpha"] > 0.8:
            error = math.hypot(r.errors["energy"], other.errors["energy"])
            yield r.params["alpha"], r.values["energy"] - other.values["energy"], error


def overlaps(options: Options) -> Report:
    """Overlap with the positions and with the teacher."""
    material = branches, marks, rows = _material(options, learned=False)

    def draw(path: Path) -> None:
        figure, (left, right) = curves.panels(2, "alpha")
        for axis, name, label in ((left, "m", "$|m|$"), (right, "theta", r"$\theta / \sigma^2$")):
            curves.draw_curves(axis, branches, name)
            curves.draw_data(axis, rows, name)
            axis.set_ylabel(label)
            curves.mark(axis, marks)
        curves.finish(figure, curves.NAMES, path, rf"overlaps at $\omega$ = {OMEGA:g}", bool(rows))

    return _report("overlaps at omega = 0.3 (theta / sigma^2)", material, ("m", "theta"), draw)


def test_error(options: Options) -> Report:
    """Test error of the branches beside that of the best linear map."""
    material = branches, marks, rows = _material(options, learned=True)

    def draw(path: Path) -> None:
        from matplotlib.lines import Line2D

        figure, (axis,) = curves.panels(1, "alpha")
        figure.set_size_inches(5.2, 3.4)
        curves.draw_curves(axis, branches, "test_error", 1e3)
        baseline = 1e3 * float(branches[0]["baseline_error"][0])
        line = axis.axhline(baseline, color="black", lw=1.0)
        curves.draw_data(axis, rows, "test_error", 1e3)
        axis.set_ylabel(r"test error $\epsilon_g \times 10^3$")
        curves.mark(axis, marks)
        extra = [Line2D([], [], color="black", lw=line.get_linewidth(), label="linear")]
        curves.finish(figure, curves.NAMES, path, rf"test error at $\omega$ = {OMEGA:g}",
                      bool(rows), extra)  # fmt: skip

    return _report("test error at omega = 0.3", material, ("test_error",), draw)
