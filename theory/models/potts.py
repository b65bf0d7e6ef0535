r"""Mean-field Potts model with q colours; q may be any real number above 1."""

import sympy as sp

from theory.free_energy import Ansatz, FreeEnergy, Parameter


def potts() -> FreeEnergy:
    r"""For q > 2 first-order at :math:`K = 2(q-1)\ln(q-1)/(q-2)`, where s = (q-2)/(q-1)."""
    s, K, q = sp.symbols("s K q", real=True)
    favoured, other = 1 + (q - 1) * s, 1 - s
    entropy = favoured * sp.log(favoured) + (q - 1) * other * sp.log(other)
    return FreeEnergy(
        entropy / q - K * (q - 1) * s**2 / (2 * q),
        unknowns=[s],
        parameters=[
            Parameter(K, 2.8, 0.0, low_open=True, description="coupling over temperature"),
            Parameter(q, 3.0, 1.0, low_open=True, description="number of colours"),
        ],
        domain=[favoured, other],
        branches={
            "ordered": Ansatz("ordered", {}, description="one colour favoured", nonzero=[s]),
            "disordered": Ansatz("disordered", {}, description="symmetric"),
        },
        starts={"ordered": {s: (q - 1) / (q - sp.Rational(1, 2))}, "disordered": {s: 0}},
        scales={s: sp.Rational(1, 2)},
        transition={"between": ("ordered", "disordered"), "parameter": "K", "span": (2.5, 3.2)},
        name="potts",
        title="Mean-field Potts model",
        reference="F. Y. Wu, Rev. Mod. Phys. 54, 235 (1982)",
    )
