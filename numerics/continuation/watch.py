"""Finding events between two neighbouring points of a branch, and solving for them."""

from __future__ import annotations

import math

import numpy as np

from numerics.continuation import polish
from numerics.continuation.equations import BranchEquations
from numerics.continuation.event import Event
from numerics.continuation.probe import Facts, Probe, Root
from numerics.continuation.root import root
from numerics.continuation.stability import (
    embed,
    full_jacobian,
    softest,
    whole,
)
from numerics.continuation.tracer import Corrected, CurvePoint, make_point
from numerics.solvers.derivatives import slope_noise
from numerics.solvers.solution import Solution, make_solution
from numerics.status import Status

SOLVED = ("fold", "pitchfork", "transcritical", "branch point")
BRANCHING = ("pitchfork", "transcritical", "branch point")
UNFOLDED = 1e-9  # a larger unfolding parameter means that branches pass without touching


class Jumped(Exception):
    """Two points lie on different branches that pass close to one another."""


class Watcher(Probe):
    """Events along one branch, from its test functions; the arguments are those of `Probe`."""

    def between(self, here: CurvePoint, new: CurvePoint) -> list[Event]:
        """All events on the segment, in order.

        Raises
        ------
        Jumped
            If the determinant changes its sign without a branch point.
        """
        before, after = self.facts(here), self.facts(new)
        roots = [r for r in self.roots(here, new, before, after) if r is not None]
        self.latest = (new, after)
        groups: list[list[Root]] = []
        merge = 1e-5 if self.equations.exact else 1e-2
        for zero in sorted(roots, key=lambda r: r.place):
            together = groups and zero.place - groups[-1][-1].place <= merge
            if together and zero.test != "user" and groups[-1][0].test != "user":
                groups[-1].append(zero)
            else:
                groups.append([zero])
        events = [self._event(here, new, group, before, after) for group in groups]
        if self.equations.exact and (self.edge(here) or self.edge(new)):
            # differences are poor within a step of the domain's edge: only what Newton confirms
            events = [e for e in events if e is None or e.status == "polished"]
        self.latest = (new, after)
        found = [e for e in events if e is not None]
        # along its side branch, the parameter turns at a pitchfork
        vertices = [e for e in found if e.kind in BRANCHING and not e.transverse]
        return [e for e in found if e.kind != "fold" or not any(self._same(e, v) for v in vertices)]

    def _same(self, a: Event, b: Event) -> bool:
        if not self.equations.exact and abs(a.value - b.value) <= a.error + b.error:
            return True
        scale = self.problem.scale(b.state.x, b.state.params)
        return float(np.max(np.abs(a.state.x - b.state.x) / scale)) < 1e-2

    # --- from roots to events -----------------------------------------------------------------

    def _event(self, here, new, group: list[Root], before: Facts, after: Facts) -> Event | None:
        tests = {r.test for r in group}
        place = group[0].place
        point = self.on_segment(here, new, place)
        if point is None:
            guess = here.y + place * (new.y - here.y)
            found = Corrected(guess, None, math.nan, 0, Status.STALLED)
            point = make_point(self.equations, found, here.tangent)
        self.latest = None
        gains = {"unstable before": before.unstable, "unstable after": after.unstable}
        if tests == {"user"}:
            name = list(self.functions)[group[0].index]
            return self._user(point, here, new, name)
        own = bool(tests & {"fold", "determinant"})
        facts = self.facts(point)
        if not own and self._oscillatory(facts, group):
            return self._plain(point, here, new, "oscillatory", gains)
        matrix = point.scaled_jacobian
        v, w, smallest = polish.null_vectors(matrix[:, :-1])
        sizes = np.linalg.svd(matrix[:, :-1])[1]
        if not own and smallest < 1e-5 * max(sizes[0], 1.0):
            own = True
        if "determinant" in tests or (own and "fold" not in tests):
            return self._branch_point(point, here, new, v, w, gains)
        if own:
            return self._fold(point, here, new, v, w, gains)
        return self._transverse(point, here, new, group[0].index, before, after, gains)

    def _oscillatory(self, facts: Facts, group: list[Root]) -> bool:
        k = min(r.index for r in group)
        return k < len(facts.rates) and abs(facts.rates[k].imag) > 1e-6

    def _fold(self, point, here, new, v, w, gains) -> Event:
        scale, rows = point.scale, point.row_scale
        details = dict(gains)
        second, _ = polish.curvature(self.equations, point.y, v, w, scale, rows)
        details["curvature"] = second
        direction = self._lifted(point, v * scale[:-1])
        slope = abs(float(w @ point.scaled_jacobian[:, -1])) / scale[-1]
        noise = float(np.abs(w) @ (self._noise(point) / rows)) / max(slope, 1e-300)
        if self.equations.exact:
            system = polish.singular_system(self.equations, scale, rows, transverse=False)
            done = polish.newton(system, np.append(point.y, v), len(point.y),
                                 np.append(scale, np.ones(len(v))))  # fmt: skip
            if self._accept(done, point, here, new):
                return self._polished(done, "fold", direction, False, details, noise)
        return self._located(point, here, new, "fold", noise, direction, False, details)

    def _branch_point(self, point, here, new, v, w, gains) -> Event:
        scale, rows = point.scale, point.row_scale
        done = None
        if self.equations.exact:
            system = polish.branch_point_system(self.equations, scale, rows)
            start = np.concatenate([point.y, w, [0.0]])
            done = polish.newton(system, start, len(point.y), np.append(scale, np.ones(len(w) + 1)))
            done = done if self._accept(done, point, here, new) else None
        # off the point itself the quadratic coefficient of a pitchfork is not zero
        at = point.y if done is None else done.y
        second, third = polish.curvature(self.equations, at, v, w, scale, rows)
        details = {**gains, "quadratic": second, "cubic": third}
        kind = "transcritical" if abs(second) > 1e-4 * max(abs(third), 1e-6) else "pitchfork"
        if not self.equations.exact:
            kind = "branch point"
        direction = self._lifted(point, v * scale[:-1])
        if self.equations.exact:
            pace = polish.eigenvalue_slope(self.equations, point.y, v, w, scale, rows)
            size = float(np.linalg.norm(point.scaled_jacobian[:, :-1], 2))
            # differences err by the third derivative, where the first one vanishes
            noise = self._relative(point) * max(size, abs(third), 1.0) / max(abs(pace), 1e-300)
        else:
            noise = self._rate_noise(point, here, new, self._critical(here, new))
        if done is not None:
            if abs(done.rest[-1]) >= UNFOLDED:
                raise Jumped
            message = polish.criticality(self.equations, done.y) if kind == "pitchfork" else ""
            return self._polished(done, kind, direction, False, details, noise, message)
        deficit = np.linalg.svd(point.scaled_jacobian)[1]
        if deficit[-1] > (1e-4 if self.equations.exact else 2e-2) * deficit[0]:
            raise Jumped
        return self._located(point, here, new, kind, noise, direction, False, details)

    def _transverse(self, point, here, new, index, before, after, gains) -> Event:
        x, params = self.equations.at(point.y)
        full = full_jacobian(self.problem, x, params, self.equations.accuracy)
        v, _, _ = polish.null_vectors(full)
        scale, rows = point.scale, point.row_scale
        noise = self._rate_noise(point, here, new, index)
        if not self.equations.exact and hasattr(self.problem, "transverse"):
            found = self._softened(point, here, new)
            if found is not None:
                return Event(**{**found, "direction": v, "details": dict(gains)})
        if self.equations.exact:
            system = polish.singular_system(self.equations, scale, rows, transverse=True)
            done = polish.newton(system, np.append(point.y, v), len(point.y),
                                 np.append(scale, np.ones(len(v))))  # fmt: skip
            if self._accept(done, point, here, new):
                message = self._criticality(done.y)
                return self._polished(done, "pitchfork", v, True, dict(gains), noise, message)
        return self._located(point, here, new, "pitchfork", noise, v, True, dict(gains))

    def _criticality(self, y) -> str:
        """Of a transverse pitchfork, which is one of the full system."""
        x, params = self.equations.at(y)
        full, name = whole(self.problem), self.equations.parameter
        others = {k: v for k, v in params.items() if k in full.values(params) and k != name}
        span = (0.0, self.equations.width)
        equations = BranchEquations(full, name, others, span, self.equations.accuracy)
        return polish.criticality(equations, np.append(embed(self.problem, x), y[-1]))

    def _softened(self, point, here, new) -> dict | None:
        """Root of a transverse rate, which is known to quadrature accuracy, along the branch."""
        low, high = sorted((float(here.y[-1]), float(new.y[-1])))
        accuracy = min(self.equations.accuracy, 1e-6)
        found = root(
            self.problem, softest(self.problem, accuracy), self.equations.params,
            self.equations.parameter, (low, high), guess=float(point.y[-1]),
            start=self.solution(point.y, point.steps, point.jacobian), accuracy=accuracy,
        )  # fmt: skip
        if found.status is not Status.CONVERGED:
            return None
        return {
            "kind": "pitchfork", "parameter": found.parameter, "value": found.value,
            "error": found.error, "interval": found.interval, "residual": abs(found.residual),
            "status": "polished", "states": found.states, "params": dict(self.equations.params),
            "transverse": True,
        }  # fmt: skip

    def _user(self, point, here, new, name: str) -> Event:
        noise = 1e-14 * abs(point.y[-1]) if self.equations.exact else self._drift(point)
        event = self._located(point, here, new, "user", noise, None, False, {})
        return Event(**{**vars(event), "message": name})

    def _plain(self, point, here, new, kind: str, details) -> Event:
        noise = 0.0 if self.equations.exact else self._drift(point)
        return self._located(point, here, new, kind, noise, None, False, details)

    # --- errors -------------------------------------------------------------------------------

    def _noise(self, point: CurvePoint) -> np.ndarray:
        x, params = self.equations.at(point.y)
        return self.problem.evaluate(x, params, self.equations.accuracy).residual_error

    def _drift(self, point: CurvePoint) -> float:
        """Error of the parameter at a zero of a function, from that of the state."""
        relative = float(np.max(self._noise(point) / point.row_scale, initial=0.0))
        return relative * point.scale[-1] * 10.0

    def _critical(self, here, new) -> int:
        counts = sorted((self.facts(here).unstable, self.facts(new).unstable))
        return min(counts[0], len(self.facts(here).rates) - 1)

    def _relative(self, point: CurvePoint) -> float:
        """Relative error of the Jacobian: of quadrature and of differences."""
        x, params = self.equations.at(point.y)
        relative = slope_noise(self.problem, x, params)
        if getattr(self.problem, "roughness", 1e-16) > 1e-15:
            relative += self.problem.evaluate(x, params, self.equations.accuracy).relative_error
        return relative

    def _rate_noise(self, point, here, new, index: int) -> float:
        """Quadrature error of a rate over its slope in the parameter."""
        relative = self._relative(point)
        if relative == 0.0:
            return 0.0
        a, b = self.facts(here), self.facts(new)
        if not len(a.rates):
            return math.nan
        change = abs((b.rates[index] - a.rates[index]).real)
        slope = change / max(abs(new.y[-1] - here.y[-1]), 1e-300)
        return relative * float(np.max(np.abs(a.rates))) / max(slope, 1e-300)

    def _accept(self, done: polish.Polished, point, here, new) -> bool:
        """Whether Newton stayed on the segment (and did converge)."""
        moved = float(np.linalg.norm((done.y - point.y) / point.scale))
        chord = here.distance(new.y)
        return done.converged and moved <= max(chord, 1e-6)

    def _polished(
        self, done: polish.Polished, kind, direction, transverse, details, noise, message=""
    ) -> Event:
        value, error = float(done.y[-1]), float(done.error[-1]) + noise
        error = max(error, 4 * polish.EPS * abs(value), 1e-15)
        state = self.solution(done.y, 0)
        return Event(
            kind, self.equations.parameter, value, error, (value - error, value + error),
            done.residual, "polished", {state.kind: state}, dict(self.equations.params),
            direction=direction, transverse=transverse, message=message, details=details,
        )  # fmt: skip

    def _located(self, point, here, new, kind, noise, direction, transverse, details) -> Event:
        value = float(point.y[-1])
        chord = abs(new.y[-1] - here.y[-1])
        error = noise + (1e-9 if self.equations.exact else 4e-3) * chord + 1e-15 * abs(value)
        status = "located"
        if not math.isfinite(point.residual) or (self.equations.exact and kind in SOLVED):
            # Newton should have settled it: all that is known is the segment
            status, error = "guessed", chord
        state = self.solution(point.y, point.steps, point.jacobian)
        return Event(
            kind, self.equations.parameter, value, error, (value - error, value + error),
            point.residual, status, {state.kind: state}, dict(self.equations.params),
            direction=direction, transverse=transverse, details=details,
        )  # fmt: skip

    def _lifted(self, point: CurvePoint, own: np.ndarray) -> np.ndarray:
        """A direction of the own unknowns, in the full system."""
        x, _ = self.equations.at(point.y)
        if not self.reduced:
            return own / max(np.linalg.norm(own), 1e-300)
        lifted = (embed(self.problem, x + 1e-3 * own) - embed(self.problem, x)) / 1e-3
        return lifted / max(np.linalg.norm(lifted), 1e-300)

    def solution(self, y: np.ndarray, steps: int, jacobian: np.ndarray | None = None) -> Solution:
        """Everything at a point, with errors."""
        x, params = self.equations.at(y)
        accuracy = self.equations.accuracy
        evaluation = self.problem.evaluate(x, params, accuracy)
        if jacobian is None:
            jacobian = self.equations.jacobian(y)
        return make_solution(
            self.problem, x, params, evaluation, jacobian[:, :-1], Status.CONVERGED, steps,
            max(self.equations.tolerance, 1e-10), accuracy,
            {"accuracy": accuracy, "method": "continuation"}, refined=False,
        )  # fmt: skip
