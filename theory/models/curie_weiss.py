r"""Curie-Weiss ferromagnet, :math:`m = \tanh((m + h)/T)`."""

import sympy as sp

from theory.free_energy import Ansatz, FreeEnergy, Parameter
from theory.nodes import Softplus


def curie_weiss() -> FreeEnergy:
    """Spinodals meet the coexistence line h = 0 at the critical point T = 1."""
    m, T, h = sp.symbols("m T h", real=True)
    x = (m + h) / T
    log_2cosh = Softplus(2 * x) - x
    return FreeEnergy(
        m**2 / 2 - T * log_2cosh,
        unknowns=[m],
        parameters=[
            Parameter(T, 0.5, 0.0, low_open=True, description="temperature"),
            Parameter(h, 0.0, description="magnetic field"),
        ],
        branches={
            "up": Ansatz("up", {}, description="magnetised along +1", nonzero=[m]),
            "down": Ansatz("down", {}, description="magnetised along -1", nonzero=[m]),
        },
        starts={"up": {m: 1}, "down": {m: -1}},
        transition={"between": ("up", "down"), "parameter": "h", "span": (-0.2, 0.2)},
        name="curie-weiss",
        title="Curie-Weiss ferromagnet",
    )
