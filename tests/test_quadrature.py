"""Integration: exactness of rules, the authors' rule, independence of routes, honesty of errors."""

import numpy as np
import pytest

from numerics.quadrature import SobolRule, lines, product_of_pairs
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
        full._memo.clear()
        results.append(full.residual(x, PARAMS, 1e-4))
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def _random_point(rng, full, isotropic):
    """A random point of the domain, all parameters varied; equal and unequal rows of A."""
    equal = rng.random() < 0.4
    problem = full if equal else isotropic
    sigma, omega = np.exp(rng.uniform(np.log(0.3), 0)), rng.random()
    a, b = rng.random(2)
    rho = sigma**2
    q = rho * np.exp(rng.uniform(np.log(0.05), np.log(1.5)))
    V = np.exp(rng.uniform(np.log(0.5), np.log(12)))
    cosine = rng.choice([0.0, rng.random(), 0.95])
    m = rng.choice([0.0, rng.uniform(0, 0.6)])
    values = {"q": q, "V": V, "m": m, "theta": cosine * np.sqrt(q * rho)}
    params = {"omega": omega, "sigma": sigma, "A11": a, "A22": a if equal else b}
    return problem, [values[u] for u in problem.unknowns], params


@pytest.fixture(scope="module")
def isotropic(attention_model):
    from numerics.branches import compiled

    return compiled(attention_model, None, {"A11": 0.3, "A22": 0.8})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_error_estimates_are_honest(seed, full, isotropic):
    problem, x, params = _random_point(np.random.default_rng(seed), full, isotropic)
    reference = problem.moments(x, params, 7e-8)
    for accuracy in (5e-5, 5e-6):
        found = problem.moments(x, params, accuracy)
        # a moment that vanishes by symmetry has magnitude and errors at rounding level
        error = np.abs(found.values - reference.values) - reference.errors
        assert np.all(error <= found.errors + 1e-13)


def test_split_lines_agree_with_the_thorough_scan(full):
    """A hard point: large response, unequal pieces; every line scanned for its convex envelope."""
    x, params = [0.26, 18.8, 0.02, 0.23], {"sigma": 0.7, "omega": 0.14}
    c, group = full._controls(x, params), full._groups[0]
    mean, covariance, response = np.zeros(4), np.zeros((4, 4)), np.zeros((2, 2))
    full.module.measure_0(c, mean, covariance, response)
    spec = lines.specification(group, mean, covariance, response)
    rung = lines.LADDER[1]
    fast, sizes, *_ = lines.apply(full.module, "_0", group, spec, c, rung)
    slow, *_ = lines.apply(full.module, "_0", group, spec, c, rung, True)
    assert np.max(np.abs(fast - slow) / sizes) < 1e-3
