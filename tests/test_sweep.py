"""Sweeps: what is stored is exact, nothing is computed twice, nothing is lost."""

import contextlib
import json
import math
import os
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import theory
from numerics.branches import compiled, locate
from numerics.sweep import Grid, Key, Outcome, Points, Store, flight, spaced, sweep
from numerics.sweep.store import APPLICATION, model_hash, point_text
from numerics.sweep.task import execute
from theory.errors import ModelError, ParameterError
from theory.models import get

SMALL = {"T": [0.2, 0.3], "D": [0.3, 0.5, 0.55]}


@pytest.fixture(scope="module")
def model():
    return get("blume-capel")


@pytest.fixture
def counted(monkeypatch):
    """Keys of the tasks that were executed in this process."""
    keys = []

    def counting(task):
        keys.append(task.key)
        return execute(task)

    monkeypatch.setattr(flight, "execute", counting)
    return keys


def rows(path):
    with contextlib.closing(sqlite3.connect(path)) as base:
        assert base.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        if not base.execute("SELECT 1 FROM sqlite_master WHERE name = 'results'").fetchall():
            return []  # the file is there before its table
        columns = "model, branch, accuracy, version, point, verdict, solution"
        return sorted(base.execute(f"SELECT {columns} FROM results").fetchall())


def a_key(values=None, **changes):
    key = {"model": "m", "branch": "b", "accuracy": 1e-6, "version": theory.__version__,
           "point": point_text(values or {"T": 0.1}), "name": "n"}  # fmt: skip
    return Key(**{**key, **changes})


def failing_model():
    """No starting point is inside the domain where a > 1."""
    m, a = sp.symbols("m a", real=True)
    return theory.FreeEnergy(m**2 / 2 - a * m, [m], [a], domain=[1 - a], name="partial")


# --- results and store --------------------------------------------------------------------------


def test_results_are_those_of_locate(model):
    found = sweep(model, SMALL, workers=1)
    assert len(found) == found.computed == 12 and not found.failures
    for key, outcome in found.outcomes.items():
        direct = locate(compiled(model, key.branch), json.loads(key.point), accuracy=1e-6,
                        raise_on_failure=False)  # fmt: skip
        assert outcome.data == direct.to_dict()
        assert outcome.energy == direct.energy and outcome.kind == direct.kind


def test_store_round_trip_is_exact(tmp_path):
    awkward = {"T": 0.1 + 0.2, "a": 5e-324, "b": math.nextafter(1.0, 2.0), "c": -1e300, "d": 1 / 3}
    assert json.loads(point_text(awkward)) == awkward
    assert point_text({"b": -0.0, "a": 1}) == point_text({"a": 1.0, "b": 0.0})
    key = a_key(awkward)
    first = Outcome("found", "b", "converged", 0.1 + 0.2, 5e-324, '{"x": 1}', None, 1 / 3)
    with Store(tmp_path / "s.db") as store:
        assert key not in store and store.get(key) is None
        assert store.put(key, first)
        assert not store.put(key, Outcome("absent"))
    with Store(tmp_path / "s.db") as store:
        assert key in store and store.get(key) == first and len(store) == 1
        assert store.outcomes(key) == {key.point: first}


def test_a_failure_is_replaced_and_replaces_nothing(tmp_path):
    key, good = a_key(), Outcome("found", "b", "converged", 1.0, 0.1, "{}")
    with Store(tmp_path / "s.db") as store:
        assert store.put(key, Outcome.failed("E: first"))
        assert store.put(key, good) and store.get(key) == good
        assert not store.put(key, Outcome.failed("E: second")) and store.get(key) == good


@pytest.mark.parametrize(
    "change",
    [{"model": "other"}, {"branch": "c"}, {"accuracy": 1e-7}, {"version": "0"}, {"point": "{}"}],
)
def test_every_part_of_the_key_counts(change):
    with Store() as store:
        store.put(a_key(), Outcome("found"))
        assert a_key(**change) not in store


def test_models_that_differ_have_different_keys(model):
    m, a = sp.symbols("m a", real=True)
    other = theory.FreeEnergy(m**2 / 2 - 2 * a * m, [m], [a], domain=[1 - a], name="partial")
    assert model_hash(other) != model_hash(failing_model()) == model_hash(failing_model())


