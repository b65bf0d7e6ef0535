"""One branch at one point: the unit of work, independent of all others."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass

import theory
from numerics.branches import locate
from numerics.sweep.outcome import Outcome
from numerics.sweep.portable import Portable, unpack
from numerics.sweep.store import Key
from theory.errors import SpinodalError

driving = False
"""Whether a sweep was started by this very process, which then integrates with all its threads."""


@dataclass(frozen=True)
class Task:
    """A key of the store, and the code that makes its value."""

    key: Key
    problem: Portable


def execute(task: Task) -> Outcome:
    """Solve one task; an exception of the solve is an outcome like any other.

    Raises
    ------
    SpinodalError
        If this process runs another version than the one that the key names. What goes wrong with
        the code itself, before any solve, is raised too: it would for every task.
    """
    if task.key.version != theory.__version__:
        raise SpinodalError(
            f"a worker runs spinodal {theory.__version__}, the sweep {task.key.version}; install "
            "the same version everywhere"
        )
    if not driving:
        os.environ.setdefault("SPINODAL_THREADS", "1")
    problem = unpack(task.problem)
    begun = time.perf_counter()
    try:
        solution = locate(
            problem, json.loads(task.key.point), accuracy=task.key.accuracy, raise_on_failure=False
        )
        return Outcome.of(solution, time.perf_counter() - begun)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        return Outcome.failed(failure, time.perf_counter() - begun)
