r"""Landau free energy :math:`r m^2/2 + u m^4/4 + v m^6/6`; tricritical at u = 0."""

import sympy as sp

from theory.free_energy import Ansatz, FreeEnergy, Parameter


def landau() -> FreeEnergy:
    r"""For u < 0 first-order at :math:`r = 3u^2/(16v)`, where :math:`m^2 = -3u/(4v)`."""
    m, r, u, v = sp.symbols("m r u v", real=True)
    return FreeEnergy(
        r * m**2 / 2 + u * m**4 / 4 + v * m**6 / 6,
        unknowns=[m],
        parameters=[
            Parameter(r, 0.1, description="quadratic coefficient"),
            Parameter(u, -1.0, description="quartic coefficient"),
            Parameter(v, 1.0, 0.0, low_open=True, description="sextic coefficient"),
        ],
        mirrors=[[m]],
        branches={
            "ordered": Ansatz("ordered", {}, description="broken symmetry", nonzero=[m]),
            "disordered": Ansatz("disordered", {}, description="symmetric"),
        },
        # the ordered minimum at r = 0
        starts={"ordered": {m: sp.sqrt(sp.Abs(u) / v)}, "disordered": {m: 0}},
        transition={"between": ("ordered", "disordered"), "parameter": "r", "span": (0.01, 0.5)},
        name="landau",
        title="Landau phi^6 free energy",
    )
