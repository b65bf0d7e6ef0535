"""Mean-field Blume-Capel model: spin 1 with crystal field D; tricritical at T = 1/3."""

import sympy as sp

from theory.free_energy import Ansatz, FreeEnergy, Parameter
from theory.nodes import Softplus


def blume_capel() -> FreeEnergy:
    """First-order below the tricritical point T = 1/3, D = (2/3) ln 2."""
    m, T, D = sp.symbols("m T D", real=True)
    # log(1 + e^a + e^b), written so that nothing overflows at low temperature
    a, b = (m - D) / T, (-m - D) / T
    log_partition = Softplus(a) + Softplus(b - Softplus(a))
    return FreeEnergy(
        m**2 / 2 - T * log_partition,
        unknowns=[m],
        parameters=[
            Parameter(T, 0.25, 0.0, low_open=True, description="temperature"),
            Parameter(D, 0.45, description="crystal field"),
        ],
        mirrors=[[m]],
        branches={
            "ordered": Ansatz("ordered", {}, description="magnetised", nonzero=[m]),
            "disordered": Ansatz("disordered", {}, description="paramagnetic"),
        },
        starts={"ordered": {m: sp.Rational(9, 10)}, "disordered": {m: 0}},
        transition={"between": ("ordered", "disordered"), "parameter": "D", "span": (0.3, 0.6)},
        name="blume-capel",
        title="Mean-field Blume-Capel model",
    )
