"""Exact Jacobians against differences of much finer rules, and what they save."""

import functools
from collections import Counter

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import theory
from numerics import solve
from numerics.quadrature.nodes import SobolRule
from numerics.solvers.derivatives import parameter_slope, state_jacobian
from theory.models import attention
from theory.models.perceptron import perceptron
from theory.models.ridge import ridge
from theory.nodes import GaussianExpectation, Moreau

STATES = {
    "semantic": ({"alpha": 2.0}, [0.1148, 12.666, 0.1582]),
    "positional": ({"alpha": 1.25}, [0.0471, 14.895, 0.2524]),
    "agnostic": ({"alpha": 0.569}, [0.043, 30.77]),
    "mixed": ({"alpha": 1.25}, [0.0704, 22.24, 0.1319, 0.0584]),
}
FINE = 1e-7


@functools.cache
def compiled(branch, unequal=False):
    rows = {"A11": 0.55, "A22": 0.65} if unequal else {}
    return theory.derive(attention(), values=rows).compile(branch=branch), rows


def differences(function, sizes, h=3e-4):
    """Central differences with respect to each entry of a displacement."""
    columns = []
    for j, size in enumerate(sizes):
        step = np.zeros(len(sizes))
        step[j] = h * size
        columns.append((function(step) - function(-step)) / (2 * h * size))
    return np.column_stack(columns)


def check_state(problem, x, params, accuracy, tolerance, fine=FINE):
    x = np.array(x)
    scale = problem.scale(x, params)
    exact = problem.jacobian(x, params, accuracy)
    wanted = differences(lambda d: problem.residual(x + d, params, fine), scale)
    unit = scale / scale[:, None]
    np.testing.assert_allclose(exact * unit, wanted * unit, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("branch", STATES)
def test_against_differences_of_a_finer_rule(branch):
    problem, _ = compiled(branch)
    params, x = STATES[branch]
    check_state(problem, x, params, 4e-4, 3e-3)
    check_state(problem, x, params, 2e-5, 5e-4)


def test_rows_that_are_not_mirror_images():
    problem, rows = compiled("semantic", unequal=True)
    assert {p for p, _ in problem.module.MISSING} == {0, 1}  # both qhats
    check_state(problem, STATES["semantic"][1], {"alpha": 2.0, **rows}, 1e-4, 2e-3)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(q=st.floats(0.03, 0.3), V=st.floats(3, 40), cosine=st.floats(-0.8, 0.8),
       omega=st.floats(0.1, 0.6))  # fmt: skip
def test_anywhere_on_the_semantic_branch(q, V, cosine, omega):
    problem, _ = compiled("semantic")
    x = [q, V, cosine * 0.5 * np.sqrt(q)]
    check_state(problem, x, {"alpha": 1.5, "omega": omega}, 2e-5, 1e-3)


@pytest.mark.parametrize("name", ["alpha", "lambda", "omega", "sigma"])
@pytest.mark.parametrize("branch", ["semantic", "positional"])
def test_parameters(branch, name):
    problem, _ = compiled(branch)
    params, x = STATES[branch]
    x, values = np.array(x), problem.values(params)
    wanted = differences(
        lambda d: problem.residual(x, {**values, name: values[name] + d[0]}, FINE), [values[name]]
    )[:, 0]
    unit = values[name] / problem.scale(x, params)
    found = parameter_slope(problem, x, values, name, 1e-6)
    np.testing.assert_allclose(found * unit, wanted * unit, rtol=1e-3, atol=1e-3)
    exact = problem.parameter_jacobian(x, params, 1e-4)[:, problem.own_parameters.index(name)]
    # the loss depends on omega and sigma, so that quadratic moments have a surface term
    assert np.all(np.isfinite(exact)) == (name in ("alpha", "lambda"))


def test_smooth_models():
    problem = theory.derive(perceptron()).compile()
    x = np.array([0.6])
    wanted = differences(lambda d: problem.residual(x + d, {"alpha": 1.3}), [1.0], 1e-5)
    np.testing.assert_allclose(problem.jacobian(x, {"alpha": 1.3}), wanted, rtol=1e-7)
    slope = differences(lambda d: problem.residual(x, {"alpha": 1.3 + d[0]}), [1.0], 1e-5)
    np.testing.assert_allclose(problem.parameter_jacobian(x, {"alpha": 1.3}), slope, rtol=1e-7)


def test_convex_envelope():
    problem = theory.derive(ridge()).compile()
    x = np.array([0.6, 0.7, 0.5])
    wanted = differences(lambda d: problem.residual(x + d), np.ones(3), 1e-5)
    np.testing.assert_allclose(problem.jacobian(x), wanted, rtol=1e-6, atol=1e-8)


def test_by_sobol_points():
    """The same integrands in the kernel that serves any number of tokens."""
    problem, _ = compiled("agnostic")
    params, x = STATES["agnostic"]
    scale = problem.scale(x, params)
    wanted = problem.jacobian(x, params, 2e-5)
    found = problem.with_rule(SobolRule(11, scrambles=4)).jacobian(x, params)
    np.testing.assert_allclose((found - wanted) * scale / scale[:, None], 0.0, atol=0.02)


def test_three_tokens_are_derived():
    found = theory.derive(attention(tokens=3)).branch("agnostic").jacobian
    assert {str(h) for h, _ in found.missing.values()} == {"qhat_1", "qhat_2", "qhat_3"}
    assert {str(y) for _, y in found.entries} == {"q", "V", "alpha", "lambda"}


# --- where no rule applies ------------------------------------------------------------------


def test_kinks_fall_back_to_differences():
    x, y, z = sp.symbols("x y z", real=True)
    kinked = GaussianExpectation(abs(z + x), [z], [0], [[1]])
    model = theory.FreeEnergy(x**4 / 4 - y * x + kinked, [x], [y], name="kinked")
    problem = theory.derive(model).compile(mode="python")
    assert problem.jacobian([0.7], {"y": 1.0}) is None
    found = state_jacobian(problem, np.array([0.7]), {"y": 1.0}, 1e-8)
    assert np.all(np.isfinite(found))


def test_a_gradient_with_surface_terms_falls_back_to_differences():
    """Without conjugates the slope in the response is quadratic in the force."""
    h, w, a = sp.symbols("h w a", real=True)
    V = sp.Symbol("V", positive=True)
    loss = (h**2 - 1) ** 2 / 4
    envelope = GaussianExpectation(Moreau(loss, [h], [w], [[V]]), [w], [0], [[1]])
    model = theory.FreeEnergy(envelope + a * V**2 / 2, [V], [a], name="response")
    assert theory.derive(model).jacobian is None
    problem = theory.derive(model).compile()
    assert problem.jacobian([0.5], {"a": 0.1}) is None
    assert problem.parameter_jacobian([0.5], {"a": 0.1}) is None


# --- what it saves --------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["semantic", "positional"])
def test_newton_needs_few_residuals(branch, monkeypatch):
    problem, _ = compiled(branch)
    problem.integrator.forget()
    spent = Counter()
    own = problem.residual

    def residual(x, params=None, accuracy=None):
        spent[accuracy] += 1
        return own(x, params, accuracy)

    monkeypatch.setattr(problem, "residual", residual)
    found = solve(problem, {"alpha": 1.25}, accuracy=1e-6)
    assert found.status.success
    assert spent[1e-6] <= 3  # a loose Jacobian and Broyden's updates do
    assert sum(spent.values()) <= 8
