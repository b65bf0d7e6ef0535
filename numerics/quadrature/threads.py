"""Threads for integration: ranges of rows, added by the caller in a fixed order."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def workers() -> int:
    """Threads used for integration: ``SPINODAL_THREADS`` or the number of cores."""
    return int(os.environ.get("SPINODAL_THREADS", 0)) or os.cpu_count() or 1


@functools.cache
def pool(threads: int) -> ThreadPoolExecutor:
    """One pool for each number of threads, kept."""
    return ThreadPoolExecutor(threads)


def in_ranges(part: Callable[[int, int], None], rows: int) -> None:
    """Call ``part(first, last)`` over ranges that cover ``rows``."""
    threads = workers()
    if threads == 1:
        part(0, rows)
        return
    chunks = 4 * threads
    edges = [rows * i // chunks for i in range(chunks + 1)]
    list(pool(threads).map(part, edges[:-1], edges[1:]))
