"""Printing and writing branches, events and boundaries."""

from __future__ import annotations

import csv as csvlib
import json as jsonlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from numerics.cli.output import note, print_settings, uncertain, write_json
from numerics.continuation import Boundary, Branch, Event, Line
from numerics.continuation.landmarks import Trust, stretches_beyond
from numerics.continuation.naming import EventName, named
from numerics.status import Status
from theory.errors import ParameterError


def _word(status: Status) -> str:
    """A status in a table."""
    if status is Status.REACHED_BOUND:
        return "range end"
    return status.name.lower().replace("_", " ")


def emit_branches(
    branches: list[Branch],
    events: list[Event],
    *,
    json: bool,
    data: dict,
    names: Sequence[EventName] | None = None,
) -> None:
    """Branches with their ends, then events with their errors."""
    if json:
        write_json(finite(data))
        return
    console = _console()
    first = next((b for b in branches if len(b)), None)
    if first is None:
        console.print("nothing found: " + "; ".join(b.status.message() for b in branches))
        return
    console.print(Text(f"{first.points[0].model}: in {first.parameter}", style="bold"))
    print_settings(console, first.params)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("branch", "points", first.parameter, "stable", "begins", "ends"):
        table.add_column(column, no_wrap=True)
    words: set[str] = set()
    for k, b in enumerate(branches):
        if not len(b):
            continue
        kind, _ = Counter(p.kind for p in b.points).most_common(1)[0]
        share = f"{sum(b.stable)}/{len(b)}"
        span = f"{min(b.values):.6g} .. {max(b.values):.6g}"
        begins = "-" if b.start_status is None else _word(b.start_status)
        table.add_row(f"{k + 1} {kind}", str(len(b)), span, share, begins, _word(b.status))
        words |= {begins, _word(b.status)}
    console.print(table)
    names = named(events, branches) if names is None else names
    shown = [(e, n) for e, n in zip(events, names, strict=True) if e.kind != "bound"]
    if not shown:
        console.print("no events")
        _legend(console, words)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("event", "kind", "symbol", first.parameter, "what", "how"):
        # words may be broken, numbers never
        table.add_column(column, no_wrap=column != "what")
    for e, name in shown:
        told = f"{e.message}: " if e.message and e.kind != "equality" else ""
        table.add_row(e.label, e.kind, name.symbol, uncertain(e.value, e.error), told + name.text,
                      e.status)  # fmt: skip
        words.add(e.status)
    console.print(table)
    console.print("digits in parentheses: error in the last place.")
    _legend(console, words)


def _console() -> Console:
    """As wide as the terminal; a file or a pipe has room for the longest row."""
    width = None if Console().is_terminal else 140
    return Console(highlight=False, soft_wrap=True, width=width)


LEGEND = {
    _word(status): status.message() for status in Status if status is not Status.CONVERGED
} | {
    "polished": "solved for as an equation, to the error shown",
    "located": "bracketed on the branch, not solved for; the error is the bracket",
    "guessed": "interpolated between two points only",
}


def _legend(console: Console, words: set[str]) -> None:
    """The meaning of the words that occurred."""
    for word, meaning in LEGEND.items():
        if word in words:
            console.print(f"{word}: {meaning}.")


def beyond(branches: list[Branch], trusts: Sequence[Trust | None]) -> list[dict]:
    """Where diagnostics exceed their limits: a row for each branch and diagnostic."""
    rows = []
    for k, (branch, trust) in enumerate(zip(branches, trusts, strict=True)):
        for name, limit in (trust.limits if trust is not None else {}).items():
            assert trust is not None
            found = stretches_beyond(branch, trust.beyond(name))
            if found:
                kind, _ = Counter(p.kind for p in branch.points).most_common(1)[0]
                rows.append({"branch": f"{k + 1} {kind}", "diagnostic": name, "limit": limit,
                             "ranges": [list(r) for r in found]})  # fmt: skip
    return rows


