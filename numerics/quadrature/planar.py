"""What the rules for planar models share: two fields and two sources, rotated and conditioned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics.quadrature.moments import covariance_root


@dataclass(frozen=True)
class Specification:
    """Gaussian and proximal numbers of a planar integral, in rotated coordinates.

    Attributes
    ----------
    deviation : (float, float)
        Standard deviations of zu and zv.
    field : (9,) array
        b = f0 + f1 zu + f2 zv + f3 xi and a = f4 + f5 zu + f6 zv + f7 xi + f8 xi'.
    response : (2,) array
        Va and Vb.
    mirrored : (bool, bool)
        Whether zu > 0, and zv > 0, carry half of each expectation.
    """

    deviation: tuple[float, float]
    field: np.ndarray
    response: np.ndarray
    mirrored: tuple[bool, bool]


def specification(group, mean, covariance, response) -> Specification | None:
    """Rotate and condition: (zu, zv), then b, then a.

    None where the coordinates do not separate, or the loss is not even in the proximal point.
    """
    if not group["even"]:
        return None
    rotation = np.array(group["rotation"])
    turn = np.zeros((4, 4))
    turn[:2, :2] = rotation
    turn[2, 2:], turn[3, 2:] = rotation[1], rotation[0]  # b before a
    order = np.array(group["order"])
    mean, covariance = turn @ mean[order], turn @ covariance[np.ix_(order, order)] @ turn.T
    turned = rotation @ response @ rotation.T
    if abs(turned[0, 1]) > 1e-12 * turned[0, 0] or abs(covariance[0, 1]) > 1e-12 * covariance[0, 0]:
        return None
    root = covariance_root(covariance)
    zu, zv = root[0, 0], root[1, 1]
    field = np.array([
        mean[2], root[2, 0] / zu, root[2, 1] / zv, root[2, 2],
        mean[3], root[3, 0] / zu, root[3, 1] / zv, root[3, 2], root[3, 3],
    ])  # fmt: skip
    return Specification((zu, zv), field, np.diag(turned).copy(), tuple(group["mirrored"]))


@dataclass(frozen=True)
class Kernels:
    """The generated module's functions and sizes that the host needs."""

    module: object
    context: int
    features: int
    moments: int
    suffix: str = ""

    def __getattr__(self, name):
        return getattr(self.module, f"{name.removeprefix('fill_')}{self.suffix}")
