"""Stability of a branch against the order parameters that vanish on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy as sp

if TYPE_CHECKING:
    from theory.system import SaddlePointSystem


def jacobian_block(
    system: SaddlePointSystem, variables: Sequence[sp.Symbol]
) -> dict[tuple[sp.Symbol, sp.Symbol], sp.Expr]:
    """Total derivative of each variable's update with respect to each variable.

    The conjugates follow the order parameters. Their expectations depend on overlaps through the
    measure only, so that every derivative falls onto the Gaussian density and jumps do no harm.
    (Derivatives with respect to a response V would have a surface term; those raise
    `DerivationError`.)
    """
    hats = {h: {x: c.diff(x) for x in variables} for h, c in system.conjugates.items()}
    block = {}
    for x in variables:
        update = system.updates[x]
        slopes = {h: update.diff(h) for h in system.conjugates}
        for y in variables:
            by_hats = (slope * hats[h][y] for h, slope in slopes.items() if slope != 0)
            block[x, y] = update.diff(y) + sp.Add(*by_hats)
    return block
