"""Solvers of the saddle-point equations: Newton, damped iteration, many starts.

`solve` does everything; `init`, `step`, `done` and `result` are its parts, for stepping by hand.
"""

from numerics.solvers.newton import NewtonSettings, NewtonState, done, init, newton, step
from numerics.solvers.solution import Solution, belongs
from numerics.solvers.solve import as_state, failure, result, solve, solve_all

__all__ = [
    "NewtonSettings",
    "NewtonState",
    "Solution",
    "as_state",
    "belongs",
    "done",
    "failure",
    "init",
    "newton",
    "result",
    "solve",
    "solve_all",
    "step",
]
