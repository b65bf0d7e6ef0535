r"""Ridge regression of a noisy Gaussian teacher: the smallest model with a Moreau envelope.

:math:`y = x \cdot w_\star/\sqrt d + \sqrt\Delta\,\xi`, unit Gaussian inputs and teacher, loss
:math:`\tfrac12 (y - x \cdot w/\sqrt d)^2` summed over n = alpha d samples, penalty lambda/2.
"""

import sympy as sp

from theory.free_energy import FreeEnergy, Parameter
from theory.nodes import GaussianExpectation, Moreau
from theory.plan import TensorPlan


def ridge() -> FreeEnergy:
    """Energy normalised per dimension; the test error is E[(y - prediction)^2] / 2."""
    alpha = sp.Symbol("alpha", positive=True)
    ridge, noise = sp.symbols("lambda Delta", nonnegative=True)
    q, V = sp.symbols("q V", positive=True)
    theta, qhat, Vhat, thetahat = sp.symbols("theta qhat Vhat thetahat", real=True)
    H, W, Y = sp.symbols("H W Y", real=True)

    loss = (H - Y) ** 2 / 2
    covariance = sp.Matrix([[q, theta], [theta, 1 + noise]])

    def expectation(f):
        return GaussianExpectation(f, [W, Y], [0, 0], covariance)

    return FreeEnergy(
        alpha * expectation(Moreau(loss, [H], [W], sp.Matrix([[V]])))
        + (qhat * V - Vhat * q) / 2
        + thetahat * theta
        - (qhat + thetahat**2) / (2 * (ridge + Vhat)),
        unknowns=[q, V, theta],
        conjugates=[qhat, Vhat, thetahat],
        parameters=[
            Parameter(alpha, 2.0, 0.0, low_open=True, description="sample complexity n/d"),
            Parameter(ridge, 0.1, 0.0, description="ridge penalty"),
            Parameter(noise, 0.1, 0.0, description="variance of the noise"),
        ],
        domain=[V, q * (1 + noise) - theta**2],
        observables={"test_error": expectation(loss.xreplace({H: W}))},
        starts={"": {q: sp.Rational(1, 2), V: 1, theta: sp.Rational(1, 2)}},
        plan=TensorPlan(),
        name="ridge",
        title="Ridge regression of a Gaussian teacher",
    )
