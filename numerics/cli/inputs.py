"""Command-line words to models, parameters and ranges; every mistake has its own message."""

from __future__ import annotations

import math

import theory
from theory.derive import check_values
from theory.errors import ModelError, ParameterError
from theory.models import get
from theory.system import SaddlePointSystem


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


def load_system(
    name: str, settings: list[str] | None, *, ansatz: str | None = None
) -> tuple[SaddlePointSystem, dict[str, float]]:
    """The derived system (with the reduction that the values allow) and all parameter values."""
    given = parse_settings(settings)
    model = get(name)
    bare = theory.derive(model, ansatz="none")
    values = check_values(bare, given) if ansatz is None else given
    return theory.derive(model, values=values, ansatz=ansatz), values


def check_accuracy(accuracy: float) -> None:
    if not 1e-13 <= accuracy <= 1e-2:
        raise ParameterError(
            f"--accuracy {accuracy:g} is outside [1e-13, 1e-2]; it is the relative accuracy of the "
            "expectations"
        )


def transition_range(
    system: SaddlePointSystem,
    between: tuple[str, str] | None,
    over: str | None,
    settings: list[str] | None,
) -> tuple[tuple[str, str], str, tuple[float, float]]:
    """Branches, parameter and range of a transition; the model's own where none are given."""
    declared = system.model.transition
    pair = between or declared.get("between")
    if pair is None:
        there = ", ".join(system.branches) or "none"
        raise ModelError(
            f"{system.name} declares no transition; name two branches with --between A B "
            f"(it has: {there})"
        )
    for branch in pair:
        if branch not in system.branches:
            raise ModelError(
                f"{system.name} has no branch {branch!r}; it has: {', '.join(system.branches)}"
            )
    if pair[0] == pair[1]:
        raise ModelError(f"--between {pair[0]} {pair[1]}: the two branches must differ")
    if over is None:
        if "parameter" not in declared:
            raise ParameterError("give the parameter and range to search with --over NAME=LO:HI")
        parameter, span = declared["parameter"], declared["span"]
    else:
        parameter, span = parse_range(over)
    names = [p.name for p in system.model.parameters]
    if parameter not in names:
        raise ParameterError(
            f"unknown parameter {parameter!r} of {system.name}; it has: {', '.join(names)}"
        )
    if over is not None and parameter in parse_settings(settings):
        raise ParameterError(f"{parameter} is given twice: with --set and with --over")
    for end in span:
        check_values(system, {parameter: end})
    return (pair[0], pair[1]), parameter, span


def parse_range(over: str) -> tuple[str, tuple[float, float]]:
    """``NAME=LO:HI``."""
    name, separator, text = over.partition("=")
    low, colon, high = text.partition(":")
    if not (separator and colon and name.strip()):
        raise ParameterError(f"--over {over!r} is not of the form NAME=LO:HI")
    span = parse_number(low, name), parse_number(high, name)
    if not span[0] < span[1]:
        raise ParameterError(f"--over {over!r}: the lower end {low} is not below {high}")
    return name.strip(), span
