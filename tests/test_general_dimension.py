"""More tokens, higher ranks: energies by quasi-Monte-Carlo, against routes of their own."""

import numpy as np
import pytest

from numerics import solve
from numerics.branches import compiled
from numerics.quadrature import SobolRule
from theory.models import attention

THREE = {"q": 0.115, "V": 12.7, "theta": 0.158}
PAPER = {"q": 0.08170436, "V": 18.304845, "theta": 0.11804349}  # semantic at the transition


@pytest.fixture(scope="module")
def three_tokens():
    return compiled(attention(tokens=3), "semantic")


def _softmax(h):
    logits = h[:, :, None] * h[:, None, :]
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _envelope(w, target, V, variance, rng):
    """Least value over accelerated descents from many starts, in plain numpy."""

    def gradient(h):
        s = _softmax(h)
        g = variance * (s - target)
        b = s * (g - (s * g).sum(-1, keepdims=True))
        return (h - w) / V + (b * h[:, None, :]).sum(-1) + (b * h[:, :, None]).sum(-2)

    best = np.full(len(w), np.inf)
    for start in (w, -w, 0.3 * rng.normal(size=w.shape), rng.normal(size=w.shape)):
        h, y, momentum = start.copy(), start.copy(), 1.0
        for k in range(200):
            new = y - V / (1 + 0.75 * V) * gradient(y)
            after = 1.0 if k % 50 == 49 else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            y, h, momentum = new + (momentum - 1) / after * (new - h), new, after
        loss = variance / 2 * ((_softmax(h) - target) ** 2).sum((-1, -2))
        best = np.minimum(best, ((h - w) ** 2).sum(-1) / (2 * V) + loss)
    return best


def test_energy_of_three_tokens_agrees_with_plain_monte_carlo(three_tokens):
    """dE/dalpha is the expected envelope."""
    rng, n = np.random.default_rng(5), 4000
    q, V, theta = THREE.values()
    z = 0.5 * rng.normal(size=(n, 3))
    w = theta / 0.25 * z + np.sqrt(q - theta**2 / 0.25) * rng.normal(size=(n, 3))
    target = 0.7 * _softmax(z) + 0.3 * (0.4 * np.eye(3) + 0.2)
    plain = _envelope(w, target, V, 0.25, rng)
    found = three_tokens.evaluate(list(THREE.values()), {}, 1e-3)
    error = plain.std() / np.sqrt(n)
    assert abs(found.gradient["alpha"] - plain.mean()) <= 3 * error + found.gradient_error["alpha"]
    assert error < 0.01 * plain.mean()


def test_error_bars_cover(three_tokens):
    """The 99 % bound, over 40 seeds and all moments, against a set that is 100 times larger."""
    x = list(THREE.values())
    large = three_tokens.with_rule(SobolRule(13, 8, seed=7)).moments(x)
    kept = large.errors > 0
    inside = []
    for seed in range(40):
        small = three_tokens.with_rule(SobolRule(6, 8, seed=100 + 8 * seed)).moments(x)
        inside.append(np.abs(small.values - large.values) <= small.errors + large.errors)
    assert np.mean(np.array(inside)[:, kept]) > 0.97


def test_general_route_agrees_with_the_planar_one(full):
    values = {**PAPER, "m": 0.0, "alpha": 1.2515356, "omega": 0.3}
    x, params = [values[u] for u in full.unknowns], {k: values[k] for k in ("alpha", "omega")}
    found = full.with_rule(SobolRule(13, 8)).evaluate(x, params)
    assert abs(found.energy - 0.0027232656) <= found.energy_error
    assert found.energy_error < 0.02 * found.energy


@pytest.mark.slow
def test_second_column_that_is_silent_changes_nothing(full):
    """Rank two with V_22 and q_22 close to zero: the energy of rank one."""
    wide = compiled(attention(rank=2), "semantic")
    values = {"q_11": PAPER["q"], "V_11": PAPER["V"], "theta_1": PAPER["theta"],
              "q_22": 1e-12, "V_22": 1e-9}  # fmt: skip
    one = {**PAPER, "m": 0.0}
    params = {"alpha": 1.2515356, "omega": 0.3}
    rank_one = full.evaluate([one[u] for u in full.unknowns], params, 1e-5).gradient["alpha"]
    found = wide.evaluate([values[u] for u in wide.unknowns], params, 1e-3)
    assert abs(found.gradient["alpha"] - rank_one) <= found.gradient_error["alpha"]
    assert found.gradient_error["alpha"] < 0.02 * rank_one


def test_sums_depend_on_the_state_alone_and_not_on_threads(three_tokens, monkeypatch):
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SPINODAL_THREADS", threads)
        three_tokens.integrator.forget()
        results.append(three_tokens.residual(list(THREE.values()), {}, 1e-3))
    assert np.array_equal(*results)


def test_saddle_point_of_three_tokens_and_what_it_says_of_its_accuracy(three_tokens):
    start = {"q": 0.194, "V": 9.0, "theta": 0.214}
    found = solve(three_tokens, {"alpha": 2.0}, start, accuracy=1e-3, refine=False,
                  raise_on_failure=False)  # fmt: skip
    assert found.status.usable and found.kind == "semantic" and found.residual < 1e-3
    assert 1e-3 < found.reached < 2e-2
    assert "accuracy asked 0.001, reached 0.00" in found.message
    for name, value in {"q": 0.1937, "V": 9.0088, "theta": 0.2139}.items():
        assert abs(found[name] - value) <= found.errors[name] + 0.01 * value
