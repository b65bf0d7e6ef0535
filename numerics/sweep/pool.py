"""Worker processes that never outlive the process that started them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from multiprocessing.connection import Connection

from theory.errors import SpinodalError


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """A pool of spawned processes (a forked one would inherit threads that do not run in it).

    Raises
    ------
    SpinodalError
        If no process can start.
    """

    def __init__(self, workers: int):
        context = multiprocessing.get_context("spawn")
        # closed by `stop`, or by the system when this process is killed: workers end either way
        self._watched, self._lifeline = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(workers, context, _begin, (self._watched,))
        with _signals_held():
            started = [self._pool.submit(os.getpid) for _ in range(workers)]
        try:
            done, _ = wait(started, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
        except BaseException as error:
            self.stop()
            if not isinstance(error, BrokenExecutor):
                raise
            raise SpinodalError(
                "worker processes cannot start; a script that sweeps needs "
                "`if __name__ == '__main__':` around its work (or workers=1)"
            ) from error

    def submit(self, function: Callable, *arguments) -> Future:
        return self._pool.submit(function, *arguments)

    def close(self) -> None:
        """End the workers, which have nothing left to do."""
        self._pool.shutdown(wait=True)
        self._lifeline.close()
        self._watched.close()

    def stop(self) -> None:
        """End the workers at once, whatever they do."""
        self._lifeline.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._watched.close()


def _begin(lifeline: Connection) -> None:
    os.environ["SPINODAL_THREADS"] = "1"
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(0)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Processes started here inherit the mask: the terminal's interrupt reaches only us."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
