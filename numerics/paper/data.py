"""The authors' gradient-descent data, in the units of the theory, and their distance from it."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numerics.branches import compiled, locate
from numerics.solvers import Solution, belongs, solve
from theory.errors import DataError
from theory.models import get

RUNS = 24
START = 1.25  # a sample complexity at which both branches exist
COLUMNS = {
    "energy": "attention_train_error_mean",
    "m": "attention_mag_mean",
    "theta": "attention_theta_mean",
    "test_error": "attention_gen_error_mean",
    "baseline_error": "linear_gen_error_mean",
}
KEYS = ("d", "omega", "sigma", "attention_lmbda", "alpha", "informed")
QUANTITIES = tuple(COLUMNS)


@dataclass(frozen=True)
class Measured:
    """Mean over runs of gradient descent at one set of parameters.

    Attributes
    ----------
    informed : bool
        Started at the teacher (semantic branch), else at the positions (positional branch).
    values, errors : dict
        ``energy`` (risk per dimension), ``m`` (absolute overlap), ``theta`` (|theta| / sigma^2),
        ``test_error`` and ``baseline_error``; standard errors of the means.
    """

    dimension: int
    params: dict[str, float]
    informed: bool
    values: dict[str, float]
    errors: dict[str, float]

    @property
    def branch(self) -> str:
        return "semantic" if self.informed else "positional"


def read_measured(path: str | Path, runs: int = RUNS) -> list[Measured]:
    """Read means, and standard deviations from the file beside them.

    Parameters
    ----------
    path : path
        Of the means, ``NAME_mean.csv`` (or ``NAME.csv``); ``NAME_std.csv`` must lie beside it.
    runs : int
        Behind each mean.

    Raises
    ------
    DataError
    """
    path = Path(path)
    beside = path.with_name(path.stem.removesuffix("_mean") + "_std" + path.suffix)
    spread = {_key(row): row for row in _rows(beside)}
    found = []
    for row in _rows(path):
        other = spread.get(_key(row))
        if other is None:
            raise DataError(f"{beside} has no row for {dict(zip(KEYS, _key(row), strict=True))}")
        d = int(_number(row, "d", path))
        unit = {"energy": 1 / d}
        values = {k: _number(row, c, path) * unit.get(k, 1.0) for k, c in COLUMNS.items()}
        errors = {k: _number(other, c, beside) * unit.get(k, 1.0) / math.sqrt(runs)
                  for k, c in COLUMNS.items()}  # fmt: skip
        names = {"alpha": "alpha", "omega": "omega", "sigma": "sigma", "lambda": "attention_lmbda"}
        params = {k: _number(row, c, path) for k, c in names.items()}
        found.append(Measured(d, params, row["informed"] == "True", values, errors))
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            missing = [c for c in (*KEYS, *COLUMNS.values()) if c not in (reader.fieldnames or ())]
            if missing:
                raise DataError(f"{path} lacks the column {missing[0]!r}; it has: "
                                f"{', '.join(reader.fieldnames or ()) or 'none'}")  # fmt: skip
            return list(reader)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}; means and standard deviations are two "
                        "files side by side, NAME_mean.csv and NAME_std.csv") from None  # fmt: skip


def _key(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(row[k] for k in KEYS)


def _number(row: Mapping[str, str], column: str, path: Path) -> float:
    try:
        return float(row[column])
    except (TypeError, ValueError):
        raise DataError(f"{path}: {column} = {row[column]!r} is not a number") from None


def theory_at(
    params: Mapping[str, float],
    branch: str,
    accuracy: float = 1e-4,
    near: Solution | None = None,
) -> Solution | None:
    """State of a branch of the attention model; None where the branch does not exist.

    Rules are not refined: errors far below the data's standard errors are enough here. With a state
    ``near`` by, there is no search.
    """
    problem = compiled(get("attention"), branch)
    if near is None:
        state = locate(problem, params, accuracy=accuracy, refine=False, raise_on_failure=False)
    else:
        state = solve(problem, params, near, accuracy=accuracy, refine=False,
                      raise_on_failure=False)  # fmt: skip
    return state if belongs(state) and state.kind == branch else None


def quantity(state: Solution, name: str) -> tuple[float, float]:
    """Value and error of one of the measured quantities."""
    if name == "energy":
        return state.energy, state.energy_error
    if name in state.observables:
        return state.observables[name], state.observable_errors[name]
    unit = state.params["sigma"] ** 2 if name == "theta" else 1.0
    return abs(state.state.get(name, 0.0)) / unit, state.errors.get(name, 0.0) / unit


def z_scores(row: Measured, state: Solution) -> dict[str, float]:
    """(theory - mean) over the standard error of the mean and the error of the theory together.

    The overlap that vanishes on the branch is left out: the mean of an absolute value over runs of
    finite size is not zero.
    """
    scores = {}
    for name in QUANTITIES:
        if name in ("m", "theta") and name not in state.state:
            continue
        value, error = quantity(state, name)
        scores[name] = (value - row.values[name]) / math.hypot(row.errors[name], error)
    return scores


def compare(rows: Iterable[Measured]) -> list[tuple[Measured, Solution, dict[str, float]]]:
    """Each row with the state of its branch and the z-scores; rows without a state are left out.

    Each branch is found at one of the rows near ``START`` and followed from there, both ways.
    """
    groups: dict[tuple, list[Measured]] = {}
    for row in rows:
        others = tuple(sorted((k, v) for k, v in row.params.items() if k != "alpha"))
        groups.setdefault((row.branch, others), []).append(row)
    found = []
    for group in groups.values():
        states = _along(sorted(group, key=lambda r: r.params["alpha"]))
        found += [(row, state, z_scores(row, state)) for row, state in states]
    return found


def _along(rows: list[Measured]) -> list[tuple[Measured, Solution]]:
    """Rows of one branch in alpha with their states, as far as the branch reaches."""
    for k in sorted(range(len(rows)), key=lambda k: abs(rows[k].params["alpha"] - START))[:3]:
        first = theory_at(rows[k].params, rows[k].branch)
        if first is None:
            continue
        found = [(rows[k], first)]
        for further in (rows[k + 1 :], rows[:k][::-1]):
            state = first
            for row in further:
                state = theory_at(row.params, row.branch, near=state)
                if state is None:
                    break
                found.append((row, state))
        return sorted(found, key=lambda pair: pair[0].params["alpha"])
    return []
