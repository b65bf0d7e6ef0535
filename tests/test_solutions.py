"""Known values first, then identities that hold at every solution."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import theory
from numerics import solve
from numerics.branches import compiled, locate
from numerics.continuation import crossing, follow, root
from numerics.continuation.root import difference_of
from numerics.first_order import find_transition
from numerics.solvers import solve_all
from numerics.status import Status
from theory.models import get


@pytest.mark.parametrize(("omega", "alpha_c"), [(0.3, 1.2515356), (0.5, 2.8597657)])
def test_first_order_transition(attention_model, omega, alpha_c):
    found = find_transition(attention_model, {"omega": omega}, accuracy=1e-6)
    assert found.status is Status.CONVERGED
    assert abs(found.value - alpha_c) < 1e-6 + 2e-7
    assert abs(found.value - alpha_c) <= found.error + 2e-7
    assert found.error < 1e-5


def test_states_at_the_transition(positional, semantic):
    at = {"alpha": 1.2515356, "omega": 0.3}
    s = locate(semantic, at, accuracy=1e-6)
    p = locate(positional, at, accuracy=1e-6)
    assert s["q"] == pytest.approx(0.08170436, abs=2e-8 + s.errors["q"])
    assert s["V"] == pytest.approx(18.304845, abs=2e-6 + s.errors["V"])
    assert s["theta"] == pytest.approx(0.11804349, abs=2e-8 + s.errors["theta"])
    assert p["q"] == pytest.approx(0.04711876, abs=8e-8 + p.errors["q"])
    assert p["V"] == pytest.approx(14.894824, abs=7e-6 + p.errors["V"])
    assert p["m"] == pytest.approx(0.25242916, abs=1.5e-7 + p.errors["m"])
    for state in (s, p):
        assert state.energy == pytest.approx(0.0027232656, abs=2e-10 + state.energy_error)
        assert state.energy_error < 1e-6 * state.energy * 2


def test_linear_baseline(semantic):
    state = locate(semantic, {"alpha": 1.5, "omega": 0.3}, accuracy=1e-4)
    assert 2 * state["baseline_error"] == pytest.approx(0.49 * 0.0080464667, rel=1e-8)
    assert state["baseline_B11"] == pytest.approx(0.5699024305, abs=1e-10)


def test_semantic_error_falls_below_the_baseline(semantic):
    found = root(
        semantic, difference_of("test_error", "baseline_error"), {"omega": 0.3}, guess=1.5,
        accuracy=1e-6,
    )  # fmt: skip
    assert found.status is Status.CONVERGED
    assert abs(found.value - 1.49227) < 1e-5
    assert found.error < 1e-5


def test_semantic_is_born_at_the_pitchfork(semantic):
    below = locate(semantic, {"alpha": 0.6, "omega": 0.3}, accuracy=1e-4)
    above = locate(semantic, {"alpha": 0.75, "omega": 0.3}, accuracy=1e-4)
    assert below.kind == "agnostic" and abs(below["theta"]) < 1e-4
    assert above.kind == "semantic" and above["theta"] > 0.03


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    st.floats(1.0, 2.5), st.floats(0.2, 0.5), st.floats(0.45, 0.55), st.sampled_from([0.006, 0.02]),
    st.sampled_from(["semantic", "positional"]),
)  # fmt: skip
def test_identities_at_solutions(alpha, omega, sigma, ridge, branch):
    problem = compiled(get_attention(), branch)
    params = {"alpha": alpha, "omega": omega, "sigma": sigma, "lambda": ridge}
    s = locate(problem, params, accuracy=1e-4, raise_on_failure=False)
    assert s.status.usable
    # the energy is loss plus regulariser, and the norm is q / sigma^2
    assert s.energy == pytest.approx(s["training_loss"] + s["regulariser"], rel=2e-4)
    assert s["norm"] == pytest.approx(s["q"] / sigma**2, rel=5e-4)
    # envelope theorem
    assert s.gradient["lambda"] == pytest.approx(s["norm"] / 2, rel=1e-10)
    # stationarity: the energy does not feel the order parameters to first order
    for k, name in enumerate(problem.unknowns):
        moved = s.x.copy()
        step = 1e-3 * problem.scale(s.x, params)[k]
        energies = []
        for sign in (1, -1):
            moved[k] = s.x[k] + sign * step
            energies.append(problem.energy(moved, params, 1e-4))
        assert abs(energies[0] - energies[1]) < 2e-5 * s.energy, name


def get_attention(cache=[]):  # noqa: B006
    if not cache:
        cache.append(get("attention"))
    return cache[0]


def test_envelope_theorem_in_alpha(semantic):
    h = 0.005
    a, b, c = (
        locate(semantic, {"alpha": 1.5 + k * h, "omega": 0.3}, accuracy=1e-5, refine=False)
        for k in (-1, 0, 1)
    )
    slope = (c.energy - a.energy) / (2 * h)
    # the quadrature errors of the energies, and the third derivative of the difference quotient
    allowed = (a.energy_error + c.energy_error) / (2 * h) + 1e-6
    assert abs(slope - b.gradient["alpha"]) < allowed
    assert allowed < 0.02 * slope


def test_mirror_images_leave_the_energy(full):
    x = np.array([{"q": 0.08, "V": 15.0, "m": 0.1, "theta": 0.08}[u] for u in full.unknowns])
    energies = []
    for flip in ("", "m", "theta"):
        y = x.copy()
        if flip:
            y[full.unknowns.index(flip)] *= -1
        energies.append(full.energy(y, {}, 1e-4))
    assert energies[1] == pytest.approx(energies[0], rel=1e-5)
    assert energies[2] == pytest.approx(energies[0], rel=1e-5)
    assert full.classify(x) == "mixed"
    np.testing.assert_array_equal(
        full.canonical(-x * [1, -1, 1, 1]), full.canonical(-x * [1, -1, -1, 1])
    )


def test_unequal_rows_of_A(attention_model):
    params = {"A11": 0.3, "A22": 0.8, "alpha": 1.5}
    problem = compiled(attention_model, "semantic", params)
    state = locate(problem, params, accuracy=1e-4)
    assert state.kind == "semantic" and state.status.usable
    assert state.energy == pytest.approx(state["training_loss"] + state["regulariser"], rel=2e-4)
    hats = problem.conjugate_values(state.x, params)
    assert {"qhat_1", "qhat_2"} <= set(hats)


def test_damped_iteration_is_honest(positional):
    state = solve(positional, {"alpha": 1.5}, method="damped", accuracy=1e-4, tolerance=1e-4,
                  refine=False)  # fmt: skip
    newton = solve(positional, {"alpha": 1.5}, method="newton", accuracy=1e-4, refine=False)
    assert state["m"] == pytest.approx(newton["m"], rel=1e-3)


def test_ridge_regression_closed_form():
    """Regularised least squares: V solves V (lambda + alpha/(1+V)) = 1."""
    problem = theory.derive(get("ridge")).compile()
    for alpha in (0.5, 1.0, 3.0):
        for lam in (0.05, 1.0):
            noise = 0.2
            s = solve(problem, {"alpha": alpha, "lambda": lam, "Delta": noise}, accuracy=1e-9)
            b = lam + alpha - 1
            V = (-b + math.sqrt(b * b + 4 * lam)) / (2 * lam)
            vhat = alpha / (1 + V)
            theta = vhat / (lam + vhat)
            # q = theta^2 + alpha (1 + Delta - 2 theta + q) V^2/(1+V)^2
            k = alpha * V**2 / (1 + V) ** 2
            q = (theta**2 + k * (1 + noise - 2 * theta)) / (1 - k)
            assert s["V"] == pytest.approx(V, rel=1e-8)
            assert s["theta"] == pytest.approx(theta, rel=1e-8)
            assert s["q"] == pytest.approx(q, rel=1e-8)
            assert s["test_error"] == pytest.approx((1 + noise - 2 * theta + q) / 2, rel=1e-8)


@pytest.mark.parametrize(
    ("name", "params", "value"),
    [
        ("blume-capel", {"T": 0.25}, 0.476265836632844),
        ("blume-capel", {"T": 0.20}, 0.486701271068090137),
        ("landau", {"u": -1.0, "v": 1.0}, 3 / 16),
        ("curie-weiss", {"T": 0.5}, 0.0),
    ],
)
def test_crossings_of_explicit_models(name, params, value):
    found = find_transition(get(name), params, accuracy=1e-10)
    assert found.status is Status.CONVERGED
    assert found.value == pytest.approx(value, abs=1e-10)


def test_verification_at_thirty_digits(semantic):
    problem = compiled(get("blume-capel"))
    state = solve(problem, {"T": 0.25, "D": 0.45}, [0.9], accuracy=1e-10)
    exact, left = problem.verify(state.x, {"T": 0.25, "D": 0.45})
    assert left < 1e-28
    assert abs(float(exact[0]) - state["m"]) < 1e-9
    with pytest.raises(theory.DerivationError, match="Moreau"):
        semantic.verify([0.1, 10.0, 0.1])


def test_no_crossing_is_an_answer():
    model = get("landau")
    found = find_transition(model, {}, span=(0.0, 0.1))
    assert found.status is Status.NO_CROSSING
    assert "lower" in found.message and math.isnan(found.value)


def test_following_ends_with_a_reason():
    model = get("landau")
    ordered = compiled(model, "ordered")
    start = locate(ordered, {"r": 0.1})
    up = follow(ordered, start, "r", (0.1, 0.5))
    # the ordered branch turns at its spinodal r = 1/4
    fold, bound = up.events
    assert fold.kind == "fold" and fold.value == pytest.approx(0.25, abs=1e-12)
    assert up.status is Status.REACHED_BOUND and bound.value == 0.1 and up.unstable[-1] == 1
    down = follow(ordered, start, "r", (0.1, 0.0))
    assert down.status is Status.REACHED_BOUND


def test_many_starts_find_each_solution_once():
    problem = compiled(get("blume-capel"))
    found = solve_all(problem, {"D": 0.47, "T": 0.25}, [[x] for x in np.linspace(-1, 1, 21)])
    sizes = sorted(s["m"] for s in found)
    assert len(sizes) == 3 and sizes[0] == pytest.approx(0, abs=1e-6)
    assert [s.kind for s in found].count("disordered") == 1


class _Nan:
    """Residuals that are not numbers."""

    name, unknowns, form, branch = "nan", ("x",), "gradient", None

    def values(self, params):
        return dict(params or {})

    def residual(self, x, params=None, accuracy=None):
        return np.array([math.nan])

    def jacobian(self, x, params=None, accuracy=None):
        return np.array([[1.0]])

    def evaluate(self, x, params=None, accuracy=None):
        from numerics.protocol import Evaluation

        return Evaluation(np.array([math.nan]), np.zeros(1), math.nan, 0.0)

    def scale(self, x, params=None):
        return np.ones(1)

    def in_domain(self, x, params=None):
        return True

    def domain_message(self, x, params=None):
        return ""

    def starts(self, params=None):
        return [np.zeros(1)]

    def classify(self, x, params=None, tolerance=1e-4):
        return "solution"

    def canonical(self, x):
        return x


def test_nan_is_not_convergence():
    found = solve(_Nan(), raise_on_failure=False)
    assert found.status is Status.NON_FINITE
    with pytest.raises(theory.ConvergenceError) as caught:
        solve(_Nan())
    assert caught.value.result is not None


def test_bad_starts_are_named(semantic):
    with pytest.raises(theory.ParameterError, match="start has no value for theta"):
        solve(semantic, {}, {"q": 0.1, "V": 10.0})
    with pytest.raises(theory.DomainError, match="must be positive"):
        solve(semantic, {}, {"q": 0.01, "V": 10.0, "theta": 1.0})


def test_every_status_has_a_message():
    for status in Status:
        assert status.message(residual=1e-3)


def test_crossing_needs_both_branches(positional, semantic):
    found = crossing(positional, semantic, {"omega": 0.3}, span=(0.35, 0.5))
    assert found.status in (Status.BRANCH_LOST, Status.LOWER_FROM_BIRTH, Status.NO_CROSSING)
    assert not found.status.success and "semantic" in found.message
