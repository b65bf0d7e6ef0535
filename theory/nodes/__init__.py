"""Symbolic nodes that SymPy lacks: stable functions, Gaussian expectations, Moreau envelopes."""

from theory.nodes.gaussian import GaussianExpectation, expand_expectations, tidy_expectations
from theory.nodes.moreau import AtProximal, Moreau, ProximalForce, ProximalSlope
from theory.nodes.stable import LogGaussianTail, Logistic, Softmax, Softplus

__all__ = [
    "AtProximal",
    "GaussianExpectation",
    "LogGaussianTail",
    "Logistic",
    "Moreau",
    "ProximalForce",
    "ProximalSlope",
    "Softmax",
    "Softplus",
    "expand_expectations",
    "tidy_expectations",
]
