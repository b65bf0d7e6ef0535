"""Lines in two parameters: phase boundaries, spinodals, branch points and their special points."""

import json
import math

import numpy as np
import pytest
import sympy as sp

import theory
from numerics import PlainProblem, Status
from numerics.branches import compiled
from numerics.continuation import (
    branch_point_curve,
    crossing,
    fold_curve,
    follow,
    phase_boundary,
)
from numerics.problem import Problem
from theory.errors import ParameterError
from theory.models import get


def line(name, parameter, over, second, along, bounds=None, between=None, **fixed):
    model = get(name)
    system = theory.derive(model)
    pair = [system.compile(branch=b) for b in between or model.transition["between"]]
    first = crossing(*pair, fixed, parameter, over, accuracy=1e-12)
    assert first.status is Status.CONVERGED
    return phase_boundary(first, second, along, over=bounds)


def reasons(boundary):
    return [e["reason"] for e in boundary.ends]


def near(end, name, value):
    """The extrapolated end is right within its error, and the error is small."""
    assert abs(end["values"][name] - value) <= end["errors"][name]
    assert end["errors"][name] < 1e-6


def test_landau_against_the_closed_formula():
    found = line("landau", "r", (0.01, 0.5), "u", (-2.0, 0.5), u=-1.0, v=1.0)
    exact = 3 * found["u"] ** 2 / 16
    assert np.max(np.abs(found["r"] - exact)) < 1e-9
    assert np.all(np.abs(found["r"] - exact) <= found.errors + 1e-16)
    assert reasons(found) == [Status.REACHED_BOUND, Status.TRICRITICAL_END]
    near(found.ends[1], "u", 0.0)
    near(found.ends[1], "r", 0.0)
    assert found["u"][0] == -2.0 and np.nanmax([p.mismatch for p in found.points]) < 1e-3
    for point in found.points[:10]:
        assert point.states["ordered"]["m"] ** 2 == pytest.approx(-0.75 * point.values["u"])


def test_blume_capel_up_to_the_tricritical_point():
    found = line("blume-capel", "D", (0.3, 0.6), "T", (0.1, 0.5), T=0.25)
    assert reasons(found) == [Status.REACHED_BOUND, Status.TRICRITICAL_END]
    near(found.ends[1], "T", 1 / 3)
    near(found.ends[1], "D", 2 / 3 * math.log(2))
    again = line("blume-capel", "D", (0.3, 0.6), "T", (0.1, 0.5), T=0.2)
    assert np.interp(0.3, again["T"], again["D"]) == pytest.approx(
        np.interp(0.3, found["T"], found["D"]), abs=1e-4
    )


def test_potts_from_ten_colours_to_two():
    found = line("potts", "K", (4.0, 6.0), "q", (1.9, 10.0), q=9.0)
    q = found["q"]
    exact = 2 * (q - 1) / (q - 2) * np.log(q - 1)
    assert np.max(np.abs(found["K"] - exact) / exact) < 1e-9
    end = found.ends[0]
    assert end["reason"] is Status.CRITICAL_END
    near(end, "q", 2.0)
    near(end, "K", 2.0)


def test_curie_weiss_coexistence_is_at_zero_field():
    found = line("curie-weiss", "h", (-0.2, 0.2), "T", (0.3, 1.2), T=0.5, h=0.01)
    assert np.max(np.abs(found["h"])) < 1e-12
    assert found.ends[1]["reason"] is Status.CRITICAL_END
    near(found.ends[1], "T", 1.0)


def test_van_der_waals_close_to_the_critical_point():
    found = line("van-der-waals", "p", (0.5, 0.75), "T", (0.7, 0.999), T=0.9)
    assert reasons(found) == [Status.REACHED_BOUND, Status.REACHED_BOUND]
    assert found["T"][-1] == 0.999 and found["p"][-1] == pytest.approx(0.996006, abs=1e-5)
    for point in found.points:
        p, T = point.values["p"], point.values["T"]
        liquid, gas = sorted(s["v"] for s in point.states.values())
        assert gas - liquid > 0.1
        for v in (liquid, gas):
            assert 8 * T / (3 * v - 1) - 3 / v**2 == pytest.approx(p, abs=1e-9)
        areas = [p * v - 8 * T / 3 * math.log(3 * v - 1) - 3 / v for v in (liquid, gas)]
        assert areas[0] == pytest.approx(areas[1], abs=1e-10)
    on = line("van-der-waals", "p", (0.5, 0.75), "T", (0.7, 1.2), T=0.9)
    near(on.ends[1], "T", 1.0)
    near(on.ends[1], "p", 1.0)


def test_bounds_on_both_parameters():
    found = line("landau", "r", (0.01, 0.5), "u", (-2.0, 0.5), bounds=(0.05, 0.4), u=-1.0)
    assert reasons(found) == [Status.REACHED_BOUND, Status.REACHED_BOUND]
    assert sorted(found["r"][[0, -1]]) == [0.05, 0.4]


