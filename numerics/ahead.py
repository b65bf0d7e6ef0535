"""Compiling the kernels of several generated modules at once, each in a process of its own.

Without it everything works as well: what is called first is compiled first, one after another.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from numerics.integrator import Integrator
from numerics.problem import Problem
from theory.codegen import load
from theory.errors import SpinodalError

KERNELS = {"line_sums": 1e-3, "plane_sums": 1e-6}  # and an accuracy at which each is called


def compile_together(
    problems: Iterable[Problem], params: Mapping[str, float] | None = None
) -> None:
    """Fill the cache with the kernels of ``problems`` that are not in it.

    Parameters
    ----------
    problems : iterable of Problem
    params : mapping, optional
        Control parameters at which they will be solved.

    Notes
    -----
    A process that fails leaves its work to this one, which does it at the first call.
    """
    jobs = []
    for problem in problems:
        try:
            state = problem.starts(params)[0] if (missing := _missing(problem)) else None
        except SpinodalError:
            return  # whoever needs the numbers will be told
        if state is not None:
            controls = problem.controls(state, params).tolist()
            jobs += [json.dumps([problem.module.__file__, controls, a]) for a in missing]
    if len(jobs) < 2 or (os.cpu_count() or 1) < 2:
        return
    with ThreadPoolExecutor(os.cpu_count()) as processes:
        list(processes.map(_compile, jobs))


def _missing(problem: Problem) -> list[float]:
    """Accuracies at which a kernel is called that the cache does not hold."""
    planar = any(g["kind"] == "planar" for g in problem.integrator.groups)
    if not planar or problem.mode != "numba" or problem.rule is not None:
        return []
    text = Path(str(problem.module.__file__))
    return [
        accuracy
        for kernel, accuracy in KERNELS.items()
        if not any((text.parent / "__pycache__").glob(f"{text.stem}.{kernel}_*.nbi"))
    ]


def _compile(job: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "numerics.ahead"], input=job, text=True, capture_output=True,
        check=False,
    )  # fmt: skip


def _serve(job: str) -> None:
    """Call the kernels of a module once."""
    path, controls, accuracy = json.loads(job)
    module = load(Path(path).read_text())
    with contextlib.suppress(SpinodalError):
        Integrator(module, None, path).moments(np.array(controls), accuracy, estimate=False)


if __name__ == "__main__":
    _serve(sys.stdin.read())
