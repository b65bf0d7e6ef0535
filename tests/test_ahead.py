"""Kernels compiled by other processes: what is missing is found, and the calls are valid."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from numerics import ahead, solve
from numerics.branches import compiled
from theory.models import attention
from theory.models.curie_weiss import curie_weiss


@pytest.fixture(scope="module")
def semantic():
    problem = compiled(attention(), "semantic")
    solve(problem, {"alpha": 1.5}, accuracy=1e-5)  # kernels are in the cache after this
    return problem


def test_nothing_is_missing_where_all_is_in_the_cache(semantic, monkeypatch):
    jobs = []
    monkeypatch.setattr(ahead, "_compile", jobs.append)
    ahead.compile_together([semantic], {"alpha": 1.5})
    assert not jobs


def test_both_kernels_are_missing_beside_a_text_that_was_never_compiled(semantic, tmp_path):
    fresh = SimpleNamespace(
        integrator=semantic.integrator, mode="numba", rule=None,
        module=SimpleNamespace(__file__=str(tmp_path / "spinodal_fresh.py")),
    )  # fmt: skip
    assert ahead._missing(fresh) == list(ahead.KERNELS.values())


def test_models_without_proximal_points_need_nothing():
    assert not ahead._missing(compiled(curie_weiss()))


def test_a_process_calls_the_kernels_of_a_module(semantic, monkeypatch):
    monkeypatch.setattr(ahead, "_missing", lambda problem: [1e-3, 1e-6])
    done = []

    def compile_one(job):
        path, controls, accuracy = json.loads(job)
        assert path == semantic.module.__file__ and len(controls) > 3 and accuracy in (1e-3, 1e-6)
        done.append(subprocess.run([sys.executable, "-m", "numerics.ahead"], input=job, text=True,
                                   capture_output=True, check=False))  # fmt: skip

    monkeypatch.setattr(ahead, "_compile", compile_one)
    monkeypatch.setattr(ahead.os, "cpu_count", lambda: 2)
    ahead.compile_together([semantic], {"alpha": 1.5})
    assert [(p.returncode, p.stderr) for p in done] == [(0, "")] * 2


def test_parameters_that_are_not_valid_are_left_to_the_solver(semantic, monkeypatch):
    monkeypatch.setattr(ahead, "_missing", lambda problem: [1e-3, 1e-6])
    monkeypatch.setattr(ahead, "_compile", lambda job: pytest.fail("must not be called"))
    ahead.compile_together([semantic], {"alpha": -1.0})
