"""Threads for integration: ranges of rows, added by the caller in a fixed order."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

RANGES = 16  # whatever the number of threads: rows may lend their jumps to the next in a range


def workers() -> int:
    """Threads used for integration: ``SPINODAL_THREADS`` or the number of cores."""
    return int(os.environ.get("SPINODAL_THREADS", 0)) or os.cpu_count() or 1


@functools.cache
def pool(threads: int) -> ThreadPoolExecutor:
    """One pool for each number of threads, kept."""
    return ThreadPoolExecutor(threads)


def in_ranges(part: Callable[[int, int], None], rows: int) -> None:
    """Call ``part(first, last)`` over ranges that cover ``rows``."""
    edges = [rows * i // RANGES for i in range(RANGES + 1)]
    threads = workers()
    if threads == 1:
        for first, last in itertools.pairwise(edges):
            part(first, last)
        return
    list(pool(threads).map(part, edges[:-1], edges[1:]))
