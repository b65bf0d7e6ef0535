"""Tasks under way: in this process, on any executor, or on worker processes of our own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from typing import Protocol

from numerics.sweep.outcome import Outcome
from numerics.sweep.pool import Pool
from numerics.sweep.task import Task, execute
from theory.errors import SpinodalError

Done = tuple[Task, Outcome]
Submit = Callable[..., Future]

ON_EXECUTOR = 1000  # tasks handed to somebody else's executor at a time


class Flight(Protocol):
    """A way to run tasks."""

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        """Outcomes as they come; tasks are taken from the iterator only when one can start."""
        ...

    def finished(self) -> list[Done]:
        """After an interruption: what is done but may not have reached the caller of `run`."""
        ...

    def stop(self) -> None:
        """Drop what is not done."""
        ...


class Serial:
    """One task after the other, in this process."""

    def __init__(self):
        self._last: list[Done] = []

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        for task in tasks:
            self._last = [(task, execute(task))]
            yield self._last[0]

    def finished(self) -> list[Done]:
        return self._last

    def stop(self) -> None:
        """Nothing is under way between two tasks."""


class OnExecutor:
    """Any executor with the interface of `concurrent.futures`; it stays open afterwards."""

    def __init__(self, executor, window: int = ON_EXECUTOR):
        self._submit: Submit = executor.submit
        self._window = window
        self._running: dict[Future, Task] = {}
        self._refused: list[Task] = []

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        while True:
            while len(self._running) < self._window and (task := next(tasks, None)) is not None:
                self._running[self._sent(task)] = task
            if not self._running:
                return
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                yield self._running[future], _outcome(future)
                del self._running[future]  # only now has the caller dealt with it

    def _sent(self, task: Task) -> Future:
        try:
            return self._submit(execute, task)
        except Exception as error:
            self._refused.append(task)
            if isinstance(error, BrokenExecutor):
                raise
            raise SpinodalError(f"the executor takes no tasks: {error}") from error

    def finished(self) -> list[Done]:
        return [
            (task, _outcome(future)) for future, task in self._running.items()
            if future.done() and not future.cancelled() and not _broken(future)
        ]  # fmt: skip

    def lost(self) -> list[Task]:
        """After the executor broke: tasks without an outcome."""
        running = self._running.items()
        return self._refused + [t for f, t in running if f.cancelled() or _broken(f)]

    def stop(self) -> None:
        for future in self._running:
            future.cancel()


class Local:
    """Processes of our own, with one thread each.

    A worker that dies takes the pool with it. The tasks it may have died of are then run one at a
    time, so that a task that kills its process is found out and the others are finished.
    """

    def __init__(self, workers: int):
        self.workers = workers
        self._flight: OnExecutor | None = None
        self._pool: Pool | None = None

    def run(self, tasks: Iterator[Task]) -> Iterator[Done]:
        suspects: deque[Task] = deque()
        while True:
            self._pool = Pool(self.workers)
            alone = bool(suspects)
            window = 1 if alone else 2 * self.workers
            self._flight = OnExecutor(self._pool, window)
            try:
                yield from self._flight.run(_drained(suspects) if alone else tasks)
            except BrokenExecutor:
                self._pool.stop()  # after this every future is done, broken or cancelled
                yield from self._flight.finished()
                if alone:
                    for task in self._flight.lost():
                        yield task, Outcome.failed("a worker process died of this task")
                else:
                    suspects.extend(self._flight.lost())
            else:
                self._pool.close()
                if not alone:
                    return

    def finished(self) -> list[Done]:
        return [] if self._flight is None else self._flight.finished()

    def stop(self) -> None:
        if self._pool is not None:
            self._pool.stop()


def _drained(tasks: deque[Task]) -> Iterator[Task]:
    while tasks:
        yield tasks.popleft()


def _broken(future: Future) -> bool:
    """Whether a future that is done and not cancelled has no outcome."""
    return not future.cancelled() and future.exception() is not None and not _killer(future)


def _killer(future: Future) -> bool:
    """Whether a cluster gave a task up since it took down one worker after another."""
    return type(future.exception()).__name__ == "KilledWorker"


def _outcome(future: Future) -> Outcome:
    """`execute` raises nothing for a task's own sake, so what is raised is the executor's."""
    if future.cancelled():
        raise SpinodalError("the executor cancelled its tasks; what was finished is stored")
    if _killer(future):
        return Outcome.failed(f"workers died of this task: {future.exception()}")
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, BrokenExecutor | SpinodalError):
        raise error
    raise SpinodalError(
        f"the executor failed with {type(error).__name__}: {error}; what was finished is stored, "
        "run again to resume"
    ) from error