def test_resume_computes_only_what_is_missing(model, tmp_path, counted):
    path = tmp_path / "s.db"
    first = sweep(model, {"T": [0.2], "D": SMALL["D"]}, store=path, workers=1)
    assert len(counted) == 6
    more = sweep(model, SMALL, store=path, workers=1)
    assert len(counted) == len(set(counted)) == 12 and (more.computed, len(more)) == (6, 12)
    assert {k: more.outcomes[k] for k in first.outcomes} == first.outcomes
    again = sweep(model, SMALL, store=path, workers=1)
    assert len(counted) == 12 and again.computed == 0 and again.outcomes == more.outcomes
    # the default value, given or not, is one point; another accuracy is another task
    sweep(model, {"D": [0.3]}, ["ordered"], {"T": 0.25}, store=path, workers=1)
    assert sweep(model, {"D": [0.3]}, ["ordered"], store=path, workers=1).computed == 0
    assert sweep(model, {"D": [0.3]}, ["ordered"], store=path, workers=1, accuracy=1e-5).computed
    assert len(counted) == 14


def test_interrupted_is_stored_and_resumed(model, tmp_path, counted):
    path = tmp_path / "s.db"

    def impatient(news):
        if news.get("done") == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(model, SMALL, store=path, workers=1, callback=impatient)
    assert len(rows(path)) == len(counted) == 7
    assert sweep(model, SMALL, store=path, workers=1).computed == 5
    assert len(counted) == len(set(counted)) == 12


def test_failing_tasks_are_rows_and_the_rest_goes_on(tmp_path, counted):
    path, grid = tmp_path / "s.db", {"a": [0.1, 0.5, 1.5, 2.0]}
    found = sweep(failing_model(), grid, store=path, workers=1)
    assert found.counts == {"found": 2, "failed": 2}
    assert [p["a"] for p, _, _ in found.failures] == [1.5, 2.0]
    assert all("DomainError" in message for _, _, message in found.failures)
    table = found.table()
    assert math.isnan(table[2]["m"]) and table[0]["m"] == pytest.approx(0.1)
    assert sweep(failing_model(), grid, store=path, workers=1).computed == 0 and len(counted) == 4
    assert sweep(failing_model(), grid, store=path, workers=1, retry=True).computed == 2
    assert len(counted) == 6 and len(rows(path)) == 4


def test_a_branch_that_does_not_exist_is_a_result(model):
    found = sweep(model, [{"T": 0.4, "D": 0.5}, {"T": 0.2, "D": 0.3}], ["ordered"], workers=1)
    gone, there = found.outcomes.values()
    assert (gone.verdict, gone.kind, gone.status) == ("absent", "disordered", "converged")
    assert gone.energy is not None and gone.data["kind"] == "disordered"
    assert there.verdict == "found"


BAD_SWEEPS = [
    ({"grid": {}}, "at least one parameter"),
    ({"grid": []}, "at least one point"),
    ({"grid": {"T": []}}, "no values of T"),
    ({"grid": {"T": [0.2, 0.2]}}, "twice"),
    ({"grid": {"T": ["x"]}}, "not a number"),
    ({"grid": {"T": [math.nan]}}, "outside its domain"),
    ({"grid": {"T": [-1.0]}}, "outside its domain"),
    ({"grid": {"w": [1.0]}}, "unknown parameter"),
    ({"grid": [{"T": 0.2}, {"D": 0.2}]}, "different parameters"),
    ({"grid": [{"T": 0.2}, {"T": 0.2}]}, "given twice"),
    ({"params": {"T": 0.2}}, "given twice"),
    ({"params": {"w": 0.2}}, "unknown parameter"),
    ({"branches": ["sideways"]}, "no branch"),
    ({"branches": ["ordered", "ordered"]}, "given twice"),
    ({"grid": {"T": 0.2}}, "sequence of values of T"),
    ({"grid": {"T": "0.2"}}, "sequence of values of T"),
    ({"grid": 3}, "neither a mapping nor"),
    ({"grid": "T"}, "not a mapping of names"),
    ({"branches": "sideways"}, "no branch 'sideways'"),
    ({"accuracy": 0.0}, "not a number in"),
    ({"accuracy": math.nan}, "accuracy = nan is not"),
    ({"accuracy": "fine"}, "accuracy = 'fine' is not"),
    ({"workers": 0}, "at least 1"),
    ({"workers": 1.5}, "whole number"),
    ({"workers": None, "executor": object()}, "no method submit"),
    ({"workers": 1, "executor": object()}, "not both"),
]


@pytest.mark.parametrize(("words", "message"), BAD_SWEEPS, ids=[m for _, m in BAD_SWEEPS])
def test_bad_sweeps(model, words, message):
    with pytest.raises((ParameterError, ModelError), match=message):
        sweep(model, **{"grid": SMALL, "workers": 1, **words})


def test_what_is_no_model():
    with pytest.raises(ModelError, match="needs a model"):
        sweep("blume-capel", SMALL)  # pyright: ignore