def test_stop_and_wrong_questions():
    model = get("landau")
    pair = [theory.derive(model).compile(branch=b) for b in ("ordered", "disordered")]
    first = crossing(*pair, {"u": -1.0}, "r", (0.01, 0.5), accuracy=1e-12)
    found = phase_boundary(first, "u", (-2, 0.5), callback=lambda news: news["u"] > -1.2)
    assert Status.USER_STOP in reasons(found) and len(found) > 2
    with pytest.raises(ParameterError, match="others are: u, v"):
        phase_boundary(first, "w", (0, 1))
    with pytest.raises(ParameterError, match="outside"):
        phase_boundary(first, "u", (-0.5, 0.5))
    none = crossing(*pair, {"u": -1.0}, "r", (0.01, 0.1))
    with pytest.raises(ParameterError, match="converged transition"):
        phase_boundary(none, "u", (-2, 0.5))
    data = json.loads(json.dumps(found.to_dict(), default=str))
    assert {"r", "u", "error", "clapeyron_mismatch", "states"} <= set(data["points"][0])
    assert len(data["end_reason"]) == 2


def test_a_line_that_ends_at_a_spinodal():
    """V' = (x+1)(x-e)((x-1)^2+p)(x-2): the minimum near 1 is gone for p > 0, whatever e."""

    def slope(p):
        square = np.poly1d([1.0, -2.0, 1.0 + p["p"]])
        return np.poly1d([1.0, 1.0]) * np.poly1d([1.0, -p["e"]]) * square * np.poly1d([1.0, -2.0])

    def problem(start):
        return PlainProblem(
            lambda u, p: np.array([slope(p)(u[0])]), ["x"], {"e": 0.1, "p": -0.2},
            energy=lambda u, p: slope(p).integ()(u[0]), form="gradient", starts=[[start]],
            jacobian=lambda u, p: np.array([[slope(p).deriv()(u[0])]]),
        )  # fmt: skip

    pair = problem(-1.0), problem(1 - 0.2**0.5)
    first = crossing(*pair, {"p": -0.2}, "e", (-0.9, 0.5), accuracy=1e-10)
    assert first.status is Status.CONVERGED
    found = phase_boundary(first, "p", (-0.3, 0.3))
    end = found.ends[1]
    assert end["reason"] is Status.SPINODAL_END
    assert abs(end["values"]["p"]) <= end["errors"]["p"] < 1e-3
    # there V(-1) = V(1): the integral of (x+1)(x-e)(x-1)^2(x-2) from -1 to 1 vanishes
    constant, linear = (
        np.polyval(np.polyint(np.poly(roots)), [-1, 1]) @ [-1, 1]
        for roots in ([-1, 0, 1, 1, 2], [-1, 1, 1, 2])
    )
    assert end["values"]["e"] == pytest.approx(constant / linear, abs=1e-3)


x, lam, mu = sp.symbols("x lam mu", real=True)


@pytest.fixture(scope="module")
def cusp() -> Problem:
    return theory.derive(
        theory.FreeEnergy(x**4 / 4 - lam * x**2 / 2 - mu * x, [x], [lam, mu])
    ).compile()


def test_fold_curve_and_its_cusp(cusp):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0)
    fold = branch.events[0]
    curve = fold_curve(fold, "lam", (-1.0, 2.0), problem=cusp)
    assert np.max(np.abs(np.abs(curve["mu"]) - 2 * (curve["lam"] / 3) ** 1.5)) < 1e-10
    assert curve.ends == [Status.REACHED_BOUND, Status.REACHED_BOUND]
    (special,) = curve.special
    assert special.kind == "cusp"
    for name in ("lam", "mu"):
        assert abs(special.values[name]) <= max(special.errors[name], 1e-12)
    assert curve.to_dict()["special"][0]["kind"] == "cusp"


def test_spinodals_of_blume_capel_meet_at_the_tricritical_point():
    problem = theory.derive(get("blume-capel")).compile()
    trivial = follow(problem, {"m": 0.0}, "D", (0.3, 0.6), T=0.25)
    branch_points = branch_point_curve(trivial.events[0], "T", (0.1, 0.6), problem=problem)
    ordered = follow(problem, {"m": 0.99}, "D", (0.3, 0.6), T=0.25)
    fold = next(e for e in ordered.events if e.kind == "fold")
    folds = fold_curve(fold, "T", (0.1, 0.6), problem=problem)
    for curve in (branch_points, folds):
        (special,) = curve.special
        assert special.kind == "tricritical"
        for name, exact in (("T", 1 / 3), ("D", 2 / 3 * math.log(2))):
            assert abs(special.values[name] - exact) <= special.errors[name] < 1e-6
    assert folds.ends == [Status.REACHED_BOUND, Status.TRICRITICAL_END]
    # J(m = 0) = 0: D = T ln(2 (1 - T) / T)
    T = branch_points["T"]
    assert np.max(np.abs(branch_points["D"] - T * np.log(2 * (1 - T) / T))) < 1e-10


