"""One update by the authors' 144-node rule: our kernel beside a plain transcription.

``pytest tests/benchmarks --benchmark-enable`` times both in one run; the ratio of the two medians
is the figure of merit.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from numerics.quadrature import product_of_pairs
from numerics.quadrature.nodes import pairwise_degree7

ALPHA, OMEGA, SIGMA, LAM, A = 1.24, 0.3, 0.5, 0.01, 0.6
Q, V, M, THETA = 0.08138604, 17.35195, 0.0, 0.121052


def transcription():
    """Nested loops and a generic minimiser per node, as a notebook would do it."""
    nodes, weights = pairwise_degree7()
    rho = SIGMA**2

    def logistic(x):
        return 1 / (1 + np.exp(-x))

    def loss(h, t1, t2):
        s1, s2 = logistic(h[0] * (h[0] - h[1])), logistic(h[1] * (h[1] - h[0]))
        return rho * ((s1 - t1) ** 2 + (s2 - t2) ** 2)

    qh = vh = mh = th = 0.0
    for xi, wi in zip(nodes, weights, strict=True):
        W = np.array([M, -M]) + np.sqrt(Q) * xi
        for eta, wj in zip(nodes, weights, strict=True):
            Z = THETA / Q * (W - [M, -M]) + np.sqrt(rho - THETA**2 / Q) * eta
            t1 = (1 - OMEGA) * logistic(Z[0] * (Z[0] - Z[1])) + OMEGA * A
            t2 = (1 - OMEGA) * logistic(Z[1] * (Z[1] - Z[0])) + OMEGA * A
            h = minimize(lambda h: ((h - W) ** 2).sum() / (2 * V) + loss(h, t1, t2),  # noqa: B023
                         np.zeros(2)).x  # fmt: skip
            g, w = (h - W) / V, wi * wj
            centred = W - [M, -M]
            qh += w * (g**2).sum()
            mh += w * (g[0] - g[1])
            th += w * (g * (Z - THETA / Q * centred)).sum() / (rho - THETA**2 / Q)
            vh -= w * (g * (centred - THETA / rho * Z)).sum() / (Q - THETA**2 / rho)
    qh, vh, mh, th = (ALPHA * x for x in (qh, vh, mh, th))
    D = LAM + SIGMA**2 * vh
    return (
        SIGMA**2 * (SIGMA**2 * qh + mh**2 + SIGMA**2 * rho * th**2) / D**2,
        SIGMA**2 / D,
        mh / D,
        SIGMA**2 * rho * th / D,
    )


@pytest.fixture(scope="module")
def ours(full):
    problem = full.with_rule(product_of_pairs(((0, 1), (2, 3))))
    x, params = np.array([Q, V, M, THETA]), {"alpha": ALPHA, "omega": OMEGA}

    def update():
        problem.integrator.forget()
        return problem.update(x, params)

    update()
    return update


@pytest.mark.benchmark(group="one update, 144 nodes")
def test_kernel(benchmark, ours):
    result = benchmark(ours)
    assert result[1] == pytest.approx(17.338, rel=1e-4)


@pytest.mark.slow
@pytest.mark.benchmark(group="one update, 144 nodes")
def test_transcription(benchmark, ours):
    result = benchmark.pedantic(transcription, rounds=1)
    np.testing.assert_allclose(result, ours(), rtol=1e-3, atol=1e-6)
