"""Parameters that move as one: "a,b" keeps both at one value, wherever a parameter is named."""

import json
import math

import numpy as np
import pytest

import theory
from numerics import PlainProblem, Status, solve
from numerics.branches import compiled
from numerics.cli import main
from numerics.continuation import (
    branch_point_curve,
    crossing,
    diagram,
    fold_curve,
    follow,
    observable_curve,
    phase_boundary,
    resume,
    root,
)
from numerics.continuation.root import difference_of
from numerics.plotting import symbol
from numerics.solvers.derivatives import parameter_slope
from numerics.sweep import Grid, Points, sweep
from theory.errors import AnsatzError, ParameterError
from theory.joint import joint, members, moved, separate, slope, value_of, without

MODEL = """
import sympy as sp
import theory

m, a, b, u, v = sp.symbols("m a b u v", real=True)
split = theory.FreeEnergy(
    (a + b) * m**2 / 2 + u * m**4 / 4 + v * m**6 / 6,
    unknowns=[m],
    parameters=[theory.Parameter(s, x) for s, x in ((a, 0.1), (b, 0.1), (u, -1.0), (v, 1.0))],
    mirrors=[[m]],
    branches={"ordered": theory.Ansatz("ordered", {}, nonzero=[m]),
              "disordered": theory.Ansatz("disordered", {})},
    starts={"ordered": {m: sp.sqrt(sp.Abs(u) / v)}, "disordered": {m: 0}},
    observables={"square": m**2, "level": 2 * a - b},
    transition={"between": ("ordered", "disordered"), "parameter": "u", "span": (-2, -0.01)},
    name="split",
)
"""
space: dict = {}
exec(MODEL, space)
split = space["split"]  # the quadratic coefficient of Landau's energy is a + b


@pytest.fixture(scope="module")
def problem():
    return theory.derive(split).compile()


@pytest.fixture(scope="module")
def pair():
    system = theory.derive(split)
    return system.compile(branch="ordered"), system.compile(branch="disordered")


# --- names


def test_a_joint_name_has_one_spelling():
    assert joint(" a , b") == joint(["a", "b"]) == joint(("a", "b")) == "a,b"
    assert members("a") == ("a",) and members(("a", "b")) == members("a,b") == ("a", "b")
    for wrong, why in (("a,", "not the name"), ("", "not the name"), ("a,a", "named twice")):
        with pytest.raises(ParameterError, match=why):
            joint(wrong)


def test_values_are_kept_by_single_names():
    params = {"a": 1.0, "b": 1.0, "c": 3.0}
    assert moved(params, "a,c", 2.0) == {"a": 2.0, "b": 1.0, "c": 2.0}
    assert without(params, "a,c") == {"b": 1.0}
    assert value_of(params, "a,b") == 1.0 and value_of(params, "a,c", -1.0) == -1.0
    with pytest.raises(ParameterError, match="a = 1, c = 3"):
        value_of(params, "a,c")
    assert slope({"a": 2.0, "b": 0.5}, "a,b") == 2.5 and slope({"a": 2.0}, "a,b") == 2.0
    assert separate({"a,b": 1.0, "c": 2.0}) == {"a": 1.0, "b": 1.0, "c": 2.0}
    with pytest.raises(ParameterError, match="b is given twice"):
        separate({"a,b": 1.0, "b": 1.0})


def test_labels():
    assert symbol("A11") == "$A_{11}$" and symbol("alpha") == r"$\alpha$"
    assert symbol("A11,A22") == "$A_{11} = A_{22}$" and symbol("theta_2") == r"$\theta_{2}$"
    assert symbol("T") == "$T$" and symbol("Delta") == r"$\Delta$"


# --- values and slopes


def test_values_may_be_given_jointly(problem):
    values = problem.values({"a,b": 0.05, "u": -1.0})
    assert values == {"a": 0.05, "b": 0.05, "u": -1.0, "v": 1.0}
    one, two = (solve(problem, p, {"m": 1.0}) for p in ({"a,b": 0.05}, {"a": 0.05, "b": 0.05}))
    assert one["m"] == two["m"] and one.params == two.params
    with pytest.raises(ParameterError, match="a is given twice"):
        problem.values({"a,b": 0.05, "a": 0.05})


