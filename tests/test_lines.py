"""Every event of a model traced in a second parameter, and what it is called."""

import json
import math

import numpy as np
import pytest
import sympy as sp
from test_cli import run

import theory
from numerics import continuation
from numerics.branches import compiled
from numerics.continuation.landmarks import stretches_beyond, trust
from numerics.status import Status
from theory.errors import ModelError, ParameterError
from theory.models import get

m, q, a, b = sp.symbols("m q a b", real=True)


def by_symbol(found):
    return {line.symbol: line for line in found}


@pytest.fixture(scope="module")
def blume_capel():
    return continuation.lines(compiled(get("blume-capel")), ("D", "T"), (0.3, 0.6), (0.1, 0.5))


def compared(**more):
    """m^2 = -a below a = 0; "square" and "level" are equal at m = 0 on q = b: a = b^2."""
    return theory.FreeEnergy(
        a * m**2 / 2 + m**4 / 4 + (q - b) ** 2 / 2, [m, q],
        [theory.Parameter(a, 0.5), theory.Parameter(b, 0.5, 0.0, 3.0)], mirrors=[[m]],
        branches={"symmetric": theory.Ansatz("symmetric", {m: 0}),
                  "broken": theory.Ansatz("broken", {}, nonzero=[m])},
        observables={"square": q**2, "level": a, "steep": sp.exp(q)},
        comparisons={"l": ("square", "level")}, **more,
    )  # fmt: skip


def test_lines_of_blume_capel_have_names_and_exact_values(blume_capel):
    found = by_symbol(blume_capel)
    assert {k: v.name for k, v in found.items()} == {
        "D_c": "first-order, ordered / disordered",
        "D_m": "birth of ordered, disordered gains stability",
        "D_s": "ordered fold",
    }
    T = found["D_m"]["T"]
    exact = T * np.log(2 * (1 - T) / T)
    assert np.all(np.abs(found["D_m"]["D"] - exact) <= found["D_m"].errors)
    for line in found.values():
        (point,) = line.special
        assert point.kind == "tricritical"
        assert point.values["T"] == pytest.approx(1 / 3, abs=1e-6)
        assert point.values["D"] == pytest.approx(2 / 3 * math.log(2), abs=1e-6)
    assert [e["reason"] for e in found["D_c"].ends] == [Status.REACHED_BOUND,
                                                        Status.TRICRITICAL_END]  # fmt: skip
    # a fold, a crossing and a pitchfork in this order below the tricritical point
    at = {k: np.interp(0.25, v["T"], v["D"]) for k, v in found.items() if k != "D_s"}
    assert at["D_m"] < at["D_c"] < 0.490265484857


def test_lines_of_landau_and_curie_weiss_against_the_formulas():
    landau = by_symbol(
        continuation.lines(compiled(get("landau")), ("r", "u"), (-0.3, 0.5), (-2, 0.5))
    )
    assert np.max(np.abs(landau["r_c"]["r"] - 3 * landau["r_c"]["u"] ** 2 / 16)) < 1e-9
    assert np.max(np.abs(landau["r_s"]["r"] - landau["r_s"]["u"] ** 2 / 4)) < 1e-9
    assert np.max(np.abs(landau["r_m"]["r"])) < 1e-12
    curie = by_symbol(continuation.lines(compiled(get("curie-weiss")), ("h", "T"), (-0.3, 0.3),
                                         (0.2, 1.2)))  # fmt: skip
    # both spinodals lie on one curve through the cusp, and count as one line
    assert set(curie) == {"h_c", "h_s"}
    root = np.sqrt(1 - curie["h_s"]["T"])
    exact = curie["h_s"]["T"] * np.arctanh(root) - root
    assert np.max(np.abs(np.abs(curie["h_s"]["h"]) - np.abs(exact))) < 1e-9
    assert curie["h_s"].special[0].values["T"] == pytest.approx(1.0, abs=1e-8)


