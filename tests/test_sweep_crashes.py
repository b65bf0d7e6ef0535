"""Sweeps under fire: killed, interrupted, side by side on one store, on a cluster."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from test_cli import run
from test_sweep import rows

from numerics import solve
from numerics.branches import compiled
from numerics.sweep import Store, spaced, sweep
from theory.models import get

GRID = {"T": spaced(0.2, 0.3, 40), "D": spaced(0.3, 0.5, 25)}
OVER = ["--over", "T=0.2:0.3:40", "--over", "D=0.3:0.5:25"]
TASKS = 2000

DRIVER = """
import os, random, signal, sys, time
sys.path.insert(0, sys.argv[2])
from test_sweep import rows
from test_sweep_crashes import GRID
from numerics.sweep import sweep
from theory.models import get

model, path = get("blume-capel"), sys.argv[1]
sweep(model, {"T": [0.2], "D": [0.3]}, workers=1)  # from here on everything is compiled
moments, known, killed = random.Random(20), [], 0
sweep(model, {"T": [0.2], "D": [0.3]}, store=path, workers=1)
for workers in [1] * 16 + [2] * 4:
    child = os.fork()
    if child == 0:
        sweep(model, GRID, store=path, workers=workers)
        os._exit(0)
    time.sleep(moments.uniform(0.02, 0.16) if workers == 1 else moments.uniform(0.5, 2.5))
    os.kill(child, signal.SIGKILL)
    killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    now = rows(path)
    assert set(known) <= set(now), "a row was lost or changed"
    known = now
resumed = sweep(model, GRID, store=path, workers=1)
assert set(known) <= set(rows(path))
print(killed, len(known), resumed.computed)
"""


@pytest.fixture(scope="module")
def undisturbed():
    return sweep(get("blume-capel"), GRID, workers=1)


def same(path, found):
    """The store holds every task of a sweep once, with the same numbers, and nothing else."""
    expected = [
        (k.model, k.branch, k.accuracy, k.version, k.point, o.verdict, o.solution)
        for k, o in found.outcomes.items()
    ]
    return rows(path) == sorted(expected)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_twenty_kills(tmp_path, undisturbed):
    path = tmp_path / "s.db"
    ended = subprocess.run(
        [sys.executable, "-c", DRIVER, path, Path(__file__).parent], capture_output=True,
        text=True, timeout=200, env={**os.environ, "SPINODAL_THREADS": "1"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    killed, known, computed = map(int, ended.stdout.split())
    assert killed >= 10 and known > 20, "the kills came too late or too early to test anything"
    assert known + computed == TASKS and same(path, undisturbed)


def command(path, *more):
    words = ["sweep", "blume-capel", *OVER, "--store", str(path), "--json", *more]
    code = f"from numerics.cli import main; main({words!r})"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def wait_for(condition, what):
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end, f"never seen: {what}"
        time.sleep(0.02)


def descendants(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_sweep(tmp_path, undisturbed, how):
    path = tmp_path / "s.db"
    running = command(path, "--workers", "2")
    wait_for(lambda: path.exists() and len(rows(path)) > 20, "rows in the store")
    children = descendants(running.pid)
    if how is signal.SIGINT:
        os.killpg(running.pid, how)  # as a terminal does
    else:
        running.kill()
    _, err = running.communicate(timeout=100)
    assert running.returncode == (130 if how is signal.SIGINT else -how)
    assert len(children) >= 2 and "Traceback" not in err
    wait_for(lambda: not any(Path(f"/proc/{p}").exists() for p in children), "the workers' end")
    known = len(rows(path))
    assert known < TASKS, "ended before it was hit"
    assert sweep(get("blume-capel"), GRID, store=path, workers=1).computed == TASKS - known
    assert same(path, undisturbed)


@pytest.mark.slow
def test_two_processes_share_a_store(tmp_path, undisturbed):
    path = tmp_path / "s.db"
    both = [command(path, "--workers", "1") for _ in range(2)]
    results = [json.loads(p.communicate(timeout=100)[0]) for p in both]
    assert [p.returncode for p in both] == [0, 0]
    assert sum(r["computed"] for r in results) == TASKS
    assert all(r["computed"] > 0 for r in results), "they did not run at the same time"
    assert same(path, undisturbed)


def test_a_store_may_be_made_by_several_at_once(tmp_path):
    def make(path, gate, errors):
        gate.wait()
        try:
            Store(path).close()
        except Exception as error:
            errors.append(error)

    for k in range(10):
        gate, errors = threading.Barrier(8), []
        crowd = [threading.Thread(target=make, args=(tmp_path / f"{k}.db", gate, errors))
                 for _ in range(8)]  # fmt: skip
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        assert not errors and rows(tmp_path / f"{k}.db") == []


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_dask_loses_nothing_with_a_worker(tmp_path, client, undisturbed):
    pids = set(client.run(os.getpid).values())
    assert len(pids) == 2 and os.getpid() not in pids
    victim = min(pids)

    def kill(news):
        if news.get("done") == 100:
            os.kill(victim, signal.SIGKILL)

    path = tmp_path / "s.db"
    found = sweep(get("blume-capel"), GRID, store=path, executor=client, callback=kill)
    assert found.computed == TASKS and not found.failures and same(path, undisturbed)
    assert victim not in client.run(os.getpid).values()
    assert "1" in client.run(os.getenv, "SPINODAL_THREADS").values()


@pytest.mark.slow
def test_command_on_dask(tmp_path, client, capsys):
    code, out, _ = run(
        capsys, "sweep", "blume-capel", "--over", "D=0.3:0.5:10", "--dask",
        client.scheduler.address, "--store", str(tmp_path / "s.db"), "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0 and data["computed"] == data["tasks"] == 20


@pytest.mark.slow
def test_attention(tmp_path, attention_model):
    """Workers find what one process finds; an order parameter that vanishes is an exact zero."""
    grid = {"alpha": [0.8, 1.6], "omega": [0.3]}
    branches = ["positional", "semantic"]
    found = sweep(attention_model, grid, branches, {"sigma": 0.5}, accuracy=1e-4, workers=2,
                  store=tmp_path / "s.db")  # fmt: skip
    assert found.computed == 4 and not found.failures
    for row in found.table():
        assert row["verdict"] == "found" and row["baseline_error"] > 0
        gone = "theta" if row["branch"] == "positional" else "m"
        assert row[gone] == row[f"{gone}_error"] == 0.0
        problem = compiled(attention_model, row["branch"])
        state = solve(problem, {k: row[k] for k in ("alpha", "omega", "sigma")}, accuracy=1e-5)
        for name in ("q", "V", "test_error"):
            bound = row[f"{name}_error"] + {**state.errors, **state.observable_errors}[name]
            assert abs(row[name] - state[name]) <= bound
    by = {(r["alpha"], r["omega"], r["branch"]): r["energy"] for r in found.table()}
    # the semantic branch is the lower one only beyond the transition at alpha = 1.25
    assert by[0.8, 0.3, "positional"] < by[0.8, 0.3, "semantic"]
    assert by[1.6, 0.3, "positional"] > by[1.6, 0.3, "semantic"]
