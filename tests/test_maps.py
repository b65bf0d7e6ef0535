"""Maps of sweeps: the right numbers in the right cells, and a word for every empty one."""

import json

import numpy as np
import pytest
import sympy as sp
from test_cli import run

import theory
from numerics import continuation, maps
from numerics.branches import compiled
from numerics.maps import map_plot
from numerics.quantity import parse, standard
from numerics.sweep import spaced, sweep
from theory.errors import ParameterError
from theory.models import get

pytest.importorskip("matplotlib")
AXES = {"T": spaced(0.2, 0.4, 5), "D": spaced(0.3, 0.6, 4)}


@pytest.fixture(scope="module")
def model():
    return get("blume-capel")


@pytest.fixture(scope="module")
def found(model):
    return sweep(model, AXES, workers=1)


@pytest.fixture
def figures(monkeypatch):
    """Figures as they would be saved."""
    kept = []
    monkeypatch.setattr(maps, "_save", lambda figure, path: kept.append(figure))
    yield kept
    for figure in kept:
        maps._pyplot().close(figure)


def baseline_model():
    """With errors of test and baseline; there is no solution beyond a = 1."""
    m, a, b = sp.symbols("m a b", real=True)
    plain = theory.free_energy.Ansatz("plain", {})
    return theory.FreeEnergy(
        m**2 / 2 - a * m, [m], [a, b], domain=[1 - a], branches={"plain": plain}, name="toy",
        observables={"test_error": m + b, "baseline_error": a * b + sp.Rational(1, 3)},
        comparisons={"l": ("test_error", "baseline_error")},
    )  # fmt: skip


def words(figure):
    return [t.get_text() for legend in figure.legends for t in legend.get_texts()]


def test_arrays(found):
    table = {(r["T"], r["D"], r["branch"]): r for r in found.table()}
    energies = found.array("energy", "ordered")
    assert energies.shape == (5, 4)
    for (i, j), value in np.ndenumerate(energies):
        row = table[AXES["T"][i], AXES["D"][j], "ordered"]
        assert value == pytest.approx(row["energy"], abs=0, nan_ok=True)
    for wrong in (("energy", "sideways"), ("energy", None), ("speed", "ordered")):
        with pytest.raises(ParameterError, match="the sweep has no"):
            found.array(*wrong)


def test_values_and_reasons(model, found):
    high, low = (found.array("energy", b) for b in ("disordered", "ordered"))
    verdict = found.array("verdict", "ordered")
    values, reasons = parse("energy: disordered-ordered", model, found.branches).values(found)
    np.testing.assert_array_equal(values, high - low)
    assert set(verdict.flat) >= {"found", "absent"}
    assert (reasons[verdict == "absent"] == "no ordered branch").all()
    assert (reasons[verdict == "unsolved"] == "not solved").all()
    assert (np.isfinite(values) == (verdict == "found")).all()
    lowest, _ = parse("energy", model, found.branches).values(found)
    known = verdict != "unsolved"
    np.testing.assert_array_equal(lowest[known], np.fmin(high, low)[known])
    assert np.isnan(lowest[~known]).all(), "an unsolved branch might be the lower one"


def test_usual_panels(model, attention_model):
    assert standard(model, ["ordered", "disordered"]) == ["energy: disordered - ordered"]
    assert standard(model, ["ordered"]) == ["energy"]
    assert standard(attention_model, list(attention_model.branches)) == [
        "energy: semantic - positional", "test_error: lower - baseline_error",
    ]  # fmt: skip
    toy = baseline_model()
    assert standard(toy, ["plain"]) == ["energy", "test_error: lower - baseline_error"]


BAD = ["speed", "energy: sideways", "energy: ordered - sideways", "energy: ordered - ordered - m",
       "energy:", "", ": ordered", "energy: m - ordered"]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_bad_quantities(model, found, text, tmp_path):
    with pytest.raises(ParameterError, match=r"has no|not of the form"):
        parse(text, model, found.branches)
    with pytest.raises(ParameterError):
        map_plot(found, [text], tmp_path / "m.png")


def test_branches_with_hyphens_are_understood():
    m, a = sp.symbols("m a", real=True)
    named = {n: theory.free_energy.Ansatz(n, {}) for n in ("spin-up", "spin-down")}
    model = theory.FreeEnergy(m**2 - a * m, [m], [a], branches=named)
    found = parse("m: spin-up-spin-down", model, list(named))
    assert found.second is not None
    assert (found.first.branch, found.second.branch) == ("spin-up", "spin-down")


def test_a_map(model, found, figures):
    map_plot(found, None, "m.png")
    (figure,) = figures
    axis, bar = figure.axes
    mesh = axis.collections[0]
    difference = found.array("energy", "disordered") - found.array("energy", "ordered")
    np.testing.assert_array_equal(mesh.get_array().filled(np.nan), difference.T)
    assert mesh.get_clim() == pytest.approx(
        [-np.nanmax(abs(difference)), np.nanmax(abs(difference))]
    )
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("$T$", "$D$")
    assert axis.get_xlim() == pytest.approx((0.175, 0.425))
    assert bar.get_ylabel() == "energy difference"
    assert "no ordered branch" in words(figure) and "zero, interpolated" in words(figure)


