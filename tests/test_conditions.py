"""Transverse stability, diagnostics, and curves on which a condition holds."""

import math

import numpy as np
import pytest
import sympy as sp

import theory
from numerics import PlainProblem, continuation, solve
from numerics.branches import compiled, locate
from numerics.continuation import root
from numerics.continuation.root import difference_of
from numerics.continuation.stability import embed, softest, whole
from numerics.status import Status
from theory.errors import ParameterError
from theory.nodes import GaussianExpectation, Moreau

a, b, m, q = sp.symbols("a b m q", real=True)


@pytest.fixture(scope="module")
def symmetric():
    """m = 0 of a Landau energy: q = b, softening at a = -b; b is not negative."""
    model = theory.FreeEnergy(
        a * m**2 / 2 + m**4 / 4 + (q - b) ** 2 / 2 + q * m**2 / 2,
        unknowns=[m, q],
        parameters=[a, theory.Parameter(b, 0.5, 0.0, 3.0)],
        mirrors=[[m]],
        branches={"symmetric": theory.Ansatz("symmetric", {m: 0})},
        observables={"square": q**2, "level": a},
    )
    return theory.derive(model).compile(branch="symmetric")


def test_transverse_rate_is_the_curvature_in_what_vanishes(symmetric):
    names, matrix, errors = symmetric.transverse(np.array([0.5]), {"a": -0.2, "b": 0.5}, 1e-10)
    assert names == ("m",)
    assert abs(matrix[0, 0] - 0.3) <= errors[0, 0] < 1e-12


def test_line_of_pitchforks_is_exact_and_reaches_the_edge_of_the_domain(symmetric):
    branch = continuation.follow(symmetric, {"q": 0.5}, "a", (-2.0, 1.0), b=0.5)
    (event,) = (e for e in branch.events if e.kind == "pitchfork")
    line = continuation.branch_point_curve(event, "b", (0.0, 1.0), problem=symmetric, over=(-2, 2))
    assert np.all(np.abs(line["a"] + line["b"]) <= line.errors)
    assert np.max(line.errors) < 1e-12
    assert line["b"].min() == 0.0 and line["b"].max() == 1.0
    assert line.ends == [Status.REACHED_BOUND] * 2


def test_line_of_equal_observables_is_exact(symmetric):
    found = root(symmetric, difference_of("square", "level"), {"b": 0.5}, "a", (0.01, 2.0))
    assert found.value == pytest.approx(0.25, abs=1e-12)
    line = continuation.observable_curve(
        found, "b", (0.0, 1.5), observables=("square", "level"), problem=symmetric, over=(-1, 1)
    )
    assert np.all(np.abs(line["a"] - line["b"] ** 2) <= line.errors)
    assert line["b"].min() == 0.0 and line["a"].max() == 1.0
    row = line.to_dict()["points"][0]
    assert set(row) == {"a", "b", "state", "residual", "error"}


def test_condition_curves_refuse_what_they_cannot_start_from(symmetric):
    found = root(symmetric, difference_of("square", "level"), {"b": 0.5}, "a", (0.01, 2.0))
    with pytest.raises(ParameterError, match="no observable 'nothing'"):
        continuation.observable_curve(
            found, "b", (0, 1), observables=("square", "nothing"), problem=symmetric
        )
    with pytest.raises(ParameterError, match="outside"):
        continuation.observable_curve(
            found, "b", (1, 2), observables=("square", "level"), problem=symmetric
        )


def test_slope_of_the_proximal_point_as_a_diagnostic():
    """Quadratic loss: H - W = V (Y - W)/(1 + V), so that (H - W)/V falls at 1/(1 + V)."""
    alpha, q_, V, qhat, Vhat = sp.symbols("alpha q V qhat Vhat", positive=True)
    H, W, Y = sp.symbols("H W Y", real=True)
    envelope = Moreau((H - Y) ** 2 / 2, [H], [W], sp.Matrix([[V]]))

    def expectation(f):
        return GaussianExpectation(f, [W, Y], [0, 0], sp.Matrix([[q_, 0], [0, 1]]))

    model = theory.FreeEnergy(
        alpha * expectation(envelope)
        + (qhat * V - Vhat * q_) / 2
        - qhat / (2 * (sp.Rational(1, 10) + Vhat)),
        unknowns=[q_, V],
        conjugates=[qhat, Vhat],
        parameters=[alpha],
        domain=[V, q_],
        diagnostics={"slope": expectation(envelope.slope(0, 0))},
        starts={"": {q_: sp.Rational(1, 2), V: 1}},
        plan=theory.plan.TensorPlan(),
    )
    problem = theory.derive(model).compile()
    state = solve(problem, {"alpha": 2.0})
    values, errors = problem.diagnostics(state.x, {"alpha": 2.0}, 1e-10)
    assert abs(values["slope"] + 1 / (1 + state["V"])) <= errors["slope"] < 1e-8


