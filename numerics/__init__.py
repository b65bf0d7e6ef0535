"""Numerical layer of spinodal: integration, solvers, continuation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numerics import continuation
    from numerics.plain import PlainProblem
    from numerics.solvers import solve, solve_all
    from numerics.status import Status

__all__ = ["PlainProblem", "Status", "continuation", "solve", "solve_all"]


def __getattr__(name: str) -> Any:
    # lazily, so that importing one part does not load the compiler
    if name in ("solve", "solve_all"):
        from numerics import solvers

        return getattr(solvers, name)
    if name == "Status":
        from numerics.status import Status

        return Status
    if name == "PlainProblem":
        from numerics.plain import PlainProblem

        return PlainProblem
    if name == "continuation":
        import importlib

        return importlib.import_module("numerics.continuation")
    raise AttributeError(f"module 'numerics' has no attribute {name!r}")
