"""``spinodal sweep``: what it writes and prints, and every mistake named."""

import json
from pathlib import Path

import pytest
from test_cli import run

from numerics.cli import sweeping

GRID = ["--over", "T=0.2:0.3:2", "--over", "D=0.3:0.5:3"]


def test_command(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "blume-capel", *GRID, "--workers", "1"]
    code, out, _ = run(capsys, *words, "--json", "--csv", "t.csv", "--out", "t.nc")
    data = json.loads(out)
    assert code == 0 and (data["tasks"], data["computed"], data["failed"]) == (12, 12, 0)
    assert data["store"] == "blume-capel_sweep.db" and Path(data["store"]).exists()
    assert Path("t.csv").read_text().count("\n") == 13 and Path("t.nc").exists()
    code, out, _ = run(capsys, *words, "--branch", "ordered")
    assert code == 0 and "computed now 0, taken from the store 6, failed 0" in out


def test_command_with_failures_and_a_users_file(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import sympy, theory\n"
        "m, a, b = sympy.symbols('m a b', real=True)\n"
        "f = theory.FreeEnergy(m**2/2 - a*m + b, [m], [a, b], domain=[1 - a], name='mine')\n"
    )
    words = ["sweep", f"{path}:f", "--over", "a=0.1:2.5:9", "--set", "b=2", "--workers", "2",
             "--store", str(tmp_path / "s.db")]  # fmt: skip
    code, out, _ = run(capsys, *words, "--json")
    data = json.loads(out)
    assert code == 1 and (data["found"], data["failed"]) == (4, 5)
    assert data["failures"][0]["parameters"] == {"a": 1.3, "b": 2.0}
    code, out, _ = run(capsys, *words)
    assert code == 1 and "computed now 0" in out and "and" in out and "DomainError" in out
    code, _, err = run(capsys, *words[:4])
    assert code == 2 and "needs a value for b" in err


BAD = [
    ([], "--over NAME=LO:HI:COUNT"),
    (["--over", "T=1"], "not of the form"),
    (["--over", "T=0.2:0.3:2:lin"], "not of the form"),
    (["--over", "=0.2:0.3:2"], "not of the form"),
    (["--over", "T=0.2:0.3:0"], "at least 1"),
    (["--over", "T=0.2:0.3:-1"], "not a whole number"),
    (["--over", "T=0.2:0.3:2.5"], "not a whole number"),
    (["--over", "T=0.3:0.2:2"], "not below"),
    (["--over", "T=0:0.2:2:log"], "positive"),
    (["--over", "T=x:0.2:2"], "not a number"),
    (["--over", "T=0.2:inf:2"], "not finite"),
    (["--over", "T=0:0.2:2"], "outside its domain"),
    (["--over", "w=0.2:0.3:2"], "unknown parameter 'w'"),
    (["--over", "T=0.2:0.3:2", "--over", "T=0.2:0.3:3"], "given twice"),
    (["--over", "T=0.2:0.3:2", "--set", "T=0.2"], "given twice"),
    ([*GRID, "--branch", "sideways"], "sideways"),
    ([*GRID, "--branch", "ordered", "--branch", "ordered"], "given twice"),
    ([*GRID, "--workers", "0"], "at least 1"),
    ([*GRID, "--workers", "2", "--dask", "localhost:1"], "exclude each other"),
    ([*GRID, "--dask", "nonsense://x"], "no dask scheduler"),
    ([*GRID, "--accuracy", "3"], "accuracy"),
    ([*GRID, "--out", "t.txt"], ".nc"),
    ([*GRID, "--csv", "no/folder/t.csv"], "no folder no/folder"),
    ([*GRID, "--out", "no/folder/t.nc"], "no folder no/folder"),
    ([*GRID, "--plot", "no/folder/t.png"], "no folder no/folder"),
    ([*GRID, "--csv", "."], "it is a folder"),
    ([*GRID, "--csv", "s.db", "--store", "s.db"], "a file of its own"),
    ([*GRID, "--csv", "a.nc", "--out", "a.nc"], "a file of its own"),
    ([*GRID, "--plot", "t.txt"], ".png"),
    ([*GRID, "--plot", "t.png", "--map", "speed"], "has no 'speed'"),
    ([*GRID, "--plot", "t.png", "--map", "energy:up-down"], "not of the form"),
    ([*GRID, "--map", "energy"], "--plot"),
    (["--over", "T=0.2:0.3:2", "--plot", "t.png"], "two ranges"),
    ([*GRID, "--store", "no/such/folder/s.db"], "cannot be opened"),
]


@pytest.mark.parametrize(("words", "named"), BAD, ids=[" ".join(w) or "none" for w, _ in BAD])
def test_bad_input(capsys, words, named, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "--dask" in words:
        pytest.importorskip("distributed")
    code, out, err = run(capsys, "sweep", "blume-capel", *words)
    assert code == 2 and out == "" and named in err
    assert len(err.strip().splitlines()) == 1 and not list(tmp_path.iterdir())


def test_progress_without_a_terminal(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sweeping, "LOGGED", 0.0)
    words = ["sweep", "blume-capel", *GRID, "--workers", "1", "--store", str(tmp_path / "s.db")]
    _, _, err = run(capsys, *words)
    assert "7 of 12, " in err and "/s, 0 min left" in err


def test_bar(monkeypatch):
    """Rate and remaining time count what this run does, not what was stored before."""
    now = [0.0]
    progress = sweeping._Progress(quiet=True)
    progress._bar.get_time = lambda: now[0]
    progress({"stage": "compiling"})
    for done in range(101, 111):
        now[0] += 40.0
        progress({"stage": "solving", "done": done, "total": 210, "failed": 0})
    task = progress._bar.tasks[0]
    assert task.speed == pytest.approx(1 / 40) and task.time_remaining == pytest.approx(4000)
