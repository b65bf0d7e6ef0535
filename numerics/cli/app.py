"""The `spinodal` command: every subcommand is registered here."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from numerics.cli import figures, output, sweeping, tables, tracing
from numerics.cli.options import (
    Accuracy,
    Between,
    Csv,
    Json,
    ModelName,
    Out,
    Plot,
    Settings,
    writable,
)
from theory.derive import check_values
from theory.errors import ConvergenceError, SpinodalError
from theory.joint import moved

app = App(
    name="spinodal",
    help="Phase transitions in solvable models of learning: free energy in, transition out.",
    version_flags=["--version"],
    help_format="plaintext",
)


@app.command
def models(*, json: Json = False) -> int:
    """List the built-in models."""
    from theory.models import get, names

    listed = {name: get(name).title for name in names()}
    output.emit_models(listed, json)
    return 0


@app.command
def derive(
    model: ModelName = "attention",
    *,
    branch: Annotated[str | None, Parameter(help="Reduce to this branch.")] = None,
    settings: Settings = None,
    ansatz: Annotated[
        str | None, Parameter(help='Order parameters: a reduction by name, or "none".')
    ] = None,
    json: Json = False,
    latex: Annotated[bool, Parameter(negative=(), help="Equations only, as LaTeX.")] = False,
    out: Annotated[
        Path | None, Parameter(name="--out", help="Write to this file.", validator=writable())
    ] = None,
) -> int:
    """Derive the saddle-point equations and print the derivation (Markdown with LaTeX)."""
    import theory
    from numerics.cli.inputs import load_model

    declared, params = load_model(model, settings, partial=True)
    system = theory.derive(declared, ansatz=ansatz, values=params)
    if branch:
        system = system.branch(branch)
    output.emit_derivation(system, json=json, latex=latex, out=out)
    return 0


@app.command
def solve(
    model: ModelName = "attention",
    *,
    branch: Annotated[str | None, Parameter(help="Branch, such as positional.")] = None,
    settings: Settings = None,
    accuracy: Accuracy = 1e-6,
    method: Annotated[str, Parameter(help="newton, damped or auto.")] = "auto",
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    out: Out = None,
) -> int:
    """Solve the saddle-point equations for one branch at one set of parameters."""
    from numerics.ahead import compile_together
    from numerics.branches import compiled, locate
    from numerics.cli.inputs import check_accuracy, check_branch, load_model
    from numerics.continuation.stability import growing
    from numerics.solvers import failure

    check_accuracy(accuracy)
    declared, params = load_model(model, settings)
    check_branch(declared, branch)
    with output.Progress(quiet=json) as progress:
        progress({"stage": "deriving and compiling (the first time takes longer)"})
        problem = compiled(declared, branch, params)
        compile_together([problem], params)
        progress({"stage": "solving"})
        solution = locate(problem, params, accuracy=accuracy, method=method, raise_on_failure=False)
        if not solution.status.usable:
            raise failure(problem, solution)
        unstable = growing(problem, solution)
    output.emit_solution(solution, json, unstable)
    rows = [output.row(solution.kind, solution)]
    tables.write_rows(rows, output.with_keys(solution, unstable), csv=csv, out=out)
    if plot is not None:
        from numerics.plotting import plot_solution

        plot_solution(problem, solution, plot)
    return 0 if solution.status.success else 1


@app.command
def transition(
    model: ModelName = "attention",
    *,
    settings: Settings = None,
    between: Between = None,
    over: Annotated[
        str | None, Parameter(help="Parameter and range to search, NAME=LO:HI.")
    ] = None,
    accuracy: Accuracy = 1e-6,
    json: Json = False,
    csv: Csv = None,
    plot: Plot = None,
    out: Out = None,
    no_plot: Annotated[bool, Parameter(negative=(), help="Do not draw the figure.")] = False,
) -> int:
    """Find where the energies of two branches cross: the first-order transition."""
    from numerics.cli.inputs import check_accuracy, load_model, transition_range
    from numerics.first_order import branch_curves, find_transition

    check_accuracy(accuracy)
    declared, params = load_model(model, settings, partial=True)
    pair, parameter, span = transition_range(declared, between, over, settings)
    params = check_values(declared, {**moved({}, parameter, span[0]), **params})
    if plot is None and not json and not no_plot:
        plot = Path(f"{declared.name}_transition.png")
    with output.Progress(quiet=json) as progress:
        found = find_transition(
            declared, params, between=pair, parameter=parameter, span=span, accuracy=accuracy,
            callback=progress,
        )  # fmt: skip
        drawn = plot is not None and found.status.success
        curves = branch_curves(declared, found, span, callback=progress) if drawn else []
    output.emit_transition(found, json)
    rows = [output.row(name, s, found) for name, s in found.states.items()]
    tables.write_rows(rows, output.transition_data(found), csv=csv, out=out)
    if plot is not None and drawn:
        from numerics.plotting import plot_transition

        plot_transition(declared, found, curves, plot)
        if not json:
            output.note(f"figure: {plot}")
    return 0 if found.status.success else 1


for command in (tracing.branch, tracing.diagram, tracing.boundary, sweeping.sweep, figures.figure):
    app.command(command)


def main(arguments: list[str] | None = None) -> None:
    """Entry point; the exit status is 0 only for a converged result, 2 for bad input."""
    errors = Console(stderr=True, soft_wrap=True, markup=False, highlight=False)
    try:
        status = app(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        message = " ".join(str(error).split())
        errors.print(f"spinodal: error: {message}")
        status = 2
    except ConvergenceError as error:
        errors.print(f"spinodal: not converged: {error}")
        status = 1
    except SpinodalError as error:
        errors.print(f"spinodal: error: {error}")
        status = 2
    except BrokenPipeError:
        status = 0
    except KeyboardInterrupt:
        errors.print("spinodal: interrupted")
        status = 130
    sys.exit(status if isinstance(status, int) else 0)
