"""Points of a phase boundary: states and parameters refined until their errors are small enough."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from numerics.continuation.coexistence import Coexistence
from numerics.continuation.tracer import CurvePoint
from numerics.continuation.weights import derivative
from numerics.solvers import Solution
from numerics.solvers.solution import _finite, make_solution
from numerics.status import Status

FINEST = 1e-2  # of the accuracy asked for: rules are not refined beyond


@dataclass(frozen=True)
class BoundaryPoint:
    """One point of a phase boundary.

    Attributes
    ----------
    values : dict
        Both parameters by name.
    error : float
        Of the first parameter.
    states : dict of str to Solution
    slope : float
        Derivative of the first parameter with respect to the second, by Clapeyron's relation.
    mismatch : float
        Relative difference of that and of the slope of the traced points; NaN where too few are
        near.
    residual : float
        In natural units.
    """

    values: dict[str, float]
    error: float
    states: dict[str, Solution]
    slope: float
    mismatch: float
    residual: float

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.values,
            "error": _finite(self.error),
            "slope": _finite(self.slope),
            "clapeyron_mismatch": _finite(self.mismatch),
            "residual": _finite(self.residual),
            "states": {k: s.to_dict() for k, s in self.states.items()},
        }


@dataclass(frozen=True)
class Coexisting:
    """Two states of equal energy, and the equations at the accuracy by which they are known."""

    equations: Coexistence
    y: np.ndarray
    point: CurvePoint

    @property
    def values(self) -> tuple[float, float]:
        return float(self.y[-2]), float(self.y[-1])

    @property
    def apart(self) -> float:
        return self.equations.apart(self.y)

    @property
    def size(self) -> float:
        """Natural size of the first parameter."""
        return float(self.point.scale[-2])

    @property
    def noise(self) -> float:
        """Error of the first parameter from those of the energies."""
        a, b = self.equations.both(self.y)
        return (a.energy_error + b.energy_error) / self._steep + 1e-15 * abs(self.values[0])

    @property
    def doubt(self) -> float:
        """The same with what is left of the energy difference."""
        a, b = self.equations.both(self.y)
        return self.noise + abs(a.energy - b.energy) / self._steep

    @property
    def _steep(self) -> float:
        return max(abs(self.equations.slopes(self.y)[0]), 1e-300)

    @property
    def residual(self) -> float:
        """Largest component in natural units."""
        rows = self.equations.row_scale(self.y)
        return float(np.max(np.abs(self.equations.residual(self.y)) / rows))

    @property
    def slope(self) -> float:
        first, second = self.equations.slopes(self.y)
        return -second / first if first else math.inf

    @property
    def blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Jacobians of both states, in natural units."""
        n, m = self.equations.sizes
        matrix = self.point.scaled_jacobian
        return matrix[:n, :n], matrix[n : n + m, n : n + m]

    @property
    def softest(self) -> float:
        """Smallest singular value of the Jacobians of both states, in natural units."""
        return max(min(float(np.linalg.svd(b)[1][-1]) for b in self.blocks), 1e-300)

    @property
    def blur(self) -> float:
        """Error of the distance between the states, in natural units."""
        n, m = self.equations.sizes
        total, point = 0.0, self.point
        for evaluation, rows in zip(
            self.equations.both(self.y), (slice(0, n), slice(n, n + m)), strict=True
        ):
            inverse = np.linalg.pinv(point.jacobian[rows, rows])
            off = np.abs(inverse) @ (np.abs(evaluation.residual) + evaluation.residual_error)
            off += np.abs(inverse @ point.jacobian[rows, n + m]) * self.doubt
            total += float(np.max(off / point.scale[rows]))
        return total

    def moved(self, held: int) -> Coexisting | None:
        """After one Newton step with one parameter held; None if it leads away."""
        free = np.delete(np.arange(len(self.y)), held)
        try:
            step = -np.linalg.solve(self.point.jacobian[:, free], self.equations.residual(self.y))
        except np.linalg.LinAlgError:
            return None
        length = float(np.linalg.norm(step / self.point.scale[free]))
        y = self.y.copy()
        y[free] += step
        if not length < 0.2 * self.apart or not self.equations.inside(y):
            return None
        return Coexisting(self.equations, y, self.point)

    def at(self, accuracy: float) -> Coexisting:
        return Coexisting(self.equations.at(accuracy), self.y, self.point)