@pytest.mark.parametrize(("name", "alpha"), [("semantic", 1.25), ("positional", 1.25)])
def test_transverse_jacobian_against_differences_of_the_whole_problem(name, alpha):
    """Derivatives moved to the density agree with differences, jumps included."""
    problem = compiled(theory.models.get("attention"), name)
    params = {"alpha": alpha, "omega": 0.3}
    state = locate(problem, params, accuracy=1e-4, refine=False)
    names, matrix, errors = problem.transverse(state.x, state.params, 1e-5)
    full = whole(problem)
    x = embed(problem, state.x)
    for j, y in enumerate(names):
        h = 0.01 * full.scale(x, state.params)[full.unknowns.index(y)]
        ahead = x.copy()
        ahead[full.unknowns.index(y)] += h
        # odd in what vanishes: one difference is enough
        slope = full.residual(ahead, state.params, 1e-5) / h
        for i, z in enumerate(names):
            assert matrix[i, j] == pytest.approx(
                slope[full.unknowns.index(z)], abs=2e-3 * max(1, abs(matrix[i, j])) + errors[i, j]
            )


@pytest.mark.slow
@pytest.mark.parametrize(("guess", "known", "doubt"), [(0.06, 0.05742, 2e-5), (0.72, 0.7192, 1e-4)])
def test_births_of_the_positional_and_the_semantic_branch(guess, known, doubt):
    problem = compiled(theory.models.get("attention"), "agnostic")
    found = root(
        problem, softest(problem, 1e-5), {"omega": 0.3}, "alpha", (0.02, 2.0), guess=guess,
        accuracy=1e-5,
    )  # fmt: skip
    assert found.status is Status.CONVERGED
    assert abs(found.value - known) <= found.error + doubt


@pytest.mark.parametrize("name", ["semantic", "positional"])
def test_replicon_and_jump_measure_carry_honest_errors(name):
    problem = compiled(theory.models.get("attention"), name)
    state = locate(problem, {"alpha": 2.0, "omega": 0.3}, accuracy=1e-4, refine=False)
    rough, fine = (problem.diagnostics(state.x, state.params, acc) for acc in (1e-3, 1e-5))
    for key in ("replicon", "jump_measure"):
        assert abs(rough[0][key] - fine[0][key]) <= rough[1][key] + fine[1][key]
    # response jumps take back: hardly any where the branch is far from its end
    assert bool(fine[0]["jump_measure"] < 1e-3) == (name == "semantic")


@pytest.mark.parametrize("error", [math.inf, math.nan, 1e-9])
@pytest.mark.parametrize(
    ("exact", "span", "guess"), [(2.0, (0.1, 9.0), 0.5), (-2.0, (-9.0, -0.1), -8.0)]
)
def test_a_root_converges_without_a_known_error(error, exact, span, guess):
    """The function is far from linear: the first slope alone leads nowhere."""
    problem = PlainProblem(lambda x, p: x - p["s"], ["x"], {"s": 1.0})
    found = root(
        problem, lambda s: (s["x"] ** 5 - exact**5, error), {}, "s", span, guess=guess,
        accuracy=1e-9,
    )  # fmt: skip
    assert found.status is Status.CONVERGED and found.value == pytest.approx(exact, abs=1e-8)
    assert (found.error < 1e-7) == (error == 1e-9)


def test_a_root_at_zero():
    problem = PlainProblem(lambda x, p: x - p["s"], ["x"], {"s": 1.0})
    found = root(problem, lambda s: (s["x"] + s["x"] ** 3, 1e-9), {}, "s", (-3.0, 3.0),
                 accuracy=1e-12)  # fmt: skip
    assert found.status is Status.CONVERGED and abs(found.value) <= found.error