def test_ranges():
    assert spaced(0.1, 4, 3).tolist() == [0.1, 2.05, 4.0]
    assert spaced(0.01, 1, 3, log=True).tolist() == pytest.approx([0.01, 0.1, 1.0])
    assert spaced(2, 2, 1).tolist() == spaced(2, 3, 1).tolist() == [2.0]
    for bad in ((1, 2, 0, False), (2, 1, 3, False), (1, 1, 2, False), (0, 1, 3, True)):
        with pytest.raises(ParameterError):
            spaced(*bad[:3], log=bad[3])
    grid = Grid({"a": [1, 2], "b": [3, 4, 5]})
    assert len(grid) == 6 and list(grid)[3] == {"a": 2.0, "b": 3.0}


# --- stores that cannot be used -----------------------------------------------------------------


def test_unusable_stores(tmp_path):
    def refused(path, message):
        with pytest.raises(ParameterError, match=message) as caught:
            Store(path)
        assert str(path) in str(caught.value)

    text = tmp_path / "text.db"
    text.write_text("these are not the results you are looking for\n" * 50)
    refused(text, "not a store")
    refused(tmp_path / "nowhere" / "s.db", "cannot be opened")
    refused(tmp_path, "cannot be opened")
    foreign, newer = tmp_path / "foreign.db", tmp_path / "newer.db"
    with contextlib.closing(sqlite3.connect(foreign)) as base:
        base.execute("CREATE TABLE results (a)")
    refused(foreign, "not a store of spinodal")
    Store(newer).close()
    with contextlib.closing(sqlite3.connect(newer)) as base:
        assert base.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        base.execute("PRAGMA user_version = 99")
    refused(newer, "format 99")


def test_damaged_store(model, tmp_path):
    path = tmp_path / "s.db"
    sweep(model, SMALL, store=path, workers=1)
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(ParameterError, match="damaged"):
        sweep(model, SMALL, store=path, workers=1)


@contextlib.contextmanager
def unprivileged():
    """The superuser may write anywhere, so it steps back for a while."""
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_read_only_folder():
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "s.db")
        Store(store).close()
        store.chmod(0o444)
        os.chmod(folder, 0o555)
        with unprivileged():
            with pytest.raises(ParameterError, match=r"cannot be (opened|written)"):
                Store(store)
            with pytest.raises(ParameterError, match="cannot be opened"):
                Store(Path(folder, "new.db"))
        os.chmod(folder, 0o755)


# --- export -------------------------------------------------------------------------------------


def test_table_and_csv(model, tmp_path):
    found = sweep(model, SMALL, workers=1)
    table = found.table()
    assert [(r["T"], r["D"], r["branch"]) for r in table] == [
        (t, d, b) for t in SMALL["T"] for d in SMALL["D"] for b in ("ordered", "disordered")
    ]
    gone = next(r for r in table if r["verdict"] != "found")
    assert math.isnan(gone["energy"]) and math.isnan(gone["m"])
    found.to_csv(tmp_path / "t.csv")
    data = np.genfromtxt(tmp_path / "t.csv", delimiter=",", names=True, dtype=None, encoding=None)
    assert data["energy"].tolist() == pytest.approx(
        [r["energy"] for r in table], abs=0, nan_ok=True
    )
    with pytest.raises(ParameterError, match="cannot write"):
        found.to_csv(tmp_path / "no" / "t.csv")


def test_dataset(model, tmp_path):
    xarray = pytest.importorskip("xarray")
    found = sweep(model, SMALL, params=None, workers=1)
    found.to_netcdf(tmp_path / "t.nc")
    with pytest.raises(ParameterError, match="cannot write"):
        found.to_netcdf(tmp_path / "no" / "t.nc")
    data = xarray.open_dataset(tmp_path / "t.nc", engine="scipy").load()
    assert data.energy.dims == ("T", "D", "branch") and data.energy.shape == (2, 3, 2)
    assert data.attrs["model"] == "blume-capel"
    for row in found.table():
        there = data.sel(T=row["T"], D=row["D"], branch=row["branch"])
        for name in ("energy", "energy_error", "m", "m_error"):
            assert float(there[name]) == pytest.approx(row[name], abs=0, nan_ok=True)
        assert str(there.kind.values) == row["kind"]
    difference = data.energy.sel(branch="ordered") - data.energy.sel(branch="disordered")
    assert float(difference.sel(T=0.2, D=0.3)) < 0 < float(difference.sel(T=0.2, D=0.5))


def test_dataset_of_points():
    pytest.importorskip("xarray")
    points = Points([{"a": 0.1}, {"a": 1.5}, {"a": 0.7}])
    data = sweep(failing_model(), points, workers=1).to_xarray()
    assert data.m.dims == ("point", "branch") and data.a.dims == ("point",)
    assert data.m.values[:, 0].tolist() == pytest.approx([0.1, math.nan, 0.7], nan_ok=True)
