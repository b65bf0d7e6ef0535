"""Sweeps on other processes and executors: what travels, and what happens when one dies."""

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import zlib

import numpy as np
import pytest
from test_sweep import SMALL, a_key

import theory
from numerics.branches import compiled
from numerics.sweep import spaced, sweep
from numerics.sweep.flight import Local
from numerics.sweep.portable import Portable, pack, unpack
from numerics.sweep.task import Task, execute
from theory.errors import SpinodalError
from theory.models import get, names


@pytest.fixture(scope="module")
def model():
    return get("blume-capel")


@pytest.mark.parametrize("name", names())
def test_models_and_their_problems_travel(name):
    declared = get(name)
    copy = pickle.loads(pickle.dumps(declared))
    assert copy.fingerprint == declared.fingerprint
    if name == "attention":
        return  # compiled in the slow test below
    problem = compiled(declared, next(iter(declared.branches), None))
    there = unpack(pack(problem))
    start = problem.starts()[0]
    assert there.source == problem.source and there.branch == problem.branch
    assert there.residual(start).tolist() == problem.residual(start).tolist()
    assert there.classify(start) == problem.classify(start)
    assert there.canonical(-start).tolist() == problem.canonical(-start).tolist()
    with pytest.raises(theory.DerivationError, match="code only"):
        _ = there.system


def test_another_version_does_not_compute(model):
    task = Task(a_key(version="0.0.1"), pack(compiled(model, "ordered")))
    with pytest.raises(SpinodalError, match="same version"):
        execute(task)


def test_given_executor(model, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        found = sweep(model, SMALL, store=tmp_path / "s.db", executor=executor)
        assert executor.submit(int).result() == 0, "left open"
    alone = sweep(model, SMALL, workers=1)
    assert {k: o.data for k, o in found.outcomes.items()} == {
        k: o.data for k, o in alone.outcomes.items()
    }
    with pytest.raises(SpinodalError, match="takes no tasks"):
        sweep(model, {"T": [0.21, 0.22, 0.23], "D": [0.3]}, executor=executor)


def test_workers_load_code_and_need_no_model(tmp_path, monkeypatch):
    """Classes of a user's file are not importable in a worker, and nothing is compiled there."""
    monkeypatch.setenv("SPINODAL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "mine.py"
    path.write_text(
        "import sympy, theory\n"
        "class Own(theory.FreeEnergy):\n    pass\n"
        "def f():\n"
        "    m, T, h = sympy.symbols('m T h', real=True)\n"
        "    f = m**2/2 - T*sympy.log(2*sympy.cosh((m + h)/T)) + sympy.Rational(1, 7919)\n"
        "    return Own(f, [m], [T, h], name='own')\n"
    )
    declared = get(f"{path}:f")
    path.unlink()
    code = []

    def look(news):
        code.append({p.name for p in (tmp_path / "cache").rglob("*.nb*")})

    found = sweep(declared, {"T": [0.3, 0.5], "h": np.linspace(0.1, 0.5, 6)}, workers=2,
                  callback=look)  # fmt: skip
    assert found.counts == {"found": 12}
    assert code[1] and code[1] == code[-1], "a worker compiled something"


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(model, tmp_path):
    killed = []

    def kill(news):
        if news.get("done") == 20 and not killed:
            victim = multiprocessing.active_children()[0]
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    grid = {"T": spaced(0.2, 0.3, 5), "D": spaced(0.3, 0.45, 20)}
    found = sweep(model, grid, store=tmp_path / "s.db", workers=2, callback=kill)
    assert killed and found.computed == len(found) == 200 and not found.failures
    assert not multiprocessing.active_children()


class _Deadly:
    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.slow
def test_a_task_that_kills_its_worker_is_found_out(model):
    problem = pack(compiled(model, "ordered"))
    deadly = Portable("deadly", zlib.compress(pickle.dumps(_Deadly())))
    points = [{"T": 0.2, "D": 0.3 + 0.01 * k} for k in range(8)]
    tasks = [Task(a_key(p), deadly if k == 3 else problem) for k, p in enumerate(points)]
    local = Local(2)
    done = {task.key: outcome for task, outcome in local.run(iter(tasks))}
    local.stop()
    assert set(done) == {t.key for t in tasks}
    assert [done[t.key].verdict for t in tasks] == [*["found"] * 3, "failed", *["found"] * 4]
    assert "died" in done[tasks[3].key].failure


@pytest.mark.slow
def test_a_script_without_guard_is_told(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from numerics.sweep import sweep\nfrom theory.models import get\n"
        "sweep(get('blume-capel'), {'T': [0.2, 0.3], 'D': [0.3, 0.4]}, workers=2)\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 1 and "if __name__ == '__main__':" in ended.stderr
