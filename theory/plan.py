"""Hints from a model to the integrator: they choose a rule, never what is integrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp


@dataclass(frozen=True)
class PlanarPlan:
    """Two minimisation variables and two sources: integrate along lines of proximal points.

    ``field``, ``minimiser`` and ``source`` are rotated alike; the first rotated coordinate is the
    one along which the proximal point jumps (across zero), so it is integrated innermost.

    Parameters
    ----------
    field, minimiser, source : pairs of Symbol
        (W, H, Z) as they stand in the free energy.
    rotation : 2 x 2 Matrix
        Orthogonal; rows are the new axes.
    """

    field: tuple[sp.Symbol, sp.Symbol]
    minimiser: tuple[sp.Symbol, sp.Symbol]
    source: tuple[sp.Symbol, sp.Symbol]
    rotation: sp.Matrix


@dataclass(frozen=True)
class SamplePlan:
    """Integrate by randomised quasi-Monte-Carlo (any dimension).

    Parameters
    ----------
    starts : sequence of sequences of Expr
        Starting points for the global minimisation, in terms of the fields and the sources; the
        field itself and zero are always tried.
    """

    starts: Sequence[Sequence[sp.Expr]] = ()


@dataclass(frozen=True)
class TensorPlan:
    """The proximal point is unique and smooth (convex loss): product Gauss-Hermite rules."""
