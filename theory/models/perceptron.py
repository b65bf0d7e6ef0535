r"""Teacher-student perceptron with binary weights, Bayes-optimal, replica symmetric.

Free entropy :math:`\Phi = \mathrm{extr}\,\{\psi(r) + \alpha\Psi(q) - rq/2\}` (Gyorgyi 1990), with
:math:`\psi(r) = -r/2 + E_{x\sim N(r,r)}\ln\cosh x` for the weights and
:math:`\Psi(q) = 2E_{t\sim N(0,q/(1-q))}[H(t)\ln H(t)]` for the outputs, H the Gaussian tail.
"""

import sympy as sp

from theory.free_energy import FreeEnergy, Parameter
from theory.nodes import GaussianExpectation, LogGaussianTail, Softplus


def perceptron() -> FreeEnergy:
    r"""Minus the free entropy; perfect recovery q = 1 is a state on the edge, with energy ln 2.

    First-order where the two are equal (the student's entropy vanishes), spinodal later.
    """
    q, alpha = sp.Symbol("q", positive=True), sp.Symbol("alpha", positive=True)
    r = sp.Symbol("qhat", positive=True)
    x, t = sp.symbols("x t", real=True)
    log_cosh = x + Softplus(-2 * x) - sp.log(2)
    weights = -r / 2 + GaussianExpectation(log_cosh, [x], [r], [[r]])
    tail = LogGaussianTail(t)
    outputs = GaussianExpectation(2 * sp.exp(tail) * tail, [t], [0], [[q / (1 - q)]])
    return FreeEnergy(
        r * q / 2 - weights - alpha * outputs,
        unknowns=[q],
        conjugates=[r],
        parameters=[Parameter(alpha, 1.3, 0.0, low_open=True, description="samples per weight")],
        domain=[q, 1 - q],
        scales={q: sp.Rational(1, 2)},
        starts={"": {q: sp.Rational(1, 2)}},
        edges={"perfect recovery": sp.log(2)},
        name="perceptron",
        title="Bayes-optimal binary perceptron, teacher-student",
        reference="G. Gyorgyi, Phys. Rev. A 41, 7097 (1990)",
    )
