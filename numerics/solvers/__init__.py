"""Solvers of the saddle-point equations: Newton, damped iteration, many starts."""

from numerics.solvers.newton import NewtonSettings, newton
from numerics.solvers.solution import Solution
from numerics.solvers.solve import solve, solve_all

__all__ = ["NewtonSettings", "Solution", "newton", "solve", "solve_all"]