def test_what_a_model_compares_is_an_event_and_a_line():
    problem = compiled(compared())
    diagram = continuation.diagram(problem, "a", (-1.0, 1.0), b=0.5)
    names = {n.symbol: (e, n.text) for e, n in zip(diagram.events, diagram.names, strict=True)}
    event, text = names["a_l"]
    assert text == "square = level on symmetric"
    assert abs(event.value - 0.25) <= event.error < 1e-8
    assert names["a_m"][1] == "birth of broken, symmetric gains stability"
    found = by_symbol(continuation.lines(problem, ("a", "b"), (-1, 1), (0.0, 1.5), found=diagram))
    line = found["a_l"]
    assert np.all(np.abs(line["a"] - line["b"] ** 2) <= line.errors)
    assert line["b"].min() == 0.0 and line["a"].max() == 1.0
    only = continuation.lines(problem, ("a", "b"), (-1, 1), (0, 1), kinds=["equality"])
    assert [line.symbol for line in only] == ["a_l"]


def test_a_line_that_cannot_be_traced_keeps_its_reason(monkeypatch):

    module = __import__("sys").modules["numerics.continuation.lines"]

    def refuse(*args, **kwargs):
        raise ParameterError("no line today")

    monkeypatch.setattr(module, "condition_curve", refuse)
    found = by_symbol(continuation.lines(compiled(compared()), ("a", "b"), (-1, 1), (0, 1)))
    assert found["a_l"].message == "no line today" and len(found["a_l"]) == 0
    with pytest.raises(ParameterError, match="not traced"):
        found["a_l"]["a"]
    assert found["a_l"].to_dict()["traced"] is False


def test_declarations_are_checked_and_no_part_of_what_is_computed():
    with pytest.raises(ModelError, match=r"comparisons\['x'\] names 'nothing'"):
        theory.FreeEnergy(a * m**2, [m], [a], comparisons={"x": ("nothing", "m")})
    with pytest.raises(ModelError, match="is no diagnostic"):
        theory.FreeEnergy(a * m**2, [m], [a], limits={"replicon": 1.0})
    assert compared().fingerprint == compared(diagnostics={}).fingerprint
    model = get("attention")
    model.limits.clear()
    assert model.fingerprint == get("attention").fingerprint


def test_where_diagnostics_exceed_their_limits():
    model = compared(diagnostics={"size": q**2 - 2 * a}, limits={"size": 1.0})
    branch = continuation.follow(compiled(model, "symmetric"), {"q": 0.5}, "a", (-1.0, 1.0), b=0.5)
    found = trust(branch)
    np.testing.assert_allclose(found.values["size"], 0.25 - 2 * branch.values, atol=1e-12)
    ranges = stretches_beyond(branch, found.beyond())
    gap = np.max(np.abs(np.diff(branch.values)))
    # |1/4 - 2a| > 1: a < -3/8 or a > 5/8
    assert np.allclose(ranges, [(-1, -0.375), (0.625, 1)], atol=gap)
    assert trust(continuation.follow(compiled(get("landau")), {"m": 0.0}, "r", (0.1, 0.5))) is None


def test_boundary_command_has_all_lines(capsys, tmp_path):
    words = ["boundary", "blume-capel", "--over", "D=0.3:0.6", "--along", "T=0.1:0.5"]
    code, out, _ = run(capsys, *words, "--json", "--csv", str(tmp_path / "l.csv"), "--plot",
                       str(tmp_path / "l.png"))  # fmt: skip
    data = json.loads(out)
    assert code == 0
    assert [line["symbol"] for line in data["lines"]] == ["D_m", "D_s"]
    assert data["lines"][1]["ends"][1]["reason"] == "tricritical_end"
    table = (tmp_path / "l.csv").read_text()
    assert {row.partition(",")[0] for row in table.splitlines()[1:]} == {"D_c", "D_m", "D_s"}
    assert (tmp_path / "l.png").stat().st_size > 10_000
    code, out, _ = run(capsys, *words, "--first-order", "--json")
    assert code == 0 and json.loads(out)["lines"] == []
    # no first-order transition in this range, but a line of pitchforks
    code, out, _ = run(capsys, "boundary", "blume-capel", "--over", "D=0.3:0.43", "--along",
                       "T=0.4:0.5")  # fmt: skip
    assert code == 0 and "no transition" in out and "birth of ordered" in out


