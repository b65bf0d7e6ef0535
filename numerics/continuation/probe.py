"""Test functions of a point of a branch, and where they change their sign on a segment."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from numerics.continuation.equations import BranchEquations
from numerics.continuation.stability import full_jacobian, rates, unstable, whole
from numerics.continuation.tracer import CurvePoint, correct, make_point
from numerics.status import Status

UserFunction = Callable[[Mapping[str, float], Mapping[str, float]], float]


@dataclass(frozen=True)
class Facts:
    """What the test functions need to know of a point."""

    rates: np.ndarray
    turning: float
    determinant: tuple[float, float]
    user: dict[str, float]

    @property
    def unstable(self) -> int:
        return unstable(self.rates)


@dataclass(frozen=True)
class Root:
    """A zero of a test function on the segment from 0 to 1."""

    test: str
    place: float
    index: int = 0


class Probe:
    """Test functions along one branch.

    Parameters
    ----------
    equations : BranchEquations
    functions : mapping of str to callable
        User functions ``f(state, params)``; their zeros are events.
    stability : bool
        Without, folds and branch points of the branch's own equations are all that is seen.
    """

    def __init__(self, equations: BranchEquations, functions: Mapping[str, UserFunction] | None,
                 stability: bool = True):  # fmt: skip
        self.equations, self.functions = equations, dict(functions or {})
        self.stability = stability
        self.problem = equations.problem
        self.reduced = whole(self.problem) is not self.problem
        self.latest: tuple[CurvePoint, Facts] | None = None

    def facts(self, point: CurvePoint) -> Facts:
        """Evaluate all test functions at a point (remembered for the last one)."""
        if self.latest is not None and self.latest[0] is point:
            return self.latest[1]
        x, params = self.equations.at(point.y)
        own = point.jacobian[:, :-1]
        if not self.stability:
            values = np.zeros(0)
        elif self.reduced:
            matrix = full_jacobian(self.problem, x, params, self.equations.accuracy)
            values = rates(whole(self.problem), matrix)
        else:
            values = rates(self.problem, own)
        sign, size = np.linalg.slogdet(np.vstack([point.scaled_jacobian, point.tangent]))
        state = dict(zip(self.problem.unknowns, map(float, x), strict=True))
        user = {name: float(f(state, params)) for name, f in self.functions.items()}
        facts = Facts(values, float(point.tangent[-1]), (float(sign), float(size)), user)
        self.latest = (point, facts)
        return facts

    def singular(self, point: CurvePoint) -> bool:
        """Whether an event is so near to a point that its test functions have no clear sign."""
        level = 1e-6 if self.equations.exact else 2e-2
        sizes = np.linalg.svd(point.scaled_jacobian[:, :-1])[1]
        found = np.abs(self.facts(point).rates.real)
        soft = min(sizes[-1], *found) if len(found) else sizes[-1]
        return bool(soft <= level * max(sizes[0], *found, 1.0))

    def edge(self, point: CurvePoint) -> bool:
        """Whether the edge of the domain is within reach of a difference quotient."""
        for k, size in enumerate(point.scale):
            for sign in (1.0, -1.0):
                y = point.y.copy()
                y[k] += sign * 1e-4 * size
                if not self.equations.inside(y):
                    return True
        return False

    def roots(self, here, new, before: Facts, after: Facts) -> list[Root | None]:
        roots = []
        if before.turning * after.turning < 0:
            roots.append(self._root(here, new, "fold", 0, lambda f: f.turning))
        if before.determinant[0] * after.determinant[0] < 0:
            zero = before.determinant[1]
            roots.append(self._root(
                here, new, "determinant", 0,
                lambda f: f.determinant[0] * math.exp(min(f.determinant[1] - zero, 50.0)),
            ))  # fmt: skip
        if np.all(np.isfinite(before.rates)) and np.all(np.isfinite(after.rates)):
            low, high = sorted((before.unstable, after.unstable))
            for k in range(low, high):
                roots.append(self._root(here, new, "rate", k, lambda f, k=k: f.rates[k].real))
        for k, name in enumerate(self.functions):
            if before.user[name] * after.user[name] < 0 or (
                after.user[name] == 0 and before.user[name] != 0
            ):
                roots.append(self._root(here, new, "user", k, lambda f, n=name: f.user[n]))
        return roots

    def on_segment(self, here: CurvePoint, new: CurvePoint, place: float) -> CurvePoint | None:
        """The corrected point at a fraction of the chord."""
        chord = (new.y - here.y) / here.scale
        length = np.linalg.norm(chord)
        if place in (0.0, 1.0) or length == 0.0:
            return here if place == 0.0 else new
        guess = here.y + place * (new.y - here.y)
        found = correct(self.equations, guess, chord / length, jacobian=here.jacobian, max_steps=20)
        if found.status is not Status.CONVERGED:
            return None
        return make_point(self.equations, found, here.tangent)

    def _root(self, here, new, test: str, index: int, function) -> Root | None:
        def value(place):
            point = self.on_segment(here, new, place)
            result = math.nan if point is None else function(self.facts(point))
            if not math.isfinite(result):
                raise FloatingPointError
            return result

        from scipy.optimize import brentq  # slow to import

        try:
            tolerance = 1e-10 if self.equations.exact else 1e-3
            return Root(test, brentq(value, 0.0, 1.0, xtol=tolerance, rtol=1e-12), index)
        except (FloatingPointError, ValueError):
            return self._bisected(here, new, test, index, function)

    def _bisected(self, here, new, test, index, function) -> Root | None:
        """Where correction fails close to a branch point: the bracket that can be had."""
        left, right, sign = 0.0, 1.0, math.copysign(1.0, function(self.facts(here)))
        for _ in range(40 if self.equations.exact else 8):
            middle = 0.5 * (left + right)
            point = self.on_segment(here, new, middle)
            if point is None:
                break
            if function(self.facts(point)) * sign > 0:
                left = middle
            else:
                right = middle
        return Root(test, 0.5 * (left + right), index)
