"""``spinodal sweep``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from numerics.cli import options as o
from numerics.cli import output
from theory.errors import ParameterError

if TYPE_CHECKING:
    from numerics.sweep import Sweep

SHOWN = 5  # failures that are printed
WINDOW = 600.0  # seconds over which the rate is averaged
LOGGED = 60.0  # seconds between lines where there is no terminal

VERDICTS = {
    "found": "on the branch",
    "absent": "no such branch there: the equations fall back to another one",
    "unsolved": "no solution; see the status of each",
    "failed": "ended in an exception; --retry computes them again",
}


def sweep(
    model: o.ModelName = "attention",
    *,
    over: Annotated[
        list[str] | None,
        Parameter(
            name="--over",
            negative=(),
            help="NAME=LO:HI:COUNT or NAME=LO:HI:COUNT:log; repeat for a grid.",
        ),
    ] = None,
    branch: Annotated[
        list[str] | None,
        Parameter(name="--branch", negative=(), help="Branch; repeat for several (default: all)."),
    ] = None,
    settings: o.Settings = None,
    store: Annotated[
        Path | None, Parameter(help="File of results (default: MODEL_sweep.db); resumes.")
    ] = None,
    accuracy: o.Accuracy = 1e-6,
    workers: Annotated[int | None, Parameter(help="Processes (default: one a core).")] = None,
    dask: Annotated[
        str | None, Parameter(help="Address of a dask scheduler that runs the tasks.")
    ] = None,
    retry: Annotated[
        bool, Parameter(negative=(), help="Compute again what failed with an exception.")
    ] = False,
    json: o.Json = False,
    csv: o.Csv = None,
    out: Annotated[
        Path | None,
        Parameter(name="--out", help="Write NetCDF (.nc).", validator=o.writable(".nc")),
    ] = None,
    plot: o.Plot = None,
    maps: Annotated[
        list[str] | None,
        Parameter(
            name="--map",
            negative=(),
            help='What --plot shows: "NAME", "NAME:BRANCH" or "NAME:BRANCH-BRANCH", such as '
            '"energy:semantic-positional"; "lower" is the branch with the lowest energy. Repeat '
            "for several panels.",
        ),
    ] = None,
    lines: Annotated[
        bool,
        Parameter(negative=(), help="Trace the model's lines over both ranges; draw them on top."),
    ] = False,
) -> int:
    """Solve branches on a grid of parameters, in parallel; what is stored is not computed again."""
    from numerics.cli.inputs import check_accuracy, check_branch, load_model, parse_grid
    from numerics.sweep import sweep as run

    check_accuracy(accuracy)
    grid = parse_grid(over, settings)
    declared, params = load_model(model, settings, partial=True)
    params = {k: v for k, v in params.items() if k not in grid.parameters}
    for name in branch or []:
        check_branch(declared, name)
    path = store or Path(f"{declared.name}_sweep.db")
    files = [file for file in (csv, out, plot) if file is not None]
    for k, file in enumerate(files):
        if file.resolve() in {other.resolve() for other in (path, *files[:k])}:
            raise ParameterError(f"{file} is named twice; give every output a file of its own")
    if out is not None and find_spec("xarray") is None:
        raise ParameterError("--out needs xarray: pip install 'spinodal[sweep]'")
    if maps and plot is None:
        raise ParameterError("--map says what a figure shows; name its file with --plot")
    if lines and plot is None:
        raise ParameterError("--lines draws on a figure; name its file with --plot")
    if plot is not None:
        from numerics.maps import check_map

        check_map(declared, grid, branch or list(declared.branches) or [""], maps, plot)
    if dask is not None and workers is not None:
        raise ParameterError("--workers and --dask exclude each other; the cluster has its own")
    try:
        with _cluster(dask) as client, _Progress(quiet=json) as progress:
            found = run(
                declared, grid, branch, params, accuracy=accuracy, store=path, workers=workers,
                executor=client, retry=retry, callback=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        output.note(f"what is finished is in {path}; the same command resumes")
        raise
    _emit(found, path, json)
    if csv is not None:
        found.to_csv(csv)
        output.note(f"written: {csv}")
    if out is not None:
        found.to_netcdf(out)
        output.note(f"written: {out}")
    if plot is not None:
        found.plot(plot, maps, _lines(found, json) if lines else ())
        output.note(f"written: {plot}")
    return 1 if found.failures else 0


def _lines(found: Sweep, quiet: bool) -> list[Any]:
    """Lines over the ranges of a sweep; those that cannot be traced are named with the reason."""
    from numerics.maps import traced

    with output.Progress(quiet=quiet) as progress:
        lines = traced(found, callback=progress)
    for line in lines:
        if line.curve is None:
            output.note(f"{line.symbol}, {line.name}: not traced: {line.message}")
    return [line for line in lines if line.curve is not None]


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ParameterError("--dask needs dask: pip install 'spinodal[sweep]'") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())
        raise ParameterError(f"no dask scheduler at {address}: {why}") from None
    with client:
        yield client


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.3g}/s" if task.speed else "-/s")


class _Progress:
    """Tasks done, rate and time left on standard error: a bar, or a line a minute in a log."""

    def __init__(self, quiet: bool):
        console = Console(stderr=True)
        self._bar = Bar(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24),
            MofNCompleteColumn(), _Rate(), TimeRemainingColumn(), console=console, transient=True,
            disable=quiet or not console.is_terminal, speed_estimate_period=WINDOW,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=None)
        self._logs = not quiet and not console.is_terminal
        self._first: tuple[float, int] | None = None
        self._said = time.monotonic()

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()

    def __call__(self, news: dict) -> None:
        failed = f", {news['failed']} failed" if news.get("failed") else ""
        description = news["stage"] + failed
        if "done" not in news:
            self._bar.update(self._task, description=description)
        elif self._first is not None:
            self._bar.update(self._task, description=description, completed=news["done"])
        else:  # a reset, so that what was stored before does not count as speed
            self._first = time.monotonic(), news["done"]
            self._bar.reset(self._task, total=news["total"], completed=news["done"],
                            description=description)  # fmt: skip
        if self._logs and self._first and time.monotonic() - self._said > LOGGED:
            self._log(news["done"], news["total"], failed)

    def _log(self, done: int, total: int, failed: str) -> None:
        self._said = time.monotonic()
        assert self._first is not None
        rate = (done - self._first[1]) / max(self._said - self._first[0], 1e-9)
        left = f", {rate:.3g}/s, {(total - done) / rate / 60:.0f} min left" if rate else ""
        output.note(f"{done} of {total}{left}{failed}")


def _emit(found: Sweep, path: Path, json: bool) -> None:
    summary = found.summary()
    failures = [
        {"parameters": params, "branch": branch or None, "message": message}
        for params, branch, message in found.failures
    ]
    if json:
        output.write_json({**summary, "store": str(path), "failures": failures})
        return
    console = Console(highlight=False, soft_wrap=True)
    sizes = " x ".join(f"{k} {n}" for n, k in zip(found.grid.dims, found.grid.shape, strict=True))
    branches = ", ".join(b for b in found.branches if b)
    console.print(Text(f"{found.model.name}: sweep over {sizes}", style="bold"))
    console.print(
        f"{summary['tasks']} tasks{': ' + branches if branches else ''}; computed now "
        f"{summary['computed']}, taken from the store {summary['from_store']}, failed "
        f"{summary['failed']}"
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for verdict, meaning in VERDICTS.items():
        if summary[verdict]:
            table.add_row(verdict, str(summary[verdict]), meaning)
    console.print(table)
    for failure in failures[:SHOWN]:
        at = ", ".join(f"{k} = {v:g}" for k, v in failure["parameters"].items())
        console.print(Text(f"  {failure['branch'] or 'model'} at {at}: {failure['message']}"))
    if len(failures) > SHOWN:
        console.print(f"  and {len(failures) - SHOWN} more")
    console.print(f"store: {path}")