def test_fold_curve_of_curie_weiss_against_the_formula():
    problem = theory.derive(get("curie-weiss")).compile()
    branch = follow(problem, {"m": -0.9}, "h", (-0.5, 0.5), T=0.5)
    curve = fold_curve(branch.events[0], "T", (0.2, 1.1), problem=problem)
    m = np.sqrt(1 - curve["T"])
    exact = curve["T"] * np.arctanh(m) - m
    assert np.max(np.abs(np.abs(curve["h"]) - np.abs(exact))) < 1e-9
    (special,) = curve.special
    assert special.kind == "cusp" and special.values["T"] == pytest.approx(1.0, abs=1e-8)


def test_curves_ask_for_the_right_event(cusp):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0)
    with pytest.raises(ParameterError, match="branch points starts from one"):
        branch_point_curve(branch.events[0], "lam", (-1, 2), problem=cusp)
    with pytest.raises(ParameterError, match="starts from a fold"):
        fold_curve(branch.events[-1], "lam", (-1, 2), problem=cusp)
    with pytest.raises(ParameterError, match="unknown parameter"):
        fold_curve(branch.events[0], "nu", (-1, 2), problem=cusp)
    with pytest.raises(ParameterError, match="outside"):
        fold_curve(branch.events[0], "lam", (1.5, 2), problem=cusp)


def test_a_line_between_two_kinds_of_order_ends_in_a_bicritical_point():
    r, u, m, n, q = sp.symbols("r u m n q", real=True)
    s = r / 2 + sp.Rational(3, 10) * u
    model = theory.FreeEnergy(
        r * m**2 / 2 + s * n**2 / 2 + (m**4 + n**4) / 4 + m**2 * n**2 + (q - u) ** 2 / 2,
        unknowns=[m, n, q],
        parameters=[theory.Parameter(r, -0.6), theory.Parameter(u, -1.0)],
        mirrors=[[m], [n]],
        branches={
            "first": theory.Ansatz("first", {n: 0}),
            "second": theory.Ansatz("second", {m: 0}),
            "disordered": theory.Ansatz("disordered", {m: 0, n: 0}),
        },
        starts={
            "first": {m: 1, q: -1},
            "second": {n: 1, q: -1},
            "disordered": {q: -1},
            "": {m: 1, n: 1, q: -1},
        },
    )
    problems = [compiled(model, name) for name in ("first", "second")]
    first = crossing(*problems, {"u": -1.0}, "r", (-2.0, -0.1), guess=-0.5)
    assert first.value == pytest.approx(-0.6, abs=1e-12)
    found = phase_boundary(first, "u", (-1.5, 1.0))
    assert np.all(np.abs(found["r"] - 0.6 * found["u"]) <= found.errors + 1e-14)
    assert reasons(found) == [Status.REACHED_BOUND, Status.BICRITICAL_END]
    values, errors = found.ends[1]["values"], found.ends[1]["errors"]
    assert all(abs(values[k]) <= errors[k] + 1e-12 and errors[k] < 1e-9 for k in ("r", "u"))


@pytest.mark.slow
def test_attention_line_is_refined_to_the_accuracy_asked_for():
    model = get("attention")
    problems = [compiled(model, name) for name in ("positional", "semantic")]
    first = crossing(*problems, {"omega": 0.3}, "alpha", (0.3, 10), accuracy=1e-5)
    found = phase_boundary(first, "omega", (0.28, 0.32), over=(0.3, 10))
    assert reasons(found) == [Status.REACHED_BOUND] * 2
    assert np.all(found.errors < 1.5e-5 * np.maximum(found["alpha"], 1.0))
    assert np.nanmax([p.mismatch for p in found.points]) < 1e-3
    for place in (0, -1):
        omega = float(found["omega"][place])
        own = crossing(*problems, {"omega": omega}, "alpha", (0.3, 10), accuracy=1e-6)
        assert abs(own.value - found["alpha"][place]) <= own.error + found.errors[place]


@pytest.mark.slow
def test_attention_line_along_sigma_ends_where_both_branches_are_born():
    model = get("attention")
    problems = [compiled(model, name) for name in ("positional", "semantic")]
    first = crossing(
        *problems, {"omega": 0.3, "sigma": 0.57}, "alpha", (0.3, 10), guess=0.74, accuracy=1e-5
    )
    found = phase_boundary(first, "sigma", (0.569, 0.8), over=(0.3, 10), accuracy=1e-4)
    assert reasons(found)[1] is Status.BICRITICAL_END
    values, errors = found.ends[1]["values"], found.ends[1]["errors"]
    # 0.586944, 0.683702: known from a finer run
    assert abs(values["sigma"] - 0.586944) <= errors["sigma"] + 2e-5 and errors["sigma"] < 1e-3
    assert abs(values["alpha"] - 0.683702) <= errors["alpha"] + 6e-5 and errors["alpha"] < 1e-3
