"""The sweep itself: what is missing in the store is solved and written as it finishes."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import theory
from numerics.branches import compiled
from numerics.sweep import task as here
from numerics.sweep.flight import Flight, Local, OnExecutor, Serial
from numerics.sweep.grid import Grid, Points, as_grid
from numerics.sweep.outcome import FAILED
from numerics.sweep.pool import cores
from numerics.sweep.portable import Portable, pack
from numerics.sweep.result import Sweep
from numerics.sweep.store import Key, Store, model_hash, point_text
from numerics.sweep.task import Task
from theory.derive import check_values, reduction_for
from theory.errors import ModelError, ParameterError, SpinodalError, near
from theory.free_energy import FreeEnergy
from theory.joint import Name, separate

COARSEST = 1e-2  # accuracy


def sweep(
    model: FreeEnergy,
    grid: Grid | Points | Mapping[Name, Iterable[float]] | Iterable[Mapping[str, float]],
    branches: Sequence[str] | None = None,
    params: Mapping[str, float] | None = None,
    *,
    accuracy: float = 1e-6,
    store: Store | str | Path | None = None,
    workers: int | None = None,
    executor: Any = None,
    retry: bool = False,
    callback: Callable[[dict], Any] | None = None,
) -> Sweep:
    """Solve branches of a model at many points, and keep what is solved.

    Parameters
    ----------
    model : FreeEnergy
    grid : Grid, Points, mapping or sequence of mappings
        A mapping of names to values is a grid, a sequence of mappings an explicit list of points.
    branches : sequence of str, optional
        By default all that the model has.
    params : mapping, optional
        Parameters that stay fixed; defaults of the model where not given.
    accuracy : float
        Relative accuracy of the expectations.
    store : Store or path, optional
        Tasks that it holds are not computed again; without one nothing is kept.
    workers : int, optional
        Processes, by default one for each core; 1 is this process itself.
    executor : optional
        In place of processes of our own: anything with the ``submit`` of `concurrent.futures`, or
        a ``dask.distributed.Client``. It is left open.
    retry : bool
        Compute again what failed with an exception before.
    callback : callable, optional
        Called with a dict: ``stage``, and later ``done``, ``total``, ``failed``.

    Returns
    -------
    Sweep

    Raises
    ------
    ParameterError, ModelError
        For input that cannot be meant, and for a store that cannot be used.
    SpinodalError
        If workers cannot start, or an executor fails; what was finished is stored.
    """
    if not isinstance(model, FreeEnergy):
        raise ModelError(f"a sweep needs a model (FreeEnergy), not {type(model).__name__}")
    grid = as_grid(grid)
    names = _branches(model, [branches] if isinstance(branches, str) else branches)
    _check(grid, params or {}, accuracy, workers, executor)
    keys = _keys(model, grid, names, dict(params or {}), accuracy)
    own = not isinstance(store, Store)
    with contextlib.ExitStack() as stack:
        kept = stack.enter_context(Store(store)) if own else store
        assert isinstance(kept, Store)
        known = _verdicts(kept, keys)
        missing = [k for k in keys if k not in known or (retry and known[k] == FAILED)]
        progress = _Progress(callback, len(keys), len(keys) - len(missing))
        if missing:
            flight = _flight(executor, workers, len(missing))
            computed = _compute(model, missing, kept, flight, progress, retry)
        else:
            computed = 0
        return Sweep.read(model, grid, names, keys, kept, computed=computed)


class _Progress:
    def __init__(self, callback, total: int, done: int):
        self._callback, self.total, self.done, self.failed = callback, total, done, 0

    def stage(self, stage: str) -> None:
        if self._callback is not None:
            self._callback({"stage": stage})

    def step(self, failed: bool = False) -> None:
        self.done += 1
        self.failed += failed
        if self._callback is not None:
            self._callback({"stage": "solving", "done": self.done, "total": self.total,
                            "failed": self.failed})  # fmt: skip


def _branches(model: FreeEnergy, branches: Sequence[str] | None) -> list[str]:
    """Names as they stand in keys: '' is the model without reduction to a branch."""
    if not branches:
        return list(model.branches) or [""]
    for k, name in enumerate(branches):
        if name not in model.branches:
            there = ", ".join(model.branches) or "none; leave the branches out"
            raise ModelError(f"{model.name} has no branch {name!r}{near(name, model.branches)}; it "
                             f"has: {there}")  # fmt: skip
        if name in branches[:k]:
            raise ModelError(f"the branch {name} is given twice")
    return list(branches)


def _check(grid: Grid | Points, fixed, accuracy, workers, executor) -> None:
    for name in grid.parameters:
        if name in separate(fixed):
            raise ParameterError(f"{name} is given twice: as fixed and in the grid")
    if not (isinstance(accuracy, Real) and 0 < accuracy <= COARSEST):
        raise ParameterError(f"accuracy = {accuracy!r} is not a number in (0, {COARSEST}]")
    if workers is not None and not (isinstance(workers, Integral) and workers >= 1):
        raise ParameterError(f"{workers!r} workers; give a whole number of at least 1")
    if workers is not None and executor is not None:
        raise ParameterError("give workers or an executor, not both")
    if executor is not None and not hasattr(executor, "submit"):
        raise ParameterError(f"the executor {executor!r} has no method submit")


def _keys(model, grid, names, fixed, accuracy: float) -> list[Key]:
    """Every task of the sweep, each branch of a point beside the others."""
    digest = model_hash(model)
    fixed = separate(fixed)
    return [
        Key(digest, name, float(accuracy), theory.__version__, text, model.name)
        for text in (point_text(check_values(model, {**fixed, **point})) for point in grid)
        for name in names
    ]


def _verdicts(store: Store, keys: list[Key]) -> dict[Key, str]:
    by_branch: dict[str, dict[str, str]] = {}
    for key in keys:
        if key.branch not in by_branch:
            by_branch[key.branch] = store.verdicts(key)
    return {k: by_branch[k.branch][k.point] for k in keys if k.point in by_branch[k.branch]}


def _flight(executor: Any, workers: int | None, tasks: int) -> Flight:
    if executor is not None:
        return OnExecutor(
            executor.get_executor() if hasattr(executor, "get_executor") else executor
        )
    processes = min(workers or cores(), tasks)
    return Serial() if processes == 1 else Local(processes)


def _compute(
    model: FreeEnergy, missing: list[Key], store: Store, flight: Flight, progress: _Progress,
    retry: bool,
) -> int:  # fmt: skip
    """Number of results that are new in the store."""
    # at random: processes that share a store rarely meet, and the time left is well estimated
    random.Random().shuffle(missing)
    progress.stage("deriving and compiling (the first time takes longer)")
    first, rest = _prepared(model, missing)
    computed = 0
    here.driving = True
    try:
        # the first task of each problem runs here, so that workers find all code compiled
        for way, tasks in ((Serial(), first), (flight, rest)):
            try:
                for task, outcome in way.run(_still_missing(tasks, store, progress, retry)):
                    computed += store.put(task.key, outcome)
                    progress.step(outcome.verdict == FAILED)
            except BaseException:
                for task, outcome in way.finished():
                    store.put(task.key, outcome)
                raise
            finally:
                way.stop()
    except BrokenExecutor as error:
        raise SpinodalError(
            f"the executor broke: {error}; what was finished is stored, run again to resume"
        ) from error
    finally:
        here.driving = False
    return computed


def _prepared(model: FreeEnergy, missing: list[Key]) -> tuple[list[Task], list[Task]]:
    """The first task of each compiled problem, and all others."""
    packed: dict[tuple[str | None, str], Portable] = {}
    first, rest = [], []
    for key in missing:
        values = json.loads(key.point)
        reduction = reduction_for(model, values)
        which = (reduction.name if reduction else None, key.branch)
        tasks = rest if which in packed else first
        if which not in packed:
            packed[which] = pack(compiled(model, key.branch or None, values))
        tasks.append(Task(key, packed[which]))
    return first, rest


def _still_missing(
    tasks: list[Task], store: Store, progress: _Progress, retry: bool
) -> Iterator[Task]:
    """Tasks that no other process has finished by the time they would start."""
    for task in tasks:
        known = store.get(task.key)
        if known is None or (retry and known.verdict == FAILED):
            yield task
        else:
            progress.step(known.verdict == FAILED)
