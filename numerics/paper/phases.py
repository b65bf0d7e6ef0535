"""The two phase diagrams: maps over (alpha, omega) with the traced lines on top."""

from __future__ import annotations

import math
from pathlib import Path

from numerics.maps import traced
from numerics.paper.options import Options
from numerics.paper.report import Report
from numerics.sweep import Sweep, spaced, sweep
from theory.models import get

BRANCHES = ("positional", "semantic")
ALPHA, OMEGA = (0.1, 3.0), (0.02, 0.6)
POINTS, QUICK = (30, 24), (8, 6)
# lines by the kind of their event
SHOWN = {"energy": ("first-order", "pitchfork"), "error": ("first-order", "equality")}


def energy(options: Options) -> Report:
    """Phase diagram: energy of the semantic branch less that of the positional one."""
    return _map("energy", "energy: semantic - positional", options)


def error(options: Options) -> Report:
    """Phase diagram: test error of the lower branch less that of the best linear map."""
    return _map("error", "test_error: lower - baseline_error", options)


def _map(name: str, quantity: str, options: Options) -> Report:
    counts = QUICK if options.quick else POINTS
    grid = {"alpha": spaced(*ALPHA, counts[0]), "omega": spaced(*OMEGA, counts[1])}
    store = options.store or Path("attention_sweep.db")
    found = sweep(get("attention"), grid, BRANCHES, accuracy=4e-4 if options.quick else 1e-4,
                  store=store, callback=options.progress)  # fmt: skip
    kinds = ("first-order", "equality") if options.quick else SHOWN[name]
    kinds = [k for k in kinds if k in SHOWN[name]]
    lines = traced(found, kinds=kinds, callback=options.progress,
                   accuracy=1e-4 if options.quick else None)  # fmt: skip
    drawn = [line for line in lines if line.curve is not None]
    rows, data = [], []
    for line in lines:
        ends = "; ".join(dict.fromkeys(e["message"] for e in line.ends)) or line.message
        reach = "-"
        if line.curve is not None:
            reach = f"{min(line['omega']):.4g} .. {max(line['omega']):.4g}"
        value = f"{line.event.value:.6g} +- {line.event.error:.1g}"
        rows.append([line.symbol, line.name, value, reach, ends])
        data.append(line.to_dict())
    notes = [_summary(found), f"store: {store}; the same command resumes"]
    at = lines[0].event.params["omega"] if lines else math.nan
    columns = ("line", "what", f"alpha at omega = {at:g}", "omega", "ends")

    def draw(path: Path) -> None:
        found.plot(path, quantity, drawn)

    return Report(quantity, columns, rows, {"sweep": found.summary(), "lines": data}, notes, draw)


def _summary(found: Sweep) -> str:
    numbers = found.summary()
    unsolved = numbers["unsolved"] + numbers["failed"]
    return (
        f"{numbers['tasks']} tasks: {numbers['found']} found, {numbers['absent']} where the branch "
        f"does not exist, {unsolved} not solved"
    )