def refined(
    equations: Coexistence, point: CurvePoint, accuracy: float, held: int = -1
) -> Coexisting:
    """A traced point to ``accuracy`` of its first parameter, in natural units.

    ``held`` is the place in y of the parameter that is not moved.

    Energies are stationary in the states, and the rules are as fine as they have to be.
    """
    here = Coexisting(equations, point.y, point)
    if equations.exact:
        return here
    here = here.at(accuracy)
    moved = here.moved(held)
    if moved is None:
        return here
    here, rule = moved, accuracy
    for _ in range(4):
        while here.noise > accuracy * here.size and rule > 1.5 * FINEST * accuracy:
            rule = max(0.2 * rule, FINEST * accuracy)
            here = here.at(rule)
        small = here.doubt - here.noise <= 0.3 * max(here.noise, 0.1 * accuracy * here.size)
        if small and here.residual <= accuracy:
            break
        moved = here.moved(held)
        if moved is None or moved.residual > 0.5 * here.residual:
            break
        here = moved
    return here


def boundary_points(line: list[Coexisting], names: list[str]) -> list[BoundaryPoint]:
    """With errors, Clapeyron slopes and what the traced points say of them."""
    lengths = np.cumsum([0.0] + [
        float(np.linalg.norm((b.y - a.y) / a.point.scale)) for a, b in itertools.pairwise(line)
    ])  # fmt: skip
    return [_point(here, names, _mismatch(line, lengths, k)) for k, here in enumerate(line)]


def _mismatch(line: list[Coexisting], lengths, k: int) -> float:
    low = max(0, min(k - 3, len(line) - 7))
    near = slice(low, low + 7)
    slope = line[k].slope
    if len(line) < 5 or not math.isfinite(slope):
        return math.nan
    s = lengths[near] - lengths[k]
    ds = [derivative(s, np.array([p.values[i] for p in line[near]])) for i in (0, 1)]
    # both as directions, so that neither a vertical nor a horizontal line divides by zero
    scale = line[k].point.scale[-2:]
    traced = np.array(ds) / scale
    stated = np.array([slope, 1.0]) / scale
    traced, stated = traced / np.linalg.norm(traced), stated / np.linalg.norm(stated)
    return float(abs(traced[0] * stated[1] - traced[1] * stated[0]))


def _point(here: Coexisting, names: list[str], mismatch: float) -> BoundaryPoint:
    equations = here.equations
    states, params = equations.split(here.y)
    n, m = equations.sizes
    pair = equations.both(here.y)
    solutions = {}
    for name, problem, x, evaluation, rows in zip(
        names, equations.problems, states, pair, (slice(0, n), slice(n, n + m)), strict=True
    ):
        solutions[name] = make_solution(
            problem, x, params, evaluation, here.point.jacobian[rows, rows], Status.CONVERGED,
            here.point.steps, max(equations.tolerance, 1e-10), equations.accuracy,
            {"accuracy": equations.accuracy, "method": "continuation"}, refined=False,
        )  # fmt: skip
    # the energies' errors from those of the states
    second = sum(s.energy_error - e.energy_error
                 for s, e in zip(solutions.values(), pair, strict=True))  # fmt: skip
    error = here.doubt + second / max(abs(equations.slopes(here.y)[0]), 1e-300)
    values = dict(zip(equations.parameters, here.values, strict=True))
    return BoundaryPoint(values, error, solutions, here.slope, mismatch, here.residual)
