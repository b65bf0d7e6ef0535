"""Plain Python functions as a problem: for equations that are not a `theory.FreeEnergy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from numerics.protocol import Evaluation
from theory.joint import check_known, separate


class PlainProblem:
    """Equations given as a function.

    Parameters
    ----------
    residual : callable
        ``residual(x, params) -> (n,) array``, zero at a solution.
    unknowns : sequence of str
    parameters : mapping of str to float
        Names and default values.
    energy : callable, optional
        ``energy(x, params) -> float``, stationary at a solution; without it energies are NaN.
    jacobian : callable, optional
        ``jacobian(x, params) -> (n, n) array``; differences where absent.
    form : {"equations", "gradient", "fixed_point"}
        What the residual is, which decides the sign of stability: the right-hand side of a flow
        (or F(x) - x), or the gradient of an energy.
    domain : callable, optional
        ``domain(x, params) -> bool``.
    starts : sequence of states, optional
    scale : sequence of float, optional
        Natural size of each unknown (1).
    mirrors : sequence of sequences of str
        Unknowns whose joint change of sign is a symmetry.
    roughness : float
        Relative noise of the residual, which sets the step of differences.
    """

    def __init__(
        self,
        residual: Callable,
        unknowns: Sequence[str],
        parameters: Mapping[str, float],
        *,
        energy: Callable | None = None,
        jacobian: Callable | None = None,
        form: str = "equations",
        domain: Callable | None = None,
        starts: Sequence = (),
        scale: Sequence[float] | None = None,
        mirrors: Sequence[Sequence[str]] = (),
        roughness: float = 1e-16,
        name: str = "equations",
    ):
        self.name, self.branch, self.form, self.roughness = name, None, form, roughness
        self.unknowns, self.defaults = tuple(unknowns), dict(parameters)
        self._residual, self._energy, self._jacobian = residual, energy, jacobian
        self._domain, self._starts = domain, starts
        self._scale = np.ones(len(self.unknowns)) if scale is None else np.asarray(scale, float)
        self._mirrors = [[self.unknowns.index(u) for u in flip] for flip in mirrors]

    def values(self, params: Mapping[str, float] | None = None) -> dict[str, float]:
        given = separate(params or {})
        for name in given:
            if name not in self.defaults:
                check_known(name, self.defaults, self.name)
        return {**self.defaults, **given}

    def residual(self, x, params=None, accuracy: float | None = None) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(self._residual(np.asarray(x, float), self.values(params)), float)

    def jacobian(self, x, params=None, accuracy: float | None = None) -> np.ndarray | None:
        if self._jacobian is None:
            return None
        return np.asarray(self._jacobian(np.asarray(x, float), self.values(params)), float)

    def energy(self, x, params=None, accuracy: float | None = None) -> float:
        if self._energy is None:
            return float("nan")
        return float(self._energy(np.asarray(x, float), self.values(params)))

    def evaluate(self, x, params=None, accuracy: float | None = None) -> Evaluation:
        values = self.values(params)
        residual, energy = self.residual(x, values), self.energy(x, values)
        slopes, bars = {}, {}
        for name, here in values.items() if self._energy is not None else ():
            h = 6e-6 * max(abs(here), 1e-2)
            ahead, behind = (self.energy(x, {**values, name: here + s * h}) for s in (1, -1))
            slopes[name] = (ahead - behind) / (2 * h)
            bars[name] = 1e-15 * abs(energy) / h + 1e-10 * abs(slopes[name])
        return Evaluation(residual, 1e-15 * (np.abs(residual) + self.scale(x)), energy,
                          1e-15 * abs(energy), gradient=slopes, gradient_error=bars)  # fmt: skip

    def scale(self, x, params=None) -> np.ndarray:
        return np.maximum(self._scale, np.abs(np.asarray(x, float)))

    def in_domain(self, x, params=None) -> bool:
        finite = bool(np.all(np.isfinite(x)))
        return finite and (self._domain is None or bool(self._domain(x, self.values(params))))

    def domain_message(self, x, params=None) -> str:
        return "inside the domain" if self.in_domain(x, params) else "outside the domain"

    def starts(self, params=None) -> list[np.ndarray]:
        if len(self._starts):
            return [np.asarray(s, float) for s in self._starts]
        return [s * self._scale for s in (0.5, 1.0, 0.1, -0.5, -1.0, 2.0)]

    def classify(self, x, params=None, tolerance: float = 1e-4) -> str:
        return "solution"

    def canonical(self, x) -> np.ndarray:
        x = np.array(x, dtype=float)
        for places in self._mirrors:
            if x[max(places, key=lambda i: abs(x[i]))] < 0:
                x[places] *= -1
        return x + 0.0
