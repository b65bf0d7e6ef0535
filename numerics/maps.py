"""Heat maps of sweeps over two parameters; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from numerics.branches import compiled
from numerics.continuation import Line, lines
from numerics.plotting import _pyplot, _save, symbol
from numerics.quantity import MINUS, UNSOLVED, Quantity, parse, standard
from numerics.sweep import Grid, Points, Sweep
from theory.errors import ParameterError
from theory.free_energy import FreeEnergy

DIVERGING = ("#0b2f4a", "#1b6ca8", "#8fbcdb", "#f6f4ef", "#eeb49c", "#c8553d", "#6e1f14")
HATCHES = ("////", "\\\\\\\\", "xxxx", "----")
GREY, DARK = "#dcdcdc", "#8a8a8a"
DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (9, 3)),
          (0, (3, 1, 1, 1, 1, 1)))  # fmt: skip


def map_plot(
    result: Sweep,
    quantity: str | Sequence[str] | None,
    path: str | Path,
    lines: Iterable[Any] | Mapping[str, Any] = (),
) -> None:
    """Draw quantities of a sweep as colours over its two parameters.

    Parameters
    ----------
    result : Sweep
        Over a grid of two parameters (others may have a single value).
    quantity : str or sequence of str, optional
        ``"NAME"``, ``"NAME: TERM"`` or ``"NAME: TERM - TERM"``, one panel each. A name is
        ``energy``, an order parameter or an observable; a term is a branch, ``lower`` (the branch
        with the lowest energy at the point) or another name. None gives the model's usual ones.
    path : path
        png, pdf or svg.
    lines : sequence or mapping
        Curves drawn on top: ``curve[name]`` gives an array for each of both parameters, as
        `Boundary` and `SingularCurve` do. The keys of a mapping are their labels.

    Raises
    ------
    ParameterError
        For a sweep without two ranges, a quantity that is unknown, a curve in other parameters, a
        file that cannot be written, or without matplotlib.
    """
    axes = check_map(result.model, result.grid, result.branches, quantity, path)
    panels = quantities(result.model, result.branches, quantity)
    curves = _curves(lines, list(axes))
    data = [panel.values(result) for panel in panels]
    plt = _pyplot()
    figure, drawn = plt.subplots(
        1, len(panels), figsize=(4.6 * len(panels), 3.7), squeeze=False, layout="constrained"
    )
    legend: dict[str, Any] = {}
    order = np.ix_(*(np.argsort(v) for v in axes.values()))
    axes = {name: np.sort(v) for name, v in axes.items()}
    for axis, panel, arrays in zip(drawn[0], panels, data, strict=True):
        values, reasons = (a.reshape(tuple(map(len, axes.values())))[order] for a in arrays)
        _panel(figure, axis, axes, panel, values, legend)
        _missing(axis, axes, values, reasons, legend)
        for k, (label, curve) in enumerate(curves.items()):
            _line(axis, curve, list(axes), label, DASHES[k % len(DASHES)], legend)
    if legend:
        figure.legend(legend.values(), legend.keys(), loc="outside lower center", fontsize=8,
                      ncol=min(len(legend), 2 * len(panels)), handlelength=2.4)  # fmt: skip
    figure.suptitle(_title(result, axes), fontsize=9)
    _save(figure, Path(path))


def traced(result: Sweep, **options: Any) -> list[Line]:
    """The model's lines over the two ranges of a sweep, see `numerics.continuation.lines`.

    Events are sought in the parameter of the model's transition where it is one of the two.
    """
    assert isinstance(result.grid, Grid)
    axes = {k: v for k, v in result.grid.axes.items() if len(v) > 1}
    first, second = sorted(axes, key=lambda k: k != result.model.transition.get("parameter"))
    fixed = {k: v for k, v in result.parameters.items() if k not in axes}
    (over, span) = ((min(axes[k]), max(axes[k])) for k in (first, second))
    return lines(compiled(result.model, None, {**fixed, first: over[0], second: span[0]}),
                 (first, second), over, span, fixed, **options)  # fmt: skip


def quantities(
    model: FreeEnergy, branches: Sequence[str], wanted: str | Sequence[str] | None
) -> list[Quantity]:
    """The panels of a map."""
    texts = [wanted] if isinstance(wanted, str) else wanted or standard(model, branches)
    return [parse(text, model, branches) for text in texts]


def check_map(
    model: FreeEnergy,
    grid: Grid | Points,
    branches: Sequence[str],
    wanted: str | Sequence[str] | None,
    path: str | Path,
) -> dict[str, np.ndarray]:
    """Everything about a map that is known before a sweep has run; both axes are returned.

    Raises
    ------
    ParameterError
    """
    quantities(model, branches, wanted)
    axes = {}
    if isinstance(grid, Grid):
        axes = {k: np.array(v) for k, v in grid.axes.items() if len(v) > 1}
    if len(axes) != 2:
        raise ParameterError(f"a map needs two ranges of several values; {grid!r} has {len(axes)}")
    if Path(path).suffix[1:].lower() not in _formats():
        raise ParameterError(f"{path}: a figure needs a name that ends in .png, .pdf or .svg")
    return axes


def _formats() -> dict[str, str]:
    _pyplot()  # says what to install where there is none
    from matplotlib.backend_bases import FigureCanvasBase

    return FigureCanvasBase.get_supported_filetypes()


def _title(result: Sweep, axes: Mapping[str, np.ndarray]) -> str:
    fixed = {k: v for k, v in result.parameters.items() if k not in axes}
    settings = ", ".join(f"{symbol(k)} = {v:g}" for k, v in fixed.items())
    return f"{result.model.name}{': ' + settings if settings else ''}"


def _panel(figure, axis, axes, panel: Quantity, values: np.ndarray, legend: dict) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    (x_name, x), (y_name, y) = axes.items()
    finite = values[np.isfinite(values)]
    top = float(np.max(np.abs(finite), initial=0.0)) or 1.0
    colours: dict[str, Any] = {"cmap": "cividis"}
    if panel.difference:
        scale = LinearSegmentedColormap.from_list("difference", DIVERGING)
        colours = {"cmap": scale, "vmin": -top, "vmax": top}
    cells = np.ma.masked_invalid(values.T)
    drawn = axis.pcolormesh(_edges(x), _edges(y), cells, rasterized=True, **colours)
    axis.set(xlabel=symbol(x_name), ylabel=symbol(y_name),
             xscale="log" if _geometric(x) else "linear",
             yscale="log" if _geometric(y) else "linear",
             xlim=_edges(x)[[0, -1]], ylim=_edges(y)[[0, -1]])  # fmt: skip
    axis.spines[["top", "right"]].set_visible(True)
    axis.set_title(panel.title, fontsize=8, loc="left")
    bar = figure.colorbar(drawn, ax=axis, pad=0.02, aspect=26)
    bar.outline.set_linewidth(0.6)
    power = int(np.floor(np.log10(top)))
    power = 0 if -2 < power < 4 else power
    span = float(np.ptp(finite)) if len(finite) and not panel.difference else top
    digits = 3 + max(0, int(np.log10(top / (span or top))))
    bar.formatter = lambda v, _: f"{v / 10.0**power + 0.0:.{digits}g}".replace("-", MINUS)
    bar.update_ticks()
    unit = rf" $\times\,10^{{{-power}}}$" if power else ""
    bar.set_label(panel.label + unit)
    for words, height, anchor in zip(panel.ends, (-0.02, 1.02), ("top", "bottom"), strict=False):
        bar.ax.text(0.5, height, words, transform=bar.ax.transAxes, ha="center", va=anchor,
                    fontsize=7)  # fmt: skip
    _zero(axis, x, y, values, panel, legend)


def _zero(axis, x, y, values, panel: Quantity, legend: dict) -> None:
    finite = values[np.isfinite(values)]
    if panel.difference and len(finite) and finite.min() < 0 < finite.max():
        from matplotlib.lines import Line2D

        axis.contour(x, y, np.ma.masked_invalid(values.T), [0.0], colors="black", linewidths=0.9)
        legend["zero, interpolated"] = Line2D([], [], color="black", lw=0.9)


def _missing(axis, axes, values, reasons, legend: dict) -> None:
    """Cells without a value: grey and hatched, one hatch for each reason."""
    from matplotlib.patches import Patch, PathPatch
    from matplotlib.path import Path as Shape

    x, y = (_edges(v) for v in axes.values())
    gone = ~np.isfinite(values)
    for reason in dict.fromkeys(reasons[gone]):
        if reason not in legend:
            used = sum(isinstance(h, Patch) and name != UNSOLVED for name, h in legend.items())
            hatch = "...." if reason == UNSOLVED else HATCHES[used % len(HATCHES)]
            face = "white" if reason == UNSOLVED else GREY
            legend[reason] = Patch(facecolor=face, edgecolor=DARK, lw=0, hatch=hatch)
        cells = [
            Shape([(x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1]),
                   (x[i], y[j])], closed=True)
            for i, j in np.argwhere(gone & (reasons == reason))
        ]  # fmt: skip
        axis.add_patch(PathPatch(
            Shape.make_compound_path(*cells), edgecolor=DARK, lw=0,
            facecolor=legend[reason].get_facecolor(), hatch=legend[reason].get_hatch(),
        ))  # fmt: skip


def _curves(lines: Iterable[Any] | Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Curves by label; those that come without one may be alike."""
    if isinstance(lines, Mapping):
        curves = dict(lines)
    else:
        curves = {}
        for curve in lines:
            label = _label(curve)
            alike = sum(other.startswith(label) for other in curves)
            curves[f"{label} {alike + 1}" if alike else label] = curve
    for label, curve in curves.items():
        for name in names:
            try:
                np.asarray(curve[name], float)
            except (KeyError, ValueError, TypeError, IndexError):
                raise ParameterError(f"the line {label!r} has no values of {name}") from None
    return curves