def emit_beyond(rows: list[dict], parameter: str) -> None:
    """The same as text; the ends are halfway between two points of a branch."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    for row in rows:
        where = ", ".join(f"{low:.3g} .. {high:.3g}" for low, high in row["ranges"])
        console.print(f"{row['diagnostic']} > {row['limit']:g} on {row['branch']}: {parameter} = "
                      f"{where}")  # fmt: skip


def emit_boundary(
    line: Boundary | None, others: Sequence[Line] = (), why: str = "", *, json: bool
) -> None:
    """A first-order line, and the others, each with the reasons of its ends."""
    if json:
        first = {"points": [], "message": why} if line is None else line.to_dict()
        write_json(finite({**first, "lines": [other.to_dict() for other in others]}))
        return
    console = _console()
    if line is None:
        console.print(Text(why))
    else:
        _emit_first_order(console, line)
    for other in others:
        console.print()
        console.print(Text(f"{other.symbol}: {other.name}", style="bold"))
        if other.curve is None:
            console.print(Text(f"not traced: {other.message}"))
            continue
        first, second = other.curve.parameters
        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in (second, first):
            table.add_column(column)
        for x, y, error in zip(other[second], other[first], other.errors, strict=True):
            table.add_row(f"{x:.8g}", uncertain(y, error))
        console.print(table)
        for point in other.special:
            if not isinstance(other.curve, Boundary):
                console.print(f"{point.kind} point: {_place(point.values, point.errors)}")
        _emit_ends(console, other.ends)
    console.print("digits in parentheses: error in the last place.")


def _emit_first_order(console: Console, line: Boundary) -> None:
    first, second = line.parameters
    console.print(Text(f"first-order transition in {first} along {second}", style="bold"))
    print_settings(console, line.params)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in (second, first, "slope", "Clapeyron mismatch"):
        table.add_column(column)
    for p in line.points:
        table.add_row(f"{p.values[second]:.8g}", uncertain(p.values[first], p.error),
                      f"{p.slope:.6g}", f"{p.mismatch:.0e}")  # fmt: skip
    console.print(table)
    _emit_ends(console, line.ends)


def _emit_ends(console: Console, ends) -> None:
    for name, end in zip(("first", "last"), ends, strict=False):
        place = _place(end["values"], end["errors"]) if "values" in end else ""
        console.print(f"{name} end: {end['message']}{' (' + place + ')' if place else ''}")


def _place(values, errors) -> str:
    return ", ".join(f"{k} = {uncertain(v, errors[k])}" for k, v in values.items())


def finite(data):
    """JSON has no NaN or infinity: those become null."""
    if isinstance(data, dict):
        return {k: finite(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [finite(v) for v in data]
    if hasattr(data, "item"):
        data = data.item()
    if isinstance(data, float) and not abs(data) < float("inf"):
        return None
    return data


def write(branches: list[Branch], *, csv: Path | None, out: Path | None) -> None:
    """Points of all branches as CSV; everything as NetCDF or JSON."""
    if csv is not None:
        rows = []
        for k, b in enumerate(branches):
            columns = b.to_arrays()
            rows += [{"branch": k + 1, **{c: v[i] for c, v in columns.items()}}
                     for i in range(len(b))]  # fmt: skip
        _csv(rows, csv)
    if out is not None:
        if out.suffix == ".nc":
            import numpy as np

            for b in branches:
                b.to_arrays()
            sets = [b.to_xarray().assign(branch=("point", np.full(len(b), k + 1)))
                    for k, b in enumerate(branches) if len(b)]  # fmt: skip
            _netcdf(sets, out)
        else:
            _json([b.to_dict() for b in branches], out)


def write_boundary(
    line: Boundary | None, others: Sequence[Line] = (), *, csv: Path | None, out: Path | None
) -> None:
    """Points of all lines as a table with a column that names the line; everything as JSON."""
    points = [] if line is None else line.points
    symbol = "" if line is None else f"{line.parameters[0]}_c"
    rows = [
        {"line": symbol, **p.values, "error": p.error, "slope": p.slope,
         "clapeyron_mismatch": p.mismatch,
         **{f"{n}.{u}": v for n, s in p.states.items() for u, v in s.state.items()},
         **{f"{n}.energy": s.energy for n, s in p.states.items()}}
        for p in points
    ]  # fmt: skip
    for other in others:
        if other.curve is not None:
            names = other.curve.parameters
            rows += [{"line": other.symbol, **{n: float(other[n][k]) for n in names},
                      "error": float(other.errors[k])} for k in range(len(other))]  # fmt: skip
    data = {} if line is None else line.to_dict()
    data = {**data, "lines": [other.to_dict() for other in others]}
    reasons = {other["symbol"]: other["ends"] for other in data["lines"]}
    if line is not None:
        reasons = {symbol: data["ends"], **reasons}
    params = {} if line is None else line.params
    write_rows(rows, data, csv=csv, out=out,
               attributes={**params, "ends": jsonlib.dumps(finite(reasons))})  # fmt: skip


def write_rows(
    rows: list[dict], data: dict, *, csv: Path | None, out: Path | None, attributes=None
) -> None:
    """Rows as CSV or NetCDF; ``data`` as JSON."""
    if csv is not None:
        _csv(rows, csv)
    if out is None:
        return
    if out.suffix == ".nc":
        import numpy as np

        xarray = _xarray()
        names = dict.fromkeys(k for row in rows for k in row)
        columns = {k: ("point", np.array([row.get(k, np.nan) for row in rows])) for k in names}
        _netcdf([xarray.Dataset(columns, attrs=attributes)] if rows else [], out)
    else:
        _json(data, out)


def _xarray():
    try:
        import xarray
    except ImportError:
        raise ParameterError("NetCDF needs xarray: pip install 'spinodal[sweep]', or give a file "
                             "that ends in .json") from None  # fmt: skip
    return xarray


def _netcdf(sets: list, out: Path) -> None:
    xarray = _xarray()
    if not sets:
        raise ParameterError(f"nothing to write to {out}")
    try:
        joined = xarray.concat(sets, dim="point", combine_attrs="drop_conflicts")
        joined.to_netcdf(out, engine="scipy")
    except OSError as error:
        raise ParameterError(f"cannot write {out}: {error}") from None
    note(f"written: {out}")


def _json(data, out: Path) -> None:
    try:
        out.write_text(jsonlib.dumps(finite(data), allow_nan=False) + "\n")
    except OSError as error:
        raise ParameterError(f"cannot write {out}: {error.strerror}") from None
    note(f"written: {out}")


def _csv(rows: list[dict], path: Path) -> None:
    names = list(dict.fromkeys(k for row in rows for k in row))
    try:
        with path.open("w", newline="") as file:
            writer = csvlib.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise ParameterError(f"cannot write {path}: {error.strerror}") from None
    note(f"written: {path}")
