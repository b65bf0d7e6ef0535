"""Mirror images: states that a declared symmetry of the model makes one."""

from __future__ import annotations

import numpy as np

from numerics.protocol import ProblemLike


def image(problem: ProblemLike, x: np.ndarray) -> np.ndarray | None:
    """-x where that is a mirror image of x, and another state."""
    same = np.array_equal(problem.canonical(-x), problem.canonical(x))
    return -x if same and np.any(x) else None


def turned(problem: ProblemLike, x: np.ndarray, new: np.ndarray) -> int | None:
    """The unknown that passes zero between a state and the mirror images beyond."""
    alive = np.minimum(np.abs(x), np.abs(new)) > 1e-9
    flips = np.flatnonzero(alive & (x * new < 0)
                           & (problem.canonical(x) * problem.canonical(new) >= 0))  # fmt: skip
    return int(flips[np.argmax(np.abs(x[flips]))]) if len(flips) else None


def faded(problem: ProblemLike, x: np.ndarray, new: np.ndarray, scale: np.ndarray) -> int | None:
    """The unknown that has come to zero, where a state is its own mirror image."""
    # a cubic leaves it at the third root of the corrector's tolerance
    for k in np.flatnonzero((np.abs(x) > 5e-3 * scale) & (np.abs(new) < 5e-3 * scale)):
        image = x.copy()
        image[k] *= -1
        if np.array_equal(problem.canonical(image), problem.canonical(x)):
            return int(k)
    return None