def _label(curve: Any) -> str:
    points = getattr(curve, "points", None)
    if isinstance(points, Sequence) and points and hasattr(points[0], "states"):
        return f"{' / '.join(points[0].states)} transition"
    return str(getattr(curve, "label", "") or getattr(curve, "kind", "line"))


def _line(axis, curve, names: list[str], label: str, dashes, legend: dict) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3.4, foreground="white")]
    x, y = (np.asarray(curve[name], float) for name in names)
    (drawn,) = axis.plot(x, y, color="black", lw=1.8, ls=dashes, path_effects=halo)
    legend.setdefault(label, drawn)
    for values in _special(curve):
        axis.plot(*([values[n]] for n in names), "o", color="black", mfc="white", ms=5)


def _special(curve: Any) -> list[dict[str, float]]:
    """Critical and other special points of a curve."""
    ends = [e["values"] for e in getattr(curve, "ends", []) if isinstance(e, dict) and "values" in e
            and "CRITICAL" in e["reason"].name]  # fmt: skip
    return ends + [s.values for s in getattr(curve, "special", [])]


def _geometric(values: np.ndarray) -> bool:
    """Whether a range was logarithmic."""
    if len(values) < 3 or values.min() <= 0:
        return False
    ratios, steps = values[1:] / values[:-1], np.diff(values)
    return bool(np.ptp(ratios) < 1e-9 * ratios[0] and np.ptp(steps) > 1e-6 * abs(steps[0]))


def _edges(values: np.ndarray) -> np.ndarray:
    """Borders of the cells around ordered values."""
    if _geometric(values):
        return np.exp(_edges(np.log(values)))
    middle = (values[1:] + values[:-1]) / 2
    return np.array([2 * values[0] - middle[0], *middle, 2 * values[-1] - middle[-1]])