def test_a_baseline_and_a_logarithmic_axis(figures):
    axes = {"a": spaced(0.01, 4, 4, log=True), "b": [0.0, 1.0, 3.0]}
    found = sweep(baseline_model(), axes, workers=1)
    map_plot(found, None, "m.png")
    energy, error = figures[0].axes[:2]
    assert (energy.get_xscale(), energy.get_yscale()) == ("log", "linear")
    assert energy.get_ylim() == pytest.approx((-0.5, 4.0))
    a, b = np.meshgrid(axes["a"], axes["b"])
    expected = np.where(a < 1, a + b - a * b - 1 / 3, np.nan)
    np.testing.assert_allclose(error.collections[0].get_array().filled(np.nan), expected)
    assert "not solved" in words(figures[0]), "a task that failed is not an absent branch"


def test_lines(model, found, figures, tmp_path):
    ordered, disordered = (compiled(model, b) for b in ("ordered", "disordered"))
    t = continuation.crossing(ordered, disordered, {"T": 0.25}, "D", (0.4, 0.5))
    line = continuation.phase_boundary(t, "T", (0.15, 0.5))
    map_plot(found, "m: ordered", "m.png", [line, {"T": [0.2, 0.3], "D": [0.4, 0.5]}])
    axis = figures[0].axes[0]
    drawn = axis.lines[0].get_xydata()
    np.testing.assert_array_equal(drawn, np.column_stack([line["T"], line["D"]]))
    assert axis.get_xlim() == pytest.approx((0.175, 0.425)), "the map decides what is shown"
    marks = [x.get_xydata()[0].tolist() for x in axis.lines if x.get_marker() == "o"]
    assert marks == [[pytest.approx(1 / 3, abs=1e-5), pytest.approx(2 * np.log(2) / 3, abs=1e-5)]]
    assert {f"{' / '.join(line.points[0].states)} transition", "line"} <= set(words(figures[0]))
    map_plot(found, "m: ordered", "m.png", [{"T": [k, k], "D": [0.3, 0.6]} for k in (0.2, 0.3)])
    assert {"line", "line 2"} <= set(words(figures[1]))
    map_plot(found, "m: ordered", "m.png", {"jump": line})
    assert "jump" in words(figures[2])
    with pytest.raises(ParameterError, match="no values of D"):
        map_plot(found, None, tmp_path / "m.png", [{"T": [0.2, 0.3], "x": [1, 2]}])


def test_order_of_values_and_equal_values_do_not_matter(figures):
    found = sweep(baseline_model(), {"a": [0.5, 0.1, 0.9], "b": [1.0, 0.0]}, workers=1)
    map_plot(found, ["baseline_error", "m"], "m.png")
    error, m = figures[0].axes[:2]
    cells = error.collections[0].get_array()
    np.testing.assert_allclose(cells, [[1 / 3] * 3, [0.1 + 1 / 3, 0.5 + 1 / 3, 0.9 + 1 / 3]])
    np.testing.assert_allclose(m.collections[0].get_array(), [[0.1, 0.5, 0.9]] * 2, atol=1e-12)
    flat = sweep(baseline_model(), {"a": [0.1, 0.5], "b": [0.0, 1e-9]}, workers=1)
    map_plot(flat, ["baseline_error", "baseline_error: plain - baseline_error"], "m.png")
    figures[1].canvas.draw()


def test_open_figures_stay_open(found, tmp_path):
    plt = maps._pyplot()
    own = plt.figure()
    found.plot(tmp_path / "m.pdf", "energy: ordered")
    assert plt.get_fignums() == [own.number]
    plt.close(own)


def test_what_is_no_map(model, found, tmp_path):
    for grid in ({"T": [0.2, 0.3]}, [{"T": 0.2, "D": 0.3}], {"T": [0.2], "D": [0.3, 0.4]}):
        single = sweep(model, grid, ["ordered"], workers=1)
        with pytest.raises(ParameterError, match="needs two ranges"):
            single.plot(tmp_path / "m.png")
    with pytest.raises(ParameterError, match=r"\.png"):
        found.plot(tmp_path / "m.txt")
    with pytest.raises(ParameterError, match="cannot write"):
        found.plot(tmp_path / "no" / "m.png")


def test_nothing_found_is_still_a_map(figures):
    axes = {"a": [1.5, 2.0], "b": [0.0, 1.0]}
    map_plot(sweep(baseline_model(), axes, workers=1), None, "m.png")
    assert words(figures[0]) == ["not solved"]


def test_command(capsys, tmp_path):
    picture = tmp_path / "m.png"
    options = ["--over", "T=0.2:0.4:3", "--over", "D=0.3:0.6:3", "--workers", "1", "--json"]
    code, out, err = run(capsys, "sweep", "blume-capel", *options, "--store",
                         str(tmp_path / "s.db"), "--plot", str(picture), "--map", "m:ordered",
                         "--map", "energy:ordered-disordered")  # fmt: skip
    assert code == 0 and json.loads(out)["computed"] == 18 and "m.png" in err
    assert picture.read_bytes().startswith(b"\x89PNG")
