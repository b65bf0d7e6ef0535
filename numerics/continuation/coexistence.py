"""Two states of equal energy: the equations of a phase boundary in two parameters.

y = (state a, state b, first parameter, second parameter); the equations are those of both states
and E_a = E_b. The energy's slopes in the parameters come from the envelope theorem, and its slopes
in the states vanish at a solution.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from numerics.protocol import Evaluation, ProblemLike, equation_scale
from numerics.solvers.derivatives import (
    differentiable,
    inside,
    parameter_slope,
    state_jacobian,
)
from theory.joint import moved, slope


class Coexistence:
    """Equations of two coexisting states.

    Parameters
    ----------
    problems : pair of Problem
    parameters : pair of str
        The one that the transition was found in, and the one along which it is traced.
    params : mapping
        The others.
    widths : pair of float
        Ranges of the two parameters, which set their natural sizes.
    accuracy : float
    """

    def __init__(self, problems: tuple[ProblemLike, ProblemLike], parameters: tuple[str, str],
                 params: Mapping[str, float], widths: tuple[float, float],
                 accuracy: float):  # fmt: skip
        self.problems, self.parameters, self.params = problems, parameters, dict(params)
        self.widths, self.accuracy = widths, accuracy
        self.sizes = tuple(len(p.unknowns) for p in problems)
        self.names = (*(f"a.{u}" for u in problems[0].unknowns),
                      *(f"b.{u}" for u in problems[1].unknowns), *parameters)  # fmt: skip
        self.exact = all(map(differentiable, problems))
        self.tolerance = 1e-12 if self.exact else accuracy
        self._memo: dict[bytes, tuple[Evaluation, Evaluation]] = {}

    def at(self, accuracy: float) -> Coexistence:
        """The same equations with expectations of another accuracy."""
        if accuracy == self.accuracy:
            return self
        return Coexistence(self.problems, self.parameters, self.params, self.widths, accuracy)

    def split(self, y) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, float]]:
        """Both states, and all parameters."""
        n, m = self.sizes
        params = self.params
        for name, value in zip(self.parameters, map(float, y[n + m :]), strict=True):
            params = moved(params, name, value)
        return (y[:n], y[n : n + m]), params

    def both(self, y) -> tuple[Evaluation, Evaluation]:
        """Residuals, energies and slopes of both states."""
        key = y.tobytes()
        if key not in self._memo:
            if len(self._memo) > 16:
                self._memo.pop(next(iter(self._memo)))
            states, params = self.split(y)
            self._memo[key] = tuple(
                p.evaluate(x, params, self.accuracy)
                for p, x in zip(self.problems, states, strict=True)
            )
        return self._memo[key]

    def slopes(self, y) -> tuple[float, float]:
        """Derivatives of E_a - E_b with respect to the two parameters."""
        a, b = self.both(y)
        return tuple(slope(a.gradient, p) - slope(b.gradient, p) for p in self.parameters)

    def residual(self, y) -> np.ndarray:
        a, b = self.both(y)
        return np.concatenate([a.residual, b.residual, [a.energy - b.energy]])

    def jacobian(self, y) -> np.ndarray:
        states, params = self.split(y)
        n, m = self.sizes
        matrix = np.zeros((n + m + 1, n + m + 2))
        for k, (problem, x) in enumerate(zip(self.problems, states, strict=True)):
            rows = slice(0, n) if k == 0 else slice(n, n + m)
            matrix[rows, rows] = state_jacobian(problem, x, params, self.accuracy)
            for j, name in enumerate(self.parameters):
                matrix[rows, n + m + j] = parameter_slope(problem, x, params, name, self.accuracy)
            if problem.form == "gradient":
                matrix[-1, rows] = (1.0, -1.0)[k] * self.both(y)[k].residual
        matrix[-1, n + m :] = self.slopes(y)
        return matrix

    def scale(self, y) -> np.ndarray:
        states, params = self.split(y)
        own = [min(max(abs(v), 0.1 * w), w) for v, w in zip(y[-2:], self.widths, strict=True)]
        return np.concatenate([
            *(p.scale(x, params) for p, x in zip(self.problems, states, strict=True)), own
        ])  # fmt: skip

    def row_scale(self, y) -> np.ndarray:
        """The energy row is in units of the parameters' natural sizes."""
        scale = self.scale(y)
        energy = max(abs(s) * size for s, size in zip(self.slopes(y), scale[-2:], strict=True))
        states, params = self.split(y)
        own = [equation_scale(p, x, params)
               for p, x in zip(self.problems, states, strict=True)]  # fmt: skip
        return np.concatenate([*own, [max(energy, 1e-300)]])

    def inside(self, y) -> bool:
        states, params = self.split(y)
        return all(inside(p, x, params) for p, x in zip(self.problems, states, strict=True))

    def apart(self, y) -> float:
        """Distance of the two states in natural units, over the order parameters."""
        (a, b), params = self.split(y)
        known = [dict(zip(p.unknowns, x, strict=True))
                 for p, x in zip(self.problems, (a, b), strict=True)]  # fmt: skip
        sizes = {}
        for problem, x in zip(self.problems, (a, b), strict=True):
            sizes |= dict(zip(problem.unknowns, problem.scale(x, params), strict=True))
        off = [(known[0].get(u, 0.0) - known[1].get(u, 0.0)) / s for u, s in sizes.items()]
        return float(np.linalg.norm(off))