def test_slopes_add_up(problem):
    params = problem.values({})
    exact = parameter_slope(problem, np.array([0.7]), params, "a,b", 1e-10)
    assert exact == pytest.approx([1.4], abs=1e-15)
    plain = PlainProblem(lambda x, p: x * (p["a"] + 2 * p["b"]) - 1, ["x"], {"a": 1.0, "b": 1.0})
    found = parameter_slope(plain, np.array([0.7]), plain.values(), "a,b", 1e-10)
    assert found == pytest.approx([2.1], abs=1e-9)


# --- branches, diagrams, crossings


def test_a_branch_is_that_of_the_sum(problem):
    branch = follow(problem, {"m": 1.1}, ("a", "b"), (-0.2, 0.3), u=-1.0, v=1.0)
    fold, pitchfork = (e for e in branch.events if e.kind != "bound")
    assert branch.parameter == "a,b" and branch.params == {"u": -1.0, "v": 1.0}
    assert fold.value == pytest.approx(0.125, abs=1e-14) and fold.params == branch.params
    assert pitchfork.value == pytest.approx(0.0, abs=1e-14)
    for point in branch.points:
        assert point.params["a"] == point.params["b"]
    k = len(branch) // 3
    alone = solve(problem, branch.points[k].params, branch.points[k].x, accuracy=1e-12)
    assert branch["m"][k] == pytest.approx(alone["m"], abs=1e-10)
    again = resume(branch, (-0.2, 0.3), label="F1")
    assert again.parameter == "a,b" and again.events[-1].kind == "pitchfork"
    single = follow(problem, {"m": 1.1}, "a", (-0.2, 0.3), b=0.1, u=-1.0, v=1.0)
    assert single.events[0].value == pytest.approx(0.15, abs=1e-14)


def test_a_diagram_has_exact_events(problem):
    found = diagram(problem, "a,b", (-0.2, 0.2), u=-1.0, v=1.0)
    assert [(e.kind, e.value) for e in found.events] == [
        ("first-order", pytest.approx(3 / 32, abs=1e-14)),
        ("fold", pytest.approx(1 / 8, abs=1e-14)),
        ("pitchfork", pytest.approx(0, abs=1e-14)),
    ]
    assert found.params == {"u": -1.0, "v": 1.0}


