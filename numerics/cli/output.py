"""What the commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json as jsonlib
import math
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from numerics.continuation import Transition
from numerics.solvers import Solution
from theory.errors import ParameterError
from theory.system import SaddlePointSystem

KEYS = ("q", "V", "m", "theta")


class Progress:
    """A bar on standard error, fed by callbacks; silent when asked or not on a terminal."""

    def __init__(self, quiet: bool):
        console = Console(stderr=True)
        self._bar = Bar(
            SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24),
            console=console, transient=True, disable=quiet or not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_) -> None:
        self._bar.stop()

    def __call__(self, news: dict) -> None:
        stage = news.get("stage", "")
        shown = [f"{k} = {v:.6g}" for k, v in news.items()
                 if isinstance(v, float) and k != "fraction"]  # fmt: skip
        fraction = news.get("fraction")
        self._bar.update(
            self._task,
            description="  ".join([stage, *shown]),
            total=None if fraction is None else 1.0,
            completed=fraction or 0,
        )


def note(text: str) -> None:
    Console(stderr=True, markup=False, highlight=False, soft_wrap=True).print(text)


def uncertain(value: float, error: float) -> str:
    """``1.251536(1)``: the digits in parentheses are the error in the last place."""
    if value is None or not math.isfinite(value):
        return "-"
    if not math.isfinite(error) or error <= 0:
        return f"{value + 0.0:.10g}"
    if error >= abs(value) and abs(value) > 0:
        return f"{value:.2g} ± {error:.1g}"
    places = max(0, -math.floor(math.log10(error)))
    digits = math.ceil(error * 10**places - 1e-9)
    if digits == 10:
        places, digits = places - 1, 1
    if places > 15:
        return f"{value:.15g}"
    text = f"{value:.{places}f}"
    return f"{text if text.strip('-0.') else text.lstrip('-')}({digits})"


def write_json(data: object) -> None:
    print(jsonlib.dumps(data, indent=2, allow_nan=False))


def emit_models(listed: dict[str, str], json: bool) -> None:
    if json:
        write_json(listed)
        return
    table = Table(box=None, header_style="bold")
    table.add_column("model")
    table.add_column("what it is")
    for name, title in listed.items():
        table.add_row(name, title)
    Console().print(table)


def emit_derivation(
    system: SaddlePointSystem, *, json: bool, latex: bool, out: Path | None
) -> None:
    import sympy as sp

    if json:
        text = jsonlib.dumps(
            {
                "model": system.name,
                "ansatz": [a.name for a in system.ansaetze],
                "unknowns": [str(x) for x in system.unknowns],
                "parameters": [p.name for p in system.parameters],
                "free_energy": sp.latex(system.free_energy),
                "equations": [sp.latex(e) for e in system.equations],
                "observables": {k: sp.latex(v) for k, v in system.observables.items()},
            },
            indent=2,
        )
    else:
        text = system.latex() if latex else system.explain()
    if out is None:
        print(text)
        return
    try:
        out.write_text(text + "\n")
    except OSError as error:
        raise ParameterError(f"cannot write {out}: {error.strerror}") from None
    note(f"written: {out}")


def print_settings(console: Console, params: dict[str, float]) -> None:
    if params:
        console.print("at " + "  ".join(f"{k} = {v + 0.0:g}" for k, v in params.items()))


def emit_solution(solution: Solution, json: bool, unstable: int | None) -> None:
    """A state, and in how many directions it is unstable where that is known."""
    if json:
        write_json(with_keys(solution, unstable))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{solution.model}: {solution.kind}", style="bold"))
    print_settings(console, solution.params)
    if solution.branch and solution.kind not in (solution.branch, "solution"):
        console.print(
            f"the {solution.branch} branch does not exist here: its equations fall back to the "
            f"{solution.kind} solution"
        )
    console.print(_table([solution]))
    if unstable is not None:
        verdict = f"unstable in {_directions(unstable)}" if unstable else "stable"
        console.print(f"stability: {verdict}")
    if not solution.status.success:
        console.print(f"digits in parentheses: error in the last place.\n{solution.message}")
    console.print(
        f"{solution.status.name.lower()}: residual {solution.residual:.1e}, quadrature error "
        f"{solution.residual_error:.1e} (natural units), {solution.steps} steps"
    )


def emit_transition(found: Transition, json: bool) -> None:
    if json:
        write_json(transition_data(found))
        return
    console = Console(highlight=False, soft_wrap=True)
    model = found.problems[0].name
    names = " and ".join(str(p.branch) for p in found.problems)
    console.print(Text(f"{model}: first-order transition between {names}", style="bold"))
    print_settings(console, found.params)
    if not found.status.success:
        console.print(f"{found.status.name.lower()}: {found.message}")
        console.print(f"what there is: spinodal diagram {model} --over {found.parameter}=LO:HI")
        return
    value = uncertain(found.value, found.error)
    console.print(Text(f"\n  {found.parameter}_c = {value}\n", style="bold"))
    console.print(_table(list(found.states.values())))
    console.print(
        "digits in parentheses: error in the last place (quadrature and residual).\n"
        f"{found.status.name.lower()}: energy difference {found.residual:.1e}, slope "
        f"{found.slope:.4g} per unit of {found.parameter}"
    )


def _directions(count: int) -> str:
    return f"{count} direction{'' if count == 1 else 's'}"


def transition_data(found: Transition) -> dict[str, object]:
    """A transition with its states; value and error have the same names whatever the parameter."""
    data = found.to_dict()
    data["branches"] = {n: with_keys(s) for n, s in found.states.items()}
    data.setdefault("value", data.get(f"{found.parameter}_c"))
    data.setdefault("error", data.get(f"{found.parameter}_c_error"))
    return data


def row(name: str, solution: Solution, found: Transition | None = None) -> dict[str, object]:
    """One line of a table in a file: parameters, values and their errors."""
    numbers: dict[str, object] = {"branch": name, **solution.params}
    if found is not None:
        numbers |= {found.parameter: found.value, f"{found.parameter}_error": found.error}
    for k, v in solution.state.items():
        numbers |= {k: v, f"{k}_error": solution.errors[k]}
    numbers |= {"energy": solution.energy, "energy_error": solution.energy_error}
    for k, v in solution.observables.items():
        numbers |= {k: v, f"{k}_error": solution.observable_errors[k]}
    return {**numbers, "status": solution.status.name.lower()}


def with_keys(solution: Solution, unstable: int | None = None) -> dict[str, object]:
    """All four order parameters of the attention model, also those that vanish by symmetry."""
    data = {**solution.to_dict(), "unstable": unstable}
    if solution.model == "attention":
        for key in KEYS:
            data.setdefault(key, 0.0)
    if "test_error" in solution.observables:
        data["test_error_error"] = solution.observable_errors["test_error"]
    return data


def _table(solutions: list[Solution]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for s in solutions:
        table.add_column(s.kind if s.kind != "solution" else (s.branch or "solution"))
    rows: dict[str, list[str]] = {}
    unknowns = dict.fromkeys(k for s in solutions for k in s.state)
    for name in sorted(unknowns, key=lambda k: KEYS.index(k) if k in KEYS else 99):
        rows[name] = [
            uncertain(s.state[name], s.errors[name]) if name in s.state else "0" for s in solutions
        ]
    rows["energy"] = [uncertain(s.energy, s.energy_error) for s in solutions]
    for name in solutions[0].observables:
        rows[name.replace("_", " ")] = [
            uncertain(s.observables[name], s.observable_errors[name]) for s in solutions
        ]
    for name, values in rows.items():
        table.add_row(name, *values)
    return table
