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


def flippable(problem: ProblemLike, x: np.ndarray) -> np.ndarray:
    """Which unknowns can change their signs, one at a time, to a mirror image of the state."""
    return np.array([
        np.array_equal(problem.canonical(x * signs), problem.canonical(x))
        for signs in 1 - 2 * np.eye(len(x))
    ], dtype=bool)  # fmt: skip


def faded(problem: ProblemLike, x: np.ndarray, new: np.ndarray, scale: np.ndarray) -> int | None:
    """The unknown that has come to zero, where a state is its own mirror image."""
    # a cubic leaves it at the third root of the corrector's tolerance
    near = (np.abs(x) > 5e-3 * scale) & (np.abs(new) < 5e-3 * scale)
    found = np.flatnonzero(near & flippable(problem, x)) if np.any(near) else []
    return int(found[0]) if len(found) else None
