"""Gaussian expectations of functions of the proximal point, each with an error."""

from numerics.quadrature.moments import Moments
from numerics.quadrature.nodes import NodeRule, SobolRule, product_of_pairs

__all__ = ["Moments", "NodeRule", "SobolRule", "product_of_pairs"]
