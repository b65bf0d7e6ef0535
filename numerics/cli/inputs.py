"""Command-line words to models, parameters and ranges; every mistake has its own message."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from theory.derive import check_values
from theory.errors import ModelError, ParameterError
from theory.free_energy import FreeEnergy
from theory.models import get

if TYPE_CHECKING:
    from numerics.sweep import Grid


def parse_settings(settings: list[str] | None) -> dict[str, float]:
    """``["alpha=1.5", ...]`` as a dictionary."""
    values: dict[str, float] = {}
    for item in settings or []:
        name, separator, text = item.partition("=")
        name = name.strip()
        if not separator or not name or not text.strip():
            raise ParameterError(f"--set {item!r} is not of the form NAME=VALUE")
        if name in values:
            raise ParameterError(
                f"{name} is given twice: {values[name]:g} and {text.strip()}; keep one --set {name}"
            )
        values[name] = parse_number(text, name)
    return values


def parse_number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ParameterError(f"{name} = {text.strip()!r} is not a number") from None
    if not math.isfinite(value):
        raise ParameterError(f"{name} = {value} is not finite")
    return value


def load_model(
    name: str, settings: list[str] | None, *, partial: bool = False
) -> tuple[FreeEnergy, dict[str, float]]:
    """The model and the values of its parameters: of all, or (partial) of those that have one."""
    given = parse_settings(settings)
    model = get(name)
    return model, check_values(model, given, partial=partial)


def check_accuracy(accuracy: float) -> None:
    if not 1e-13 <= accuracy <= 1e-2:
        raise ParameterError(
            f"--accuracy {accuracy:g} is outside [1e-13, 1e-2]; it is the relative accuracy of the "
            "expectations"
        )


def check_branch(model: FreeEnergy, branch: str | None) -> None:
    if branch is not None and branch not in model.branches:
        there = ", ".join(model.branches) or "none; leave --branch out"
        raise ModelError(f"{model.name} has no branch {branch!r}; it has: {there}")


def check_file(path: Path) -> None:
    """Whether a file can be written, before hours are spent on what it shall hold."""
    if path.is_dir():
        raise ParameterError(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise ParameterError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ParameterError(f"cannot write {path}: permission denied")


def transition_range(
    model: FreeEnergy,
    between: tuple[str, str] | None,
    over: str | None,
    settings: list[str] | None,
) -> tuple[tuple[str, str], str, tuple[float, float]]:
    """Branches, parameter and range of a transition; the model's own where none are given."""
    declared = model.transition
    pair = between or declared.get("between")
    if pair is None:
        there = ", ".join(model.branches) or "none"
        raise ModelError(
            f"{model.name} declares no transition; name two branches with --between A B "
            f"(it has: {there})"
        )
    for branch in pair:
        check_branch(model, branch)
    if pair[0] == pair[1]:
        raise ModelError(f"--between {pair[0]} {pair[1]}: the two branches must differ")
    if over is None:
        if "parameter" not in declared:
            raise ParameterError("give the parameter and range to search with --over NAME=LO:HI")
        parameter, span = declared["parameter"], declared["span"]
    else:
        parameter, span = parse_range(over)
    names = [p.name for p in model.parameters]
    if parameter not in names:
        raise ParameterError(
            f"unknown parameter {parameter!r} of {model.name}; it has: {', '.join(names)}"
        )
    if over is not None and parameter in parse_settings(settings):
        raise ParameterError(f"{parameter} is given twice: with --set and with --over")
    for end in span:
        check_values(model, {parameter: end})
    return (pair[0], pair[1]), parameter, span


def parse_range(over: str, option: str = "--over") -> tuple[str, tuple[float, float]]:
    """``NAME=LO:HI``."""
    name, separator, text = over.partition("=")
    low, colon, high = text.partition(":")
    if not (separator and colon and name.strip()):
        raise ParameterError(f"{option} {over!r} is not of the form NAME=LO:HI")
    span = parse_number(low, name), parse_number(high, name)
    if not span[0] < span[1]:
        raise ParameterError(f"{option} {over!r}: the lower end {low} is not below {high}")
    return name.strip(), span


def parse_grid(over: list[str] | None, settings: list[str] | None) -> Grid:
    """``["alpha=0.1:4:40", "omega=0.02:0.7:30:log"]`` as a grid."""
    from numerics.sweep import Grid, spaced

    axes = {}
    for item in over or []:
        name, separator, text = item.partition("=")
        name, words = name.strip(), text.split(":")
        if not (separator and name) or len(words) not in (3, 4) or words[3:] not in ([], ["log"]):
            raise ParameterError(
                f"--over {item!r} is not of the form NAME=LO:HI:COUNT or NAME=LO:HI:COUNT:log"
            )
        if name in axes:
            raise ParameterError(f"{name} is given twice; keep one --over {name}")
        if name in parse_settings(settings):
            raise ParameterError(f"{name} is given twice: with --set and with --over")
        low, high = parse_number(words[0], name), parse_number(words[1], name)
        if not words[2].strip().isdecimal():
            raise ParameterError(f"--over {item!r}: the count {words[2]!r} is not a whole number")
        try:
            axes[name] = spaced(low, high, int(words[2]), log=len(words) == 4)
        except ParameterError as error:
            raise ParameterError(f"--over {item!r}: {error}") from None
    if not axes:
        raise ParameterError("give a parameter, its range and the number of values with "
                             "--over NAME=LO:HI:COUNT")  # fmt: skip
    return Grid(axes)
