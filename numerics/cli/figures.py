"""``spinodal figure``: the figures and tables of arXiv:2402.03902."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from numerics.cli import options as o
from numerics.cli import output, tables
from theory.errors import ParameterError


def figure(
    name: Annotated[str | None, Parameter(help="Which; without a name they are listed.")] = None,
    *,
    data: Annotated[
        Path | None, Parameter(help="The authors' NAME_mean.csv, with NAME_std.csv beside it.")
    ] = None,
    plot: o.Plot = None,
    quick: Annotated[bool, Parameter(negative=(), help="Fewer points, less accurate.")] = False,
    store: Annotated[
        Path | None,
        Parameter(help="Results behind a map (default: attention_sweep.db); resumes."),
    ] = None,
    json: o.Json = False,
) -> int:
    """Make a figure or table of the attention paper from the equations."""
    from numerics.paper import FIGURES, Options

    if name is None:
        summaries = {k: (f.__doc__ or "").splitlines()[0] for k, f in FIGURES.items()}
        output.write_json(summaries) if json else _print("figures", ("name", "what it shows"),
                                                         list(summaries.items()))  # fmt: skip
        return 0
    if name not in FIGURES:
        raise ParameterError(f"unknown figure {name!r}; choose from: {', '.join(FIGURES)}")
    if plot is not None and name.startswith("table-"):
        raise ParameterError(f"{name} is a table; leave --plot out")
    with output.Progress(quiet=json) as progress:
        report = FIGURES[name](Options(data, quick, progress, store))
    if json:
        output.write_json(tables.finite(report.data))
    else:
        _print(report.title, report.columns, report.rows)
        for note in report.notes:
            Console(highlight=False, markup=False).print(note)
    if report.draw is not None and (plot is not None or not json):
        path = plot or Path(f"{name}.png")
        report.draw(path)
        output.note(f"figure: {path}")
    return 0


def _print(title: str, columns, rows) -> None:
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*row)
    console.print(table)
