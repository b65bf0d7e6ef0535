"""Command-line words to models, parameters and ranges; every mistake has its own message."""

from __future__ import annotations

import ast
import math
import operator
from typing import TYPE_CHECKING

from theory.derive import check_values
from theory.errors import ModelError, ParameterError, near
from theory.free_energy import FreeEnergy
from theory.joint import check_known, joint, members, shared
from theory.models import get

if TYPE_CHECKING:
    from numerics.sweep import Grid


_SIGNS = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow,
}  # fmt: skip


def parse_settings(settings: list[str] | None) -> dict[str, float]:
    """``["alpha=1.5", "A11,A22=0.7", ...]`` as a dictionary of single names."""
    values: dict[str, float] = {}
    for item in settings or []:
        name, separator, text = item.partition("=")
        name = name.strip()
        if not separator or not name or not text.strip():
            raise ParameterError(f"--set {item!r} is not of the form NAME=VALUE")
        for word in members(name):
            if word in values:
                raise ParameterError(
                    f"{word} is given twice: {values[word]:g} and {text.strip()}; keep one --set "
                    f"{word}"
                )
            values[word] = parse_number(text, word)
    return values


def parse_number(text: str, name: str) -> float:
    """A number, or arithmetic of numbers such as ``1/4`` and ``2*10**-3``."""
    try:
        value = _arithmetic(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        try:
            value = float(text)  # inf and nan, for their own message
        except ValueError:
            raise ParameterError(
                f"{name} = {text.strip()!r} is not a number; give one, or a fraction such as 1/4"
            ) from None
    if not math.isfinite(value):
        raise ParameterError(f"{name} = {value} is not finite")
    return value


def _arithmetic(node: ast.expr) -> float:
    """Value of a parsed expression of numbers and the four operations (and powers)."""
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.UnaryOp(op=op, operand=x) if type(op) in _SIGNS:
            return _SIGNS[type(op)](_arithmetic(x))
        case ast.BinOp(left=x, op=op, right=y) if type(op) in _OPERATIONS:
            value = _OPERATIONS[type(op)](_arithmetic(x), _arithmetic(y))
            if isinstance(value, float):  # a root of a negative number is complex
                return value
    raise ValueError("not arithmetic")


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
        raise ModelError(
            f"{model.name} has no branch {branch!r}{near(branch, model.branches)}; it has: {there}"
        )


def transition_range(
    model: FreeEnergy,
    between: tuple[str, str] | None,
    over: str | None,
    settings: list[str] | None,
) -> tuple[tuple[str, str], str, tuple[float, float]]:
    """Branches, parameter and range of a transition; the model's own where none are given."""
    declared = model.transition
    pair = between or declared.get("between")
    if len(model.branches) < 2:
        there = "one branch only" if model.branches else "no named branches"
        raise ModelError(
            f"{model.name} declares no transition and has {there}, so there are no two energies to "
            "compare; find its branches and the crossings of their energies with "
            f"`spinodal diagram {model.name} --over NAME=LO:HI`"
        )
    if pair is None:
        raise ModelError(
            f"{model.name} declares no transition; name two branches with --between A B "
            f"(it has: {', '.join(model.branches)})"
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
    check_known(parameter, names, model.name)
    twice = shared(parameter, parse_settings(settings))
    if over is not None and twice:
        raise ParameterError(f"{twice} is given twice: with --set and with --over")
    for end in span:
        check_values(model, {parameter: end})
    return (pair[0], pair[1]), parameter, span


def parse_range(over: str, option: str = "--over") -> tuple[str, tuple[float, float]]:
    """``NAME=LO:HI``; several names, ``A11,A22=LO:HI``, move together."""
    name, separator, text = over.partition("=")
    low, colon, high = text.partition(":")
    if not (separator and colon and name.strip()):
        raise ParameterError(f"{option} {over!r} is not of the form NAME=LO:HI")
    span = parse_number(low, name), parse_number(high, name)
    if not span[0] < span[1]:
        raise ParameterError(f"{option} {over!r}: the lower end {low} is not below {high}")
    return joint(name), span


def parse_grid(over: list[str] | None, settings: list[str] | None) -> Grid:
    """``["alpha=0.1:4:40", "omega=0.02:0.7:30:log"]`` as a grid."""
    from numerics.sweep import Grid, spaced

    axes = {}
    for item in over or []:
        name, separator, text = item.partition("=")
        words = text.split(":")
        shaped = len(words) in (3, 4) and words[3:] in ([], ["log"])
        if not (separator and name.strip() and shaped):
            raise ParameterError(
                f"--over {item!r} is not of the form NAME=LO:HI:COUNT or NAME=LO:HI:COUNT:log"
            )
        name = joint(name)
        twice = shared(name, axes)
        if twice:
            raise ParameterError(f"{twice} is given twice; keep one --over {twice}")
        twice = shared(name, parse_settings(settings))
        if twice:
            raise ParameterError(f"{twice} is given twice: with --set and with --over")
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
