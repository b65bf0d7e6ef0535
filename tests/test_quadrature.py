"""Integration: exactness of rules, the authors' rule, independence of routes, honesty of errors."""

from dataclasses import replace

import numpy as np
import pytest

from numerics.quadrature import SobolRule, product_of_pairs
from numerics.quadrature.nodes import hermite, pairwise_degree7

STATE = {"q": 0.08138604, "V": 17.35195, "m": 0.0, "theta": 0.121052}
PARAMS = {"alpha": 1.24, "omega": 0.3}


def test_degree_seven_rule_is_exact_up_to_its_degree_and_not_beyond():
    nodes, weights = pairwise_degree7()
    normal = {0: 1, 2: 1, 4: 3, 6: 15, 8: 105}
    for i in range(8):
        for j in range(8 - i):
            value = weights @ (nodes[:, 0] ** i * nodes[:, 1] ** j)
            assert value == pytest.approx(normal.get(i, 0) * normal.get(j, 0), abs=1e-12)
    assert weights @ nodes[:, 0] ** 8 != pytest.approx(105, rel=1e-3)


def test_hermite_rule_is_exact_up_to_its_degree():
    x, w = hermite(5)
    assert w @ x**8 == pytest.approx(105, rel=1e-12)
    assert w @ x**10 != pytest.approx(945, rel=1e-3)


def test_authors_rule_in_our_equations(full):
    problem = full.with_rule(product_of_pairs(((0, 1), (2, 3))))
    new = problem.update([STATE[u] for u in problem.unknowns], PARAMS)
    found = dict(zip(problem.unknowns, new, strict=True))
    for name, value in {"q": 0.081368, "V": 17.338, "theta": 0.12114}.items():
        assert found[name] == pytest.approx(value, rel=1e-4)
    assert abs(found["m"]) < 1e-12


def test_accurate_update_disagrees_as_it_should(full):
    new = full.update([STATE[u] for u in full.unknowns], PARAMS, 1e-6)
    found = dict(zip(full.unknowns, new, strict=True))
    for name, value in {"q": 0.08288, "V": 18.094, "theta": 0.11998}.items():
        assert found[name] == pytest.approx(value, rel=1.5e-4)


def test_an_unknown_moment_spoils_only_what_depends_on_it(full):
    x = [STATE[u] for u in full.unknowns]
    c = full.controls(x, full.values(PARAMS))
    moments = full.moments(x, PARAMS, 1e-4)
    proximal = full.integrator.groups[0]["counts"][0]
    spoiled = replace(moments, errors=np.where(np.arange(len(moments.values)) < proximal, np.inf,
                                               moments.errors))  # fmt: skip
    errors = full._propagate(c, spoiled, full._assemble(c, moments.values))
    assert np.isinf(errors[full._where["energy"]])
    assert errors[full._where["observable baseline_error"]] < 1e-9


def test_quasi_monte_carlo_agrees(full):
    x = [STATE[u] for u in full.unknowns]
    sampled = full.with_rule(SobolRule(12, 16)).evaluate(x, PARAMS)
    precise = full.evaluate(x, PARAMS, 1e-6)
    assert np.all(np.abs(sampled.residual - precise.residual) <= 1.5 * sampled.residual_error)
    assert abs(sampled.energy - precise.energy) <= 1.5 * sampled.energy_error
    assert sampled.energy_error < 1e-4 * precise.energy * 50


def test_same_bits_for_any_number_of_threads(full, monkeypatch):
    x = np.array([STATE[u] for u in full.unknowns])
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SPINODAL_THREADS", threads)
        full.integrator.forget()
        results.append(full.residual(x, PARAMS, 1e-4))
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def _random_point(rng, full, isotropic, wide):
    """A random point of the domain, all parameters varied; equal and unequal rows of A."""
    equal = rng.random() < 0.5
    problem = full if equal else isotropic
    sigma = np.exp(rng.uniform(np.log(0.15 if wide else 0.3), np.log(2.0 if wide else 1.0)))
    V = np.exp(rng.uniform(0.0, np.log(2500))) if wide else np.exp(rng.uniform(-0.7, 3.0))
    q = sigma**2 * np.exp(rng.uniform(-3.0, 1.5 if wide else 0.4))
    cosine = rng.choice([0.0, rng.random(), 1 - 10 ** rng.uniform(-4 if wide else -1.3, -1)])
    m = rng.choice([0.0, rng.uniform(0, 0.8)])
    A = rng.choice([0.0, 1.0, *rng.random(4)], 2)
    values = {"q": q, "V": V, "m": m, "theta": cosine * np.sqrt(q) * sigma}
    params = {"omega": rng.choice([0.0, 1.0, *rng.random(3)]), "sigma": sigma,
              "A11": A[0], "A22": A[0] if equal else A[1]}  # fmt: skip
    return problem, [values[u] for u in problem.unknowns], params


@pytest.fixture(scope="module")
def isotropic(attention_model):
    from numerics.branches import compiled

    return compiled(attention_model, None, {"A11": 0.3, "A22": 0.8})


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_error_estimates_are_honest(seed, wide, full, isotropic):
    """In the paper's regime, and for sigma up to 2 with V sigma^2 up to 10^4."""
    rng = np.random.default_rng(500 * wide + seed)
    problem, x, params = _random_point(rng, full, isotropic, wide)
    reference = problem.moments(x, params, 6e-8)
    for accuracy in (3e-4, 3e-5, 4e-6):
        found = problem.moments(x, params, accuracy)
        # a moment that vanishes by symmetry has magnitude and errors at rounding level
        error = np.abs(found.values - reference.values) - reference.errors
        assert np.all(error <= found.errors + 1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_wide_points_agree_with_quasi_monte_carlo(seed, full, isotropic):
    rng = np.random.default_rng(900 + seed)
    problem, x, params = _random_point(rng, full, isotropic, True)
    precise = problem.moments(x, params, 1e-5)
    sampled = problem.with_rule(SobolRule(11, 16)).moments(x, params)
    assert np.all(np.abs(sampled.values - precise.values) <= 2 * sampled.errors + precise.errors)
