"""Integration kernels, included as text in every generated module."""

from __future__ import annotations

import functools
from importlib import resources

FILES = {
    "planar": ("minima", "envelope", "jumps", "cusps", "lens", "fold", "plane", "lines"),
    "proximal": ("proximal",),
    "smooth": ("smooth",),
}
"""Which a module needs, in the order in which they use each other."""


@functools.cache
def kernel_sources() -> dict[str, tuple[str, ...]]:
    """Their text."""
    folder = resources.files("numerics.kernels")
    return {
        kind: tuple((folder / f"{name}.py").read_text() for name in names)
        for kind, names in FILES.items()
    }
