"""All expectations of one generated module, each group integrated by the rule that fits it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from numerics.quadrature import lines, planar, plane, sampled, smooth
from numerics.quadrature.moments import Moments, covariance_root
from numerics.quadrature.nodes import NodeRule, SobolRule
from theory.errors import DomainError

DEFAULT_ACCURACY = 1e-7
# The grid of the plane rule moves with the state, those of the lines do not: where little accuracy
# is asked, smooth dependence matters more to continuation than the value.
PLANE = 3e-5
NEEDED, SLOPES, ALL = range(3)  # moments that are always needed, of the Jacobian too, all


class Integrator:
    """Moments of a generated module at given controls.

    Parameters
    ----------
    module : module
        From `theory.codegen.load`.
    rule : NodeRule or SobolRule, optional
        For all expectations with a proximal point, in place of the adaptive one.
    name : str
        Of the model, for messages.
    """

    def __init__(self, module: ModuleType, rule: NodeRule | SobolRule | None, name: str):
        self.module, self.rule, self.name = module, rule, name
        self.groups = module.GROUPS
        self._memo: dict[tuple, Moments] = {}
        self._sums: dict[tuple, lines.Sums] = {}
        self._constant: dict[tuple, Moments] = {}

    @property
    def smooth(self) -> bool:
        """Whether no expectation has a proximal point that may jump."""
        return self.rule is None and all(
            g["kind"] == "smooth" or g.get("tensor", False) for g in self.groups
        )

    @property
    def sampled(self) -> bool:
        """Whether some expectation is a mean over points, whose error falls slowly."""
        return any(
            len(g["variables"]) > max(smooth.LADDERS) if g["kind"] == "smooth"
            else g["kind"] == "proximal" and self.rule is None and not g["tensor"]
            for g in self.groups
        )  # fmt: skip

    def forget(self) -> None:
        """Drop what is remembered."""
        self._memo.clear()
        self._sums.clear()
        self._constant.clear()

    def moments(
        self, c: np.ndarray, accuracy: float | None, *, estimate: bool, extent: int = NEEDED
    ) -> Moments:
        """Moments; without ``estimate`` their errors are NaN (and cost nothing).

        ``extent`` adds, group by group, those of the Jacobian, and those of diagnostics.
        """
        target = DEFAULT_ACCURACY if accuracy is None else float(accuracy)
        key = (c.tobytes(), target, estimate, extent)
        if key not in self._memo:
            if len(self._memo) > 8:
                self._memo.pop(next(iter(self._memo)))
            self._memo[key] = self._integrate(c, target, estimate, extent)
        return self._memo[key]

    def _integrate(self, c, target, estimate, extent) -> Moments:
        parts: list[Moments | None] = [
            None if g["late"] else self._known(k, c, target, estimate, extent)
            for k, g in enumerate(self.groups)
        ]
        if any(part is None for part in parts):
            parts = self._late(parts, c, target, estimate, extent)
        done = [p for p in parts if p is not None]
        if not done:
            empty = np.zeros(0)
            return Moments(empty, empty, empty, 1)
        return Moments(
            np.concatenate([p.values for p in done]),
            np.concatenate([p.errors for p in done]),
            np.concatenate([p.magnitudes for p in done]),
            sum(p.points for p in done),
            max(p.unresolved for p in done),
        )

    def _known(self, k, c, target, estimate, extent) -> Moments:
        """A group of expectations; one that depends on parameters only is integrated once."""
        if not self.groups[k]["constant"]:
            return self._group(k, c, target, estimate, extent)
        key = (k, c[len(self.module.UNKNOWNS) :].tobytes(), target, extent)
        if key not in self._constant:
            if len(self._constant) > 32:
                self._constant.clear()
            self._constant[key] = self._group(k, c, target, True, extent)
        return self._constant[key]

    def _late(self, parts, c, target, estimate, extent) -> list[Moments | None]:
        """Expectations over measures that depend on conjugates, whose values are known by now.

        The errors of the conjugates enter those of the moments by shifting one after the other.
        """
        late = [k for k, part in enumerate(parts) if part is None]
        hats, errors = self._conjugates(parts, c, estimate)
        whole = np.concatenate([c, hats])
        for k in late:
            part = self._group(k, whole, target, estimate, extent)
            spread = np.zeros(len(part.values))
            for j in np.flatnonzero(errors > 0) if estimate else ():
                moved = whole.copy()
                moved[len(c) + j] += errors[j]
                there = self._group(k, moved, target, False, extent)
                spread += np.abs(there.values - part.values)
            parts[k] = Moments(part.values, part.errors + spread, part.magnitudes, part.points,
                               part.unresolved)  # fmt: skip
        return parts

    def _conjugates(self, parts, c, estimate) -> tuple[np.ndarray, np.ndarray]:
        sizes = [g["counts"][NEEDED] for g in self.groups]
        values, errors = np.zeros(sum(sizes)), np.zeros(sum(sizes))
        place = 0
        for part, size in zip(parts, sizes, strict=True):
            if part is not None:
                values[place : place + size] = part.values[:size]
                errors[place : place + size] = part.errors[:size] if estimate else 0.0
            place += size
        count = len([n for n in self.module.OUTPUTS if n.startswith("conjugate ")])
        hats, total = np.empty(count), np.zeros(count)
        self.module.conjugates(c, values, hats)
        for k in np.flatnonzero(errors > 0):
            shifted, moved = values.copy(), np.empty(count)
            shifted[k] += errors[k]
            self.module.conjugates(c, shifted, moved)
            total += np.abs(moved - hats)
        return hats, total

    def _planar(self, k, c, spec, target, estimate, count) -> Moments:
        """The plane of proximal points where its error meets the target, else line by line."""
        group = self.groups[k]
        sizes = group["context"], group["features"], count
        kernels, always = planar.Kernels(self.module, *sizes, f"_{k}"), group["counts"][NEEDED]
        # integrands with derivatives of the proximal point are singular where it folds
        found = None
        if count <= group["counts"][SLOPES] and target < PLANE:
            # those of the Jacobian weigh the tails more
            sharper = target if count == always else 0.05 * target
            found = plane.integrate(kernels, spec, c, sharper, estimate, always)
        if found is not None and (not estimate or found.relative_error <= target):
            return found
        other = lines.integrate(self._rungs(k, c, spec, kernels), target, estimate, always)
        if found is None or other.relative_error < found.relative_error:
            return other
        return found

    def _rungs(self, k, c, spec, kernels) -> Callable[[int], lines.Sums]:
        """Rules of the ladder of lines at one state; each is applied once."""
        count = kernels.moments

        def rule(level: int) -> lines.Sums:
            key = (k, c.tobytes(), level)
            if key not in self._sums or len(self._sums[key][0]) < count:
                if len(self._sums) > 32:
                    self._sums.pop(next(iter(self._sums)))
                self._sums[key] = lines.apply(kernels, spec, c, lines.LADDER[level])
            sums, sizes, *rest = self._sums[key]
            return sums[:count], sizes[:count], *rest

        return rule

    def _group(self, k, c, target, estimate, extent) -> Moments:
        """Integrate one group of expectations by the rule that fits it."""
        group, module = self.groups[k], self.module
        n, count = len(group["variables"]), group["counts"][extent]
        if count == 0:
            nothing = np.zeros(0)
            return Moments(nothing, nothing, nothing, 0)
        fields = group.get("fields", [])
        mean, covariance = np.zeros(n), np.zeros((n, n))
        response = np.zeros((len(fields), len(fields)))
        getattr(module, f"measure_{k}")(c, mean, covariance, response)
        if not np.all(np.isfinite(covariance)):
            raise DomainError(f"{self.name}: the covariance of the fields is not finite")
        kind = group["kind"]
        if kind == "planar" and self.rule is None:
            spec = planar.specification(group, mean, covariance, response)
            if spec is not None:
                return self._planar(k, c, spec, target, estimate, count)
        root = covariance_root(covariance)
        if kind == "smooth":
            kernel = getattr(module, f"smooth_sums_{k}")

            def sums(nodes, weights):
                total, magnitude = np.empty(count), np.empty(count)
                kernel(nodes, weights, mean, root, c, group["context"], count, total, magnitude)
                return total, magnitude

            if n <= max(smooth.LADDERS):
                return smooth.integrate(sums, n, min(target, 1e-10))
            return sampled.sobol_for(sums, n, target)
        precision = np.linalg.inv(response)
        sizes = np.array([group["nd_context"], count, group["starts"]])
        local = isinstance(self.rule, NodeRule) and self.rule.local
        kernel = getattr(module, f"proximal_sums_{k}")
        where = [np.array(group[name], dtype=np.int64) for name in ("fields", "sources")]

        def proximal_sums(nodes, weights):
            total, magnitude = np.empty(count), np.empty(count)
            kernel(nodes, weights, mean, root, precision, c, *where, sizes, local,
                   total, magnitude)  # fmt: skip
            return total, magnitude

        if isinstance(self.rule, NodeRule):
            return sampled.at_nodes(proximal_sums, self.rule)
        if isinstance(self.rule, SobolRule):
            return sampled.sobol(proximal_sums, n, self.rule)
        if group["tensor"]:
            return smooth.integrate(proximal_sums, n, min(target, 1e-10))
        return sampled.sobol_for(proximal_sums, n, target)
