"""Symbolic layer of spinodal: from a free energy to saddle-point equations and code."""

from theory.derive import derive
from theory.errors import (
    AnsatzError,
    ConvergenceError,
    DerivationError,
    DomainError,
    ModelError,
    ParameterError,
    SpinodalError,
)
from theory.free_energy import Ansatz, FreeEnergy, Parameter
from theory.nodes import (
    AtProximal,
    GaussianExpectation,
    LogGaussianTail,
    Logistic,
    Moreau,
    ProximalForce,
    Softmax,
    Softplus,
)
from theory.plan import PlanarPlan, SamplePlan, TensorPlan
from theory.symmetry import Symmetry
from theory.system import SaddlePointSystem

__version__ = "0.1.0"

__all__ = [
    "Ansatz",
    "AnsatzError",
    "AtProximal",
    "ConvergenceError",
    "DerivationError",
    "DomainError",
    "FreeEnergy",
    "GaussianExpectation",
    "LogGaussianTail",
    "Logistic",
    "ModelError",
    "Moreau",
    "Parameter",
    "ParameterError",
    "PlanarPlan",
    "ProximalForce",
    "SaddlePointSystem",
    "SamplePlan",
    "Softmax",
    "Softplus",
    "SpinodalError",
    "Symmetry",
    "TensorPlan",
    "derive",
]