def test_crossing_and_boundary(pair):
    found = crossing(*pair, {"u": -1.0}, ("a", "b"), (0.01, 0.3), accuracy=1e-12)
    assert found.parameter == "a,b" and abs(found.value - 3 / 32) <= found.error < 1e-12
    assert found.params == {"u": -1.0, "v": 1.0}
    # as first parameter, and as second
    line = phase_boundary(found, "u", (-2.0, -0.5))
    assert np.all(np.abs(line["a,b"] - 3 * line["u"] ** 2 / 32) <= line.errors + 1e-15)
    other = crossing(*pair, {"a,b": 0.1}, "u", (-2.0, -0.1), accuracy=1e-12)
    line = phase_boundary(other, ["a", "b"], (0.02, 0.2))
    assert line.parameters == ("u", "a,b") and line.params == {"v": 1.0}
    assert np.max(np.abs(line["u"] + np.sqrt(32 * line["a,b"] / 3))) < 1e-10
    assert [e["reason"] for e in line.ends] == [Status.REACHED_BOUND] * 2
    point = line.points[len(line) // 2]
    assert point.slope == pytest.approx(-math.sqrt(8 / (3 * point.values["a,b"])), rel=1e-10)
    assert point.mismatch < 1e-5


def test_curves_of_folds_branch_points_and_observables(problem):
    branch = follow(problem, {"m": 1.1}, "u", (-2.0, 0.5), a=0.1, b=0.1, v=1.0)
    fold = next(e for e in branch.events if e.kind == "fold")
    curve = fold_curve(fold, "a,b", (0.02, 0.3), problem=problem)
    assert np.max(np.abs(curve["u"] + np.sqrt(8 * curve["a,b"]))) < 1e-9
    trivial = follow(problem, {"m": 0.0}, "a,b", (-1.0, 1.0), u=1.0, v=1.0)
    point = next(e for e in trivial.events if e.kind == "pitchfork")
    curve = branch_point_curve(point, "u", (0.5, 2.0), problem=problem)
    assert np.max(np.abs(curve["a,b"])) < 1e-12
    # m^2 = 2a - b = a where m^2 solves a + b + u m^2 + v m^4 = 0: a = -u - 2 at a = b
    start = solve(problem, {"a,b": 0.9, "u": -3.0}, {"m": 1.0})
    found = root(problem, difference_of("square", "level"), {"u": -3.0}, "a,b", (0.8, 1.1),
                 start=start, guess=0.9)  # fmt: skip
    assert found.value == pytest.approx(1.0, abs=1e-7) and found.params == {"u": -3.0, "v": 1.0}
    line = observable_curve(found, "u", (-3.2, -2.8), observables=("square", "level"),
                            problem=problem)  # fmt: skip
    assert np.max(np.abs(line["a,b"] + line["u"] + 2)) < 1e-9


# --- mistakes


def test_mistakes_are_named(problem, pair):
    with pytest.raises(ParameterError, match=r"'vv'.*did you mean 'v'"):
        follow(problem, {"m": 1.0}, "a,vv", (0.0, 0.1))
    with pytest.raises(ParameterError, match="a is followed"):
        follow(problem, {"m": 1.0}, "a,b", (0.0, 0.1), a=0.1)
    found = crossing(*pair, {"u": -1.0, "b": 0.1}, "a", (0.001, 0.3))
    with pytest.raises(ParameterError, match="u = -1, v = 1"):
        phase_boundary(found, "u,v", (-1, 1))
    with pytest.raises(ParameterError, match=r"unknown parameter 'vv'.*did you mean 'v'"):
        phase_boundary(found, "vv", (-1, 1))
    start = solve(problem, {"a,b": 0.9, "u": -3.0}, {"m": 1.0})
    at = root(problem, difference_of("square", "level"), {"u": -3.0}, "a,b", (0.8, 1.1),
              start=start, guess=0.9)  # fmt: skip
    for second, why in (("vv", "did you mean 'v'"), ("a,u", "differ|both")):
        with pytest.raises(ParameterError, match=why):
            observable_curve(at, second, (-4, 4), observables=("square", "level"),
                             problem=problem)  # fmt: skip


# --- sweeps


def test_a_sweep_over_a_joint_parameter_equals_its_points():
    values = [0.02, 0.05]
    grid = Grid({("a", "b"): values, "u": [-1.0, -0.9]})
    assert grid.dims == ("a,b", "u") and grid.parameters == ("a", "b", "u")
    assert next(iter(grid)) == {"a": 0.02, "b": 0.02, "u": -1.0}
    found = sweep(split, grid, ["ordered"], accuracy=1e-12, workers=1)
    points = Points([{"a,b": x, "u": w} for x in values for w in (-1.0, -0.9)])
    listed = sweep(split, points, ["ordered"], accuracy=1e-12, workers=1)
    assert list(found.outcomes) == list(listed.outcomes)
    exact = [(1 + math.sqrt(1 - 8 * x)) / 2 for x in values]
    assert found.array("m")[:, 0] ** 2 == pytest.approx(exact, abs=1e-10)
    data = found.to_xarray()
    assert data["m"].dims == ("a,b", "u", "branch") and "a" not in data.attrs
    with pytest.raises(ParameterError, match="a is given twice"):
        Grid({"a,b": [1.0], "a": [2.0]})
    with pytest.raises(ParameterError, match="a is given twice"):
        sweep(split, grid, params={"a": 0.1}, workers=1)


# --- the command line


@pytest.fixture
def run(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "split.py").write_text(MODEL)

    def call(command, *arguments):
        with pytest.raises(SystemExit) as caught:
            main([command, "split.py:split", *arguments])
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return call


def test_commands_take_joint_names(run):
    code, out, _ = run("solve", "--branch", "ordered", "--set", "a,b=0.05", "--json")
    assert code == 0
    assert json.loads(out)["parameters"] == {"a": 0.05, "b": 0.05, "u": -1.0, "v": 1.0}
    code, out, _ = run("transition", "--over", "a,b=0.01:0.3", "--json")
    assert json.loads(out)["a,b_c"] == pytest.approx(3 / 32, abs=1e-9)
    code, out, _ = run("branch", "--branch", "ordered", "--over", "a,b=-0.2:0.3", "--json",
                       "--csv", "b.csv", "--out", "b.nc", "--plot", "b.png")  # fmt: skip
    events = {e["kind"]: e["value"] for e in json.loads(out)["events"]}
    assert code == 0 and events["fold"] == pytest.approx(0.125, abs=1e-13)
    code, out, _ = run("diagram", "--over", "a,b=-0.2:0.2", "--json", "--plot", "d.png")
    assert {e["kind"] for e in json.loads(out)["events"]} == {"first-order", "fold", "pitchfork"}
    code, out, _ = run("boundary", "--along", "a,b=0.02:0.2", "--plot", "l.png", "--csv", "l.csv")
    assert code == 0 and "first-order transition in u along a,b" in out
    code, out, _ = run("sweep", "--over", "a,b=0.01:0.05:3", "--over", "u=-1:-0.5:2", "--workers",
                       "1", "--plot", "s.png", "--map", "m:ordered", "--json")  # fmt: skip
    assert code == 0 and json.loads(out)["failed"] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "--set", "a,b=0.1", "--set", "b=0.2"], "b is given twice"),
        (["branch", "--over", "a,b=0:1", "--set", "a=0.1"], "a is given twice"),
        (["branch", "--over", "a,a=0:1"], "a is named twice"),
        (["branch", "--over", "a,=0:1"], "not the name of a parameter"),
        (["diagram", "--over", "a,w=0:1"], "unknown parameter 'w'"),
        (["boundary", "--over", "a=0:1", "--along", "a,b=0:1"], "a is both"),
        (["sweep", "--over", "a,b=0:1:3", "--over", "b=0:1:3"], "b is given twice"),
        (["transition", "--over", "a,b=0:1", "--set", "b=0.1"], "b is given twice"),
    ],
)
def test_mistakes_on_the_command_line(run, arguments, message):
    code, _, err = run(*arguments)
    assert code == 2 and message in " ".join(err.split())


