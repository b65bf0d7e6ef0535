"""The commands that trace: branch, diagram, boundary."""

import csv
import json

import pytest
from test_cli import run


def test_diagram_json(capsys):
    code, out, _ = run(capsys, "diagram", "blume-capel", "--over", "D=0.3:0.6", "--set", "T=0.25",
                       "--json")  # fmt: skip
    data = json.loads(out)
    assert code == 0 and {"branches", "events"} <= set(data)
    events = {e["kind"]: e for e in data["events"]}
    assert events["first-order"]["value"] == pytest.approx(0.476265836632844, abs=1e-10)
    assert events["fold"]["value"] == pytest.approx(0.490265484857193, abs=1e-10)
    assert events["pitchfork"]["value"] == pytest.approx(0.447939867307014, abs=1e-10)
    for e in data["events"]:
        assert {"kind", "parameter", "value", "error", "status", "states"} <= set(e)
        assert e["parameter"] == "D" and e["status"] == "polished"
    assert len(events["first-order"]["states"]) == 2


def test_diagram_writes_files(capsys, tmp_path):
    names = {k: tmp_path / f"d.{k}" for k in ("png", "csv", "nc", "json")}
    for out in ("nc", "json"):
        code, printed, _ = run(
            capsys, "diagram", "landau", "--over", "r=-0.3:0.4", "--plot", str(names["png"]),
            "--csv", str(names["csv"]), "--out", str(names[out]),
        )  # fmt: skip
        assert code == 0 and "first-order" in printed and "0.1875" in printed
    with names["csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert {"branch", "r", "m", "energy", "unstable"} <= set(rows[0]) and len(rows) > 20
    assert len(json.loads(names["json"].read_text())) == 2
    xarray = pytest.importorskip("xarray")
    data = xarray.open_dataset(names["nc"], engine="scipy")
    assert {"m", "energy", "branch"} <= set(data)
    assert names["png"].stat().st_size > 10_000


def test_branch(capsys, tmp_path):
    code, out, _ = run(capsys, "branch", "landau", "--branch", "ordered", "--over", "r=-0.5:0.5",
                       "--plot", str(tmp_path / "b.png"))  # fmt: skip
    assert code == 0 and "fold" in out and "0.2500000" in out and "mirrored" in out
    assert "end of the range" in out and "mirrored: the branch passed" in out
    assert "polished: solved for" in out and "located:" not in out
    code, out, _ = run(capsys, "branch", "curie-weiss", "--over", "h=-0.5:0.5", "--json")
    data = json.loads(out)
    assert code == 0 and data["status"] == "reached_bound"
    assert [e["kind"] for e in data["events"]].count("fold") == 2


def test_boundary(capsys, tmp_path):
    code, out, _ = run(capsys, "boundary", "blume-capel", "--over", "D=0.3:0.6", "--along",
                       "T=0.1:0.5", "--json", "--plot", str(tmp_path / "b.png"), "--csv",
                       str(tmp_path / "b.csv"))  # fmt: skip
    data = json.loads(out)
    assert code == 0 and data["end_reason"] == ["reached_bound", "tricritical_end"]
    point = data["points"][3]
    assert {"D", "T", "error", "clapeyron_mismatch", "states"} <= set(point)
    assert data["ends"][1]["values"]["T"] == pytest.approx(1 / 3, abs=1e-6)
    code, out, _ = run(capsys, "boundary", "van-der-waals", "--over", "p=0.2:1.1", "--along",
                       "T=0.7:1.2")  # fmt: skip
    assert code == 0 and "critical point" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diagram", "landau"], "--over NAME=LO:HI"),
        (["diagram", "landau", "--over", "r=1"], "not of the form"),
        (["diagram", "landau", "--over", "w=0:1"], "unknown parameter 'w'"),
        (["diagram", "landau", "--over", "r=0:1", "--set", "r=0.2"], "given twice"),
        (["branch", "landau", "--branch", "none", "--over", "r=0:1"], "no branch 'none'"),
        (["boundary", "landau", "--over", "r=0:1"], "--along NAME=LO:HI"),
        (["diagram", "landau", "--over", "r=0:1", "--accuracy", "0"], "--accuracy 0"),
        (["boundary", "landau", "--over", "r=0.01:1", "--along", "r=0:1"], "must differ"),
        (["boundary", "attention", "--along", "omega=0.1:1.4"], "outside its domain"),
    ],
)
def test_bad_input(capsys, words, message):
    code, _, err = run(capsys, *words)
    assert code == 2 and message in err and "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_nothing_to_trace_is_no_bad_input(capsys):
    words = ["boundary", "landau", "--over", "r=0.6:1", "--along", "u=-0.5:-0.1"]
    code, out, err = run(capsys, *words)
    assert code == 1 and "no transition" in out and "Traceback" not in err
    code, out, _ = run(capsys, *words, "--json")
    found = json.loads(out)
    assert code == 1 and found["points"] == found["lines"] == [] and "no tr" in found["message"]