@pytest.mark.slow
def test_lines_of_attention():
    """A short piece of each, against values at omega = 0.3."""
    problem = compiled(get("attention"), None, {"omega": 0.3})
    found = by_symbol(continuation.lines(
        problem, ("alpha", "omega"), (0.4, 1.7), (0.29, 0.31), kinds=["pitchfork", "equality"],
        at=0.3, accuracy=1e-4,
    ))  # fmt: skip
    known = {"alpha_theta": 0.71919, "alpha_m,semantic": 0.8264676, "alpha_l": 1.492270}
    assert set(found) == set(known)
    assert found["alpha_m,semantic"].name == "birth of mixed, semantic gains stability"
    for symbol, value in known.items():
        line = found[symbol]
        assert line["omega"].min() == 0.29 and line["omega"].max() == 0.31
        assert np.interp(0.3, line["omega"], line["alpha"]) == pytest.approx(value, abs=2e-3)


def test_a_crossing_between_a_stable_point_and_the_event_beyond_is_found():
    problem = compiled(get("potts"), None, {"q": 3.0})
    found = continuation.diagram(problem, "K", (2.0, 4.0), q=3.0)
    (event,) = found.of_kind("first-order")
    assert abs(event.value - 4 * math.log(2)) <= event.error < 1e-9


def test_a_field_unfolds_the_pitchfork_and_leaves_folds():
    problem = compiled(get("curie-weiss"), None, {"h": 0.0})
    found = continuation.lines(problem, ("T", "h"), (0.5, 1.5), (-0.2, 0.2))
    pitchfork, fold = (next(x for x in found if x.event.kind == k) for k in ("pitchfork", "fold"))
    assert pitchfork.curve is None and "symmetry" in pitchfork.message
    m = np.sqrt(1 - fold["T"])
    exact = np.abs(fold["T"] * np.arctanh(m) - m)
    assert np.max(np.abs(np.abs(fold["h"]) - exact)) < 1e-8
    (cusp,) = fold.special
    assert cusp.kind == "cusp" and abs(cusp.values["T"] - 1) <= cusp.errors["T"] < 1e-6


def test_a_fold_line_ends_where_its_state_is_its_own_mirror_image():
    problem = compiled(get("landau"), None, {"u": -1.0, "v": 1.0})
    found = continuation.lines(problem, ("r", "u"), (-1, 1), (-1, 1), {"v": 1.0}, at=-0.5)
    fold = next(x for x in found if x.event.kind == "fold")
    assert np.max(fold["u"]) < 0
    assert np.max(np.abs(fold["r"] - fold["u"] ** 2 / 4)) < 1e-9
    end = fold.ends[1]
    assert end["reason"] is Status.TRICRITICAL_END
    assert all(abs(end["values"][k]) <= end["errors"][k] < 1e-5 for k in ("r", "u"))


def test_a_model_without_defaults_is_surveyed_in_the_middle_of_the_range():
    r, u, m = sp.symbols("r u m", real=True)
    model = theory.FreeEnergy(
        r * m**2 / 2 + u * m**4 / 4 + m**6 / 6, unknowns=[m], parameters=[r, u], mirrors=[[m]]
    )
    problem = theory.derive(model).compile()
    found = continuation.lines(problem, ("r", "u"), (-0.5, 0.5), (-1.8, -0.2))
    assert {x.event.params["u"] for x in found} == {-1.0}
    assert {x.event.kind for x in found} == {"first-order", "fold", "pitchfork"}
