"""Figures, readable in black and white; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from numerics.continuation import Boundary, Branch, Event, Transition
from numerics.protocol import ProblemLike
from numerics.solvers import Solution
from theory.errors import ParameterError
from theory.free_energy import FreeEnergy
from theory.joint import members

GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda",
         "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega")  # fmt: skip
STYLES = (("#1b6ca8", "-"), ("#c8553d", "--"), ("#3a7d44", "-."), ("#666666", ":"))


def _pyplot():
    try:
        import matplotlib
    except ImportError:
        raise ParameterError(
            "figures need matplotlib: pip install 'spinodal[plot]', or leave the figure out with "
            "--no-plot"
        ) from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
        "legend.frameon": False, "figure.dpi": 160, "mathtext.fontset": "cm",
    })  # fmt: skip
    return plt


def _save(figure, path: Path) -> None:
    plt = _pyplot()
    try:
        figure.savefig(path, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise ParameterError(f"cannot write the figure {path}: {error}") from None
    finally:
        plt.close(figure)


def symbol(name: str) -> str:
    """Mathematical notation of a name: ``$A_{11}$``, ``$\\alpha$``, ``$A_{11} = A_{22}$``."""
    return f"${' = '.join(map(_notation, members(name)))}$"


def _notation(name: str) -> str:
    found = re.fullmatch(r"([A-Za-z]+)_?(\d+)", name)
    letters, index = found.groups() if found else (name, "")
    written = rf"\{letters}" if letters.lower() in GREEK else letters
    return f"{written}_{{{index}}}" if index else written


def subscripted(name: str) -> str:
    """Notation of the symbol of an event, such as alpha_m or alpha_m,semantic."""
    base, _, index = name.partition("_")
    parts = [symbol(p)[1:-1] if symbol(p) != f"${p}$" or len(p) == 1 else rf"\mathrm{{{p}}}"
             for p in index.split(",")]  # fmt: skip
    return f"${symbol(base)[1:-1]}_{{{','.join(parts)}}}$" if index else symbol(base)


def plot_transition(model: FreeEnergy, found: Transition, curves: list[Branch], path: Path) -> None:
    """Energies, their difference and order parameters against the parameter, crossing marked."""
    plt = _pyplot()
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.2))
    label = symbol(found.parameter)
    for curve, (color, line) in zip(curves, STYLES, strict=False):
        name = curve.points[0].kind
        left.plot(curve.values, curve["energy"], line, color=color, label=name)
        for unknown in curve.points[0].state:
            if unknown in _drawn(model):
                right.plot(curve.values, curve[unknown], line, color=color)
                right.annotate(
                    f" {symbol(unknown)} {name}", (curve.values[-1], curve[unknown][-1]),
                    va="center", fontsize=8, color=color,
                )  # fmt: skip
    if len(curves) == 2:
        _difference(middle, found, curves)
    left.set(xlabel=label, ylabel="energy $E$")
    right.set(xlabel=label, ylabel="order parameters")
    middle.set(xlabel=label, ylabel="energy difference")
    if np.isfinite(found.value):
        for axis in (left, middle, right):
            axis.axvline(found.value, color="black", lw=0.8, ls=(0, (1, 2)))
        state = next(iter(found.states.values()))
        left.plot([found.value], [state.energy], "o", color="black", ms=4)
        middle.plot([found.value], [0], "o", color="black", ms=4)
        left.set_title(f"{label}$_c$ = {found.value:.6f}", fontsize=9, loc="left")
    left.legend()
    settings = ", ".join(f"{symbol(k)} = {v:g}" for k, v in found.params.items())
    figure.suptitle(f"{model.title}: {settings}", fontsize=9)
    figure.tight_layout()
    _save(figure, path)


def _drawn(model: FreeEnergy) -> set[str]:
    """Order parameters worth drawing: those that tell the branches apart."""
    return {str(s) for a in model.branches.values() for s in a.nonzero}


def _difference(axis, found: Transition, curves: list[Branch]) -> None:
    a, b = curves
    low = max(a.values.min(), b.values.min())
    high = min(a.values.max(), b.values.max())
    grid = np.linspace(low, high, 200)
    from scipy.interpolate import PchipInterpolator

    values = [PchipInterpolator(c.values, c["energy"])(grid) for c in curves]
    axis.plot(grid, values[0] - values[1], color="black", lw=1.2)
    axis.axhline(0, color="gray", lw=0.6)
    names = [c.points[0].kind for c in curves]
    axis.set_title(f"E({names[0]}) - E({names[1]})", fontsize=9, loc="left")


def plot_solution(problem: ProblemLike, solution: Solution, path: Path) -> None:
    """Order parameters, energy and observables of one state as labelled bars with error bars."""
    plt = _pyplot()
    values = {
        **{symbol(k): (v, solution.errors[k]) for k, v in solution.state.items()},
        "energy": (solution.energy, solution.energy_error),
        **{k.replace("_", " "): (v, solution.observable_errors[k])
           for k, v in solution.observables.items()},
    }  # fmt: skip
    figure, axis = plt.subplots(figsize=(5.5, 0.32 * len(values) + 0.9))
    rows = range(len(values))
    axis.barh(rows, [abs(v) for v, _ in values.values()], color="#9db9cf", edgecolor="black",
              lw=0.6, xerr=[e if np.isfinite(e) else 0 for _, e in values.values()])  # fmt: skip
    axis.set_yticks(list(rows), list(values))
    axis.invert_yaxis()
    axis.set_xscale("log")
    for row, (value, _) in zip(rows, values.values(), strict=True):
        axis.annotate(f" {value:.7g}", (max(abs(value), axis.get_xlim()[0]), row), va="center",
                      fontsize=7)  # fmt: skip
    settings = ", ".join(f"{symbol(k)} = {v:g}" for k, v in solution.params.items())
    axis.set_title(f"{problem.name}, {solution.kind}\n{settings}", fontsize=8, loc="left")
    _save(figure, path)


MARKERS = {"fold": "v", "pitchfork": "D", "transcritical": "D", "branch point": "D",
           "first-order": "o", "user": "s", "oscillatory": "^"}  # fmt: skip


def plot_branches(
    branches: list[Branch], path: Path, quantity: str = "energy", events: list[Event] | None = None
) -> None:
    """A quantity and the order parameters along branches; stable solid, unstable dashed."""
    plt = _pyplot()
    branches = [b for b in branches if len(b)]
    if not branches:
        raise ParameterError("nothing to draw: no branch has a point")
    if events is None:
        events = [e for b in branches for e in b.events]
    unknowns = dict.fromkeys(u for b in branches for u in b.points[0].state)
    moving = [u for u in unknowns if _range(branches, u) > 1e-9]
    # those that vanish somewhere tell the branches apart
    moving.sort(key=lambda u: all(u in b.points[0].state for b in branches))
    shown = [quantity, *moving[:3]]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.6 * len(shown), 3.2), squeeze=False)
    parameter = branches[0].parameter
    for axis, name in zip(axes[0], shown, strict=True):
        for k, branch in enumerate(branches):
            _curve(axis, branch, name, STYLES[k % len(STYLES)][0])
        for event in events:
            _mark(axis, event, name)
        axis.set(xlabel=symbol(parameter), ylabel=name if name == "energy" else symbol(name))
    from matplotlib.lines import Line2D

    kinds = dict.fromkeys(e.kind for e in events if e.kind in MARKERS)
    handles = [Line2D([], [], color="black", label="stable"),
               Line2D([], [], color="black", ls=(0, (3, 2)), lw=1, label="unstable")]  # fmt: skip
    handles += [Line2D([], [], color="black", marker=MARKERS[k], ls="", ms=5, label=k,
                       mfc="black" if k == "first-order" else "white") for k in kinds]  # fmt: skip
    figure.legend(handles=handles, loc="lower center", ncol=len(handles), fontsize=8,
                  bbox_to_anchor=(0.5, -0.06))  # fmt: skip
    settings = ", ".join(f"{symbol(k)} = {v:g}" for k, v in branches[0].params.items())
    figure.suptitle(f"{branches[0].points[0].model}{': ' + settings if settings else ''}",
                    fontsize=9)  # fmt: skip
    figure.tight_layout()
    _save(figure, path)


def _range(branches: list[Branch], name: str) -> float:
    values = [p.state[name] for b in branches for p in b.points if name in p.state]
    return max(values) - min(values)


def _curve(axis, branch: Branch, name: str, color: str) -> None:
    known = name == "energy" or name in branch.points[0].state
    x, y = branch.values, branch[name] if known else np.zeros(len(branch))
    stable = branch.stable if len(branch.unstable) == len(branch) else np.ones(len(x), bool)
    first = 0
    for k in range(1, len(x) + 1):
        if k == len(x) or stable[k] != stable[first]:
            # one point further, so that no gap is left
            part = slice(first, min(k + 1, len(x)))
            axis.plot(x[part], y[part], color=color, lw=1.6 if stable[first] else 1.0,
                      ls="-" if stable[first] else (0, (3, 2)))  # fmt: skip
            first = k


def _mark(axis, event: Event, name: str) -> None:
    if event.kind not in MARKERS:
        return
    for k, state in enumerate(event.states.values()):
        value = state.energy if name == "energy" else state.state.get(name, 0.0)
        fill = "black" if event.kind == "first-order" else "white"
        axis.plot([event.value], [value], MARKERS[event.kind], color="black", mfc=fill, ms=5)
        if k == 0:
            axis.annotate(event.label, (event.value, value), xytext=(4, 4), fontsize=7,
                          textcoords="offset points")  # fmt: skip


def plot_boundary(line: Boundary, path: Path) -> None:
    """The line of transitions in the plane of both parameters, its ends marked by their reason."""
    plt = _pyplot()
    if not len(line):
        raise ParameterError("nothing to draw: the boundary has no points")
    first, second = line.parameters
    figure, axis = plt.subplots(figsize=(4.4, 3.4))
    axis.plot(line[second], line[first], color="black", lw=1.6)
    for end in line.ends:
        if "values" not in end:
            continue
        reason = end["reason"].name.lower().replace("_", " ")
        special = "critical" in reason
        x, y = end["values"][second], end["values"][first]
        axis.plot([x], [y], "o" if special else "|", color="black", mfc="white", ms=6)
        if special:
            axis.annotate(reason.removesuffix(" end") + " point", (x, y), xytext=(6, -10),
                          textcoords="offset points", fontsize=8)  # fmt: skip
    axis.set(xlabel=symbol(second), ylabel=symbol(first))
    names = list(line.points[0].states)
    settings = ", ".join(f"{symbol(k)} = {v:g}" for k, v in line.params.items())
    title = f"{names[0]} / {names[1]} coexistence{'; ' + settings if settings else ''}"
    axis.set_title(title, fontsize=8, loc="left")
    figure.tight_layout()
    _save(figure, path)
