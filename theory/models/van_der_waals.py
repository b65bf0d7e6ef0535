"""Van der Waals fluid in reduced variables: Gibbs energy with the volume as order parameter."""

import sympy as sp

from theory.free_energy import Ansatz, FreeEnergy, Parameter


def van_der_waals() -> FreeEnergy:
    """Liquid and gas coexist below the critical point p = T = v = 1."""
    v = sp.Symbol("v", positive=True)
    p, T = sp.symbols("p T", real=True)
    return FreeEnergy(
        p * v - sp.Rational(8, 3) * T * sp.log(3 * v - 1) - 3 / v,
        unknowns=[v],
        parameters=[
            Parameter(p, 0.65, description="pressure over critical pressure"),
            Parameter(T, 0.9, 0.0, low_open=True, description="temperature over critical one"),
        ],
        domain=[3 * v - 1],
        branches={
            "liquid": Ansatz("liquid", {}, description="dense"),
            "gas": Ansatz("gas", {}, description="dilute"),
        },
        starts={"liquid": {v: sp.Rational(3, 5)}, "gas": {v: 3}},
        transition={"between": ("liquid", "gas"), "parameter": "p", "span": (0.4, 0.75)},
        name="van-der-waals",
        title="Van der Waals fluid (reduced)",
    )
