"""``spinodal branch | diagram | boundary``."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from numerics.cli import options as o
from numerics.cli import output, tables
from theory.errors import ModelError, ParameterError
from theory.free_energy import FreeEnergy
from theory.joint import members, moved, shared, value_of, without


def branch(
    model: o.ModelName = "attention",
    *,
    branch: Annotated[str | None, Parameter(help="Branch, such as positional.")] = None,
    over: o.Over = None,
    settings: o.Settings = None,
    accuracy: o.TraceAccuracy = None,
    json: o.Json = False,
    csv: o.Csv = None,
    plot: o.Plot = None,
    out: o.Out = None,
) -> int:
    """Follow one branch in a parameter, through folds, with its stability and events."""
    from numerics.branches import compiled
    from numerics.cli.inputs import check_branch, load_model
    from numerics.continuation import follow
    from numerics.continuation.survey import somewhere

    parameter, span = _range(over)
    declared, params = load_model(model, _with(settings, parameter, span[0]))
    check_branch(declared, branch)
    _check(declared, parameter, span, settings, accuracy)
    with output.Progress(quiet=json) as progress:
        progress({"stage": "deriving and compiling (the first time takes longer)"})
        problem = compiled(declared, branch, params, [parameter])
        start = somewhere(problem, without(params, parameter), parameter, span)
        if start is None:
            raise ModelError(
                f"{problem.name}: the branch {problem.branch or ''} was found nowhere for "
                f"{parameter} in [{span[0]:g}, {span[1]:g}]; try another range"
            )
        found = follow(problem, start, parameter, span, both=True, accuracy=accuracy,
                       callback=progress)  # fmt: skip
    tables.emit_branches([found], found.events, json=json, data=found.to_dict())
    tables.write([found], csv=csv, out=out)
    if plot is not None:
        found.plot(plot)
    return 0 if found.status.success else 1


def diagram(
    model: o.ModelName = "attention",
    *,
    over: o.Over = None,
    settings: o.Settings = None,
    accuracy: o.TraceAccuracy = None,
    json: o.Json = False,
    csv: o.Csv = None,
    plot: o.Plot = None,
    out: o.Out = None,
) -> int:
    """Find all branches in a range, their events and the crossings of their energies."""
    from numerics.branches import compiled
    from numerics.cli.inputs import load_model
    from numerics.continuation import diagram as explore
    from numerics.continuation.landmarks import trust

    parameter, span = _range(over)
    declared, params = load_model(model, _with(settings, parameter, span[0]))
    _check(declared, parameter, span, settings, accuracy)
    with output.Progress(quiet=json) as progress:
        progress({"stage": "deriving and compiling (the first time takes longer)"})
        problem = compiled(declared, None, params, [parameter])
        fixed = without(params, parameter)
        found = explore(problem, parameter, span, params=fixed, accuracy=accuracy,
                        callback=progress)  # fmt: skip
        progress({"stage": "diagnostics"})
        trusts = [trust(b) for b in found.branches]
    ranges = tables.beyond(found.branches, trusts)
    tables.emit_branches(found.branches, found.events, json=json, names=found.names,
                         data={**found.to_dict(), "beyond_limits": ranges})  # fmt: skip
    if not json:
        tables.emit_beyond(ranges, parameter)
    tables.write(found.branches, csv=csv, out=out)
    if plot is not None:
        found.plot(plot, trusts=trusts)
    return 0 if found.branches else 1


def boundary(
    model: o.ModelName = "attention",
    *,
    over: o.Over = None,
    along: Annotated[str | None, Parameter(help="Second parameter and its range.")] = None,
    between: o.Between = None,
    first_order: Annotated[
        bool, Parameter(negative=(), help="Only the first-order transition.")
    ] = False,
    settings: o.Settings = None,
    accuracy: o.TraceAccuracy = None,
    json: o.Json = False,
    csv: o.Csv = None,
    plot: o.Plot = None,
    out: o.Out = None,
) -> int:
    """Trace a first-order transition, and all other lines, in a second parameter to their ends."""
    from numerics.branches import compiled
    from numerics.cli.inputs import load_model, transition_range
    from numerics.continuation import Line, lines, phase_boundary
    from numerics.panels import plot_lines

    if along is None:
        raise ParameterError("give the second parameter and its range with --along NAME=LO:HI")
    second, reach = _range(along, "--along")
    declared, _ = load_model(model, _with(settings, second, reach[0]))
    _check(declared, second, reach, settings, accuracy)
    pair, parameter, span = transition_range(declared, between, over, settings)
    if shared(second, parameter):
        raise ParameterError(f"{shared(second, parameter)} is both --over and --along; they must "
                             "differ")  # fmt: skip
    _, params = load_model(model, settings)
    with output.Progress(quiet=json) as progress:
        line, at, why, known, others = None, None, "", [], []
        try:
            first = _first(declared, params, pair, parameter, span, second, reach, progress)
        except ParameterError as error:
            if first_order:
                raise
            why = str(error)
        else:
            line = phase_boundary(first, second, reach, over=span, accuracy=accuracy,
                                  callback=progress)  # fmt: skip
            at = value_of(first.params, second)
        if not first_order:
            known = [] if line is None else [Line.of(line, first)]
            others = lines(compiled(declared, None, params, [second]), (parameter, second), span,
                           reach, params, at=at, known=known, accuracy=accuracy,
                           callback=progress)[len(known) :]  # fmt: skip
    tables.emit_boundary(line, others, why, json=json)
    tables.write_boundary(line, others, csv=csv, out=out)
    if plot is not None and (line is not None or others):
        if others:
            title = _title(declared, params, (parameter, second))
            plot_lines([*known, *others], plot, title)
        elif line is not None:
            line.plot(plot)
    return 0 if (line is not None and len(line) > 1) or any(map(len, others)) else 1


def _title(declared: FreeEnergy, params, followed: tuple[str, str]) -> str:
    from numerics.plotting import symbol

    fixed = ", ".join(f"{symbol(k)} = {v:g}" for k, v in params.items() if k not in followed)
    return f"{declared.name}{': ' + fixed if fixed else ''}"


def _range(text: str | None, option: str = "--over") -> tuple[str, tuple[float, float]]:
    from numerics.cli.inputs import parse_range

    if text is None:
        raise ParameterError(f"give a parameter and its range with {option} NAME=LO:HI")
    return parse_range(text, option)


def _with(settings: list[str] | None, name: str, value: float) -> list[str]:
    """Settings in which a parameter that is followed has a value, too."""
    from numerics.cli.inputs import parse_settings

    known = parse_settings(settings)
    return [*(settings or []), *(f"{k}={value!r}" for k in members(name) if k not in known)]


def _check(
    declared: FreeEnergy, name: str, span, settings: list[str] | None, accuracy: float | None
) -> None:
    from numerics.cli.inputs import check_accuracy, parse_settings
    from theory.derive import check_values

    if accuracy is not None:
        check_accuracy(accuracy)
    fixed = parse_settings(settings)
    if shared(name, fixed):
        raise ParameterError(f"{shared(name, fixed)} is given twice: with --set and with a range")
    for end in span:
        check_values(declared, moved(fixed, name, end))


def _first(declared, params, pair, parameter, span, second, reach, progress):
    """The transition at the second parameter's default, else at other values in its range."""
    from numerics.first_order import find_transition
    from numerics.status import Status

    low, high = reach
    values = [v for v in (value_of(params, second, low),) if low <= v <= high]
    values += [low + f * (high - low) for f in (0.5, 0.25, 0.75, 0.1, 0.9)]
    found = None
    for value in values:
        found = find_transition(declared, moved(params, second, value), between=pair,
                                parameter=parameter, span=span, accuracy=1e-5,
                                moving=[second], callback=progress)  # fmt: skip
        if found.status is Status.CONVERGED:
            return found
    assert found is not None
    raise ParameterError(f"no transition between {pair[0]} and {pair[1]} to start from for "
                         f"{second} in [{low:g}, {high:g}]: {found.message}")  # fmt: skip