# --- a symmetry that needs both


def test_attention_with_its_diagonal_moved(attention_model, semantic):
    start = solve(semantic, {"alpha": 1.5}, accuracy=1e-5)
    branch = follow(semantic, start, "A11,A22", (0.6, 0.7), stability=False)
    last = branch.points[-1]
    assert branch.status is Status.REACHED_BOUND
    assert last.params["A11"] == last.params["A22"] == 0.7
    alone = solve(semantic, {"alpha": 1.5, "A11": 0.7, "A22": 0.7}, accuracy=1e-6)
    for name in semantic.unknowns:
        assert last[name] == pytest.approx(alone[name], rel=3e-4)
    assert abs(last.energy - alone.energy) <= last.energy_error + alone.energy_error
    # one entry alone needs the order parameters of both tokens apart
    with pytest.raises(AnsatzError, match="move the parameters together"):
        follow(semantic, start, "A11", (0.6, 0.7))
    with pytest.raises(AnsatzError, match="move the parameters together"):
        crossing(semantic, semantic, {}, "A11", (0.6, 0.7))
    assert "exchange" not in [a.name for a in compiled(attention_model, moving=["A11"])._ansaetze]
    both = compiled(attention_model, moving=["A11,A22"])
    assert "exchange" in [a.name for a in both._ansaetze]
    # by symmetry each entry does half of it
    apart = compiled(attention_model, "semantic", {}, ["A11"])
    there = solve(apart, {"alpha": 1.5}, start, accuracy=1e-6)
    whole = solve(semantic, {"alpha": 1.5}, start, accuracy=1e-6)
    assert there.energy == pytest.approx(whole.energy, abs=1e-8)
    assert 2 * slope(there.gradient, "A11") == pytest.approx(slope(whole.gradient, "A11,A22"),
                                                             rel=1e-3)  # fmt: skip
