"""What the generator writes for each model, and the kernels call.

The kernels import these names so that they can be read and checked on their own. In a generated
module the import lines are dropped and the real functions stand in front of the kernel. ``ctx``
holds whatever depends on sources and parameters only.
"""

from __future__ import annotations

from typing import NoReturn


def _generated(name: str) -> NoReturn:
    raise NotImplementedError(f"{name} exists only in generated modules; see theory.codegen.writer")


def context(*arguments) -> None:
    """``context(zu, zv, c, ctx)`` (planar) or ``context(c, ctx)`` (smooth): fill ``ctx``."""
    _generated("context")


def loss(u, v, ctx) -> float:
    """Loss at the minimisation variables (u, v), in rotated coordinates."""
    _generated("loss")


def derivatives(u, v, ctx) -> tuple[float, float, float, float, float, float]:
    """Loss, its gradient (u, v) and Hessian (uu, uv, vv)."""
    _generated("derivatives")


def features(u, v, tab) -> None:
    """Fill ``tab`` with what depends on the proximal point alone."""
    _generated("features")


def slopes_of_features(u, v, tab, ctx) -> tuple[float, float]:
    """Gradient of the loss from the features of (u, v)."""
    _generated("slopes_of_features")


def of_features(u, v, tab, ctx) -> tuple[float, float, float, float, float]:
    """Gradient (u, v) and Hessian (uu, uv, vv) of the loss from the features of (u, v)."""
    _generated("of_features")


def moments_of_features(a, b, u, v, tab, ctx, out) -> None:
    """`moments` from the features of (u, v)."""
    _generated("moments_of_features")


def moments(a, b, u, v, ctx, out) -> None:
    """Integrands at the fields (a, b) with proximal point (u, v), as many as fit in ``out``."""
    _generated("moments")


def integrands(x, ctx, out) -> None:
    """Smooth integrands at the Gaussian variables x."""
    _generated("integrands")


def nd_context(z, c, ctx) -> None:
    """Fill ``ctx`` from the sources z, in any dimension."""
    _generated("nd_context")


def nd_loss(h, ctx) -> float:
    """Loss at the minimisation variables h."""
    _generated("nd_loss")


def nd_slopes(h, ctx, gradient, hessian) -> None:
    """Gradient and Hessian of the loss at h."""
    _generated("nd_slopes")


def nd_starts(w, ctx, starts) -> None:
    """Starting points of the global minimisation, one a row."""
    _generated("nd_starts")


def nd_integrands(w, h, ctx, out) -> None:
    """Integrands at the fields w with proximal point h."""
    _generated("nd_integrands")
