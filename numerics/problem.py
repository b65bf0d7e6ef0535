"""A compiled saddle-point system: numbers out of generated code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np
from sympy import sympify

from numerics.integrator import ALL, Integrator
from numerics.protocol import Evaluation
from numerics.quadrature.moments import Moments
from numerics.quadrature.nodes import NodeRule, SobolRule
from numerics.quadrature.sampled import FINEST_TARGET
from numerics.slopes import update_slopes
from theory.codegen import load
from theory.derive import broken_requirement, check_values
from theory.errors import AnsatzError, ParameterError
from theory.free_energy import FreeEnergy
from theory.system import SaddlePointSystem


class Problem:
    """Residual, energy and observables of a saddle-point system as functions of numbers.

    Made by `SaddlePointSystem.compile`.

    Parameters
    ----------
    model : FreeEnergy
    source : str
        Text of the generated module; everything numerical comes from it.
    derive : callable
        Returns the `SaddlePointSystem` behind it; called only if ``system`` is asked for.
    mode : {"numba", "python"}
    branch : str, optional
        Name of the branch that the system was reduced to.
    rule : NodeRule or SobolRule, optional
        Use this rule for all expectations with a proximal point, in place of the adaptive one.
    whole, reduce : callable, optional
        Return the problem of which this is the reduction to a branch, and the reduction to a branch
        by name.

    Attributes
    ----------
    unknowns, parameters, observables : tuple of str
    form : {"fixed_point", "gradient"}
        The residual is F(x) - x with the explicit updates F, or the gradient of the free energy.
    tied : set of str
        Parameters that must stay equal to one another, since an ansatz requires it.
    """

    def __init__(
        self,
        model: FreeEnergy,
        source: str,
        derive: Callable[[], SaddlePointSystem],
        *,
        mode: str = "numba",
        branch: str | None = None,
        rule: NodeRule | SobolRule | None = None,
        whole: Callable[[], Problem] | None = None,
        reduce: Callable[[str], Problem] | None = None,
    ):
        self.model, self.source, self._derive = model, source, derive
        self.mode, self.branch, self.rule = mode, branch, rule
        self._whole, self._reduce = whole, reduce
        self.module = load(source, mode=mode)
        self.name = model.name
        self.form = self.module.FORM
        self.unknowns = self.module.UNKNOWNS
        self.parameters = tuple(p.name for p in model.parameters)
        self.defaults = {p.name: p.default for p in model.parameters if p.default is not None}
        self._where = {name: i for i, name in enumerate(self.module.OUTPUTS)}
        self.observables = self._outputs("observable ")
        self.conjugates = self._outputs("conjugate ")
        self.own_parameters = self.module.PARAMETERS
        known = {a.name: a for a in (*model.reductions, *model.branches.values())}
        self._ansaetze = [known[name] for name in self.module.ANSAETZE]
        self.tied = {p.name for a in self._ansaetze for pair in a.requires.items() for p in pair}
        self.integrator = Integrator(self.module, rule, self.name)

    def _outputs(self, prefix: str) -> tuple[str, ...]:
        return tuple(k.removeprefix(prefix) for k in self._where if k.startswith(prefix))

    @property
    def roughness(self) -> float:
        """Relative jitter of the residual as a function of the state at one accuracy."""
        if self.integrator.sampled:
            return 1e-6  # points pass through the jumps of the proximal point one by one
        if not self.integrator.smooth:
            return 1e-8
        return 1e-14 if self.integrator.groups else 1e-16

    @property
    def finest(self) -> float:
        """The accuracy beyond which asking for more changes nothing."""
        return FINEST_TARGET if self.integrator.sampled else 0.0

    @functools.cached_property
    def whole(self) -> Problem | None:
        """The same model without the reduction to a branch; None if there was none."""
        return None if self.branch is None or self._whole is None else self._whole()

    @functools.cached_property
    def family(self) -> list[Problem]:
        """Reductions of the whole model to its branches that have fewer unknowns than it."""
        origin = self.whole or self
        if origin._reduce is None:
            return []
        found = [origin._reduce(name) for name in origin.model.branches]
        return [p for p in found if len(p.unknowns) < len(origin.unknowns)]

    def embed(self, x) -> np.ndarray:
        """State of `whole` that a state of this reduced problem stands for."""
        assert self.whole is not None and self.branch is not None
        own = dict(zip(self.unknowns, map(float, x), strict=True))
        image = {str(k): v for k, v in self.model.branches[self.branch].substitution.items()}
        by_symbol = {s: own[str(s)] for e in image.values() for s in sympify(e).free_symbols}
        return np.array([
            own[u] if u in own else float(sympify(image[u]).xreplace(by_symbol))
            for u in self.whole.unknowns
        ])  # fmt: skip

    @functools.cached_property
    def system(self) -> SaddlePointSystem:
        """The symbolic equations."""
        return self._derive()

    def with_rule(self, rule: NodeRule | SobolRule | None) -> Problem:
        """The same problem integrated by another rule."""
        whole, reduce = self._whole, self._reduce
        return Problem(
            self.model, self.source, self._derive, mode=self.mode, branch=self.branch, rule=rule,
            whole=None if whole is None else lambda: whole().with_rule(rule),
            reduce=None if reduce is None else lambda name: reduce(name).with_rule(rule),
        )  # fmt: skip

    def __repr__(self) -> str:
        branch = f", branch={self.branch!r}" if self.branch else ""
        return f"Problem({self.name!r}, unknowns=[{', '.join(self.unknowns)}]{branch})"

    # --- inputs -------------------------------------------------------------------------------

    def values(self, params: Mapping[str, float] | None) -> dict[str, float]:
        """All parameters, defaults filled in and bounds checked."""
        values = check_values(self.model, params or {})
        for ansatz in self._ansaetze:
            broken = broken_requirement(ansatz, values)
            if broken:
                raise AnsatzError(f"{broken}; derive the system with these values, or move the "
                                  "parameters together (NAME,NAME)")  # fmt: skip
        return values

    def controls(self, x, params) -> np.ndarray:
        """Unknowns, then the parameters of the generated module."""
        x = np.asarray(x, dtype=float)
        if x.shape != (len(self.unknowns),):
            raise ParameterError(
                f"{self.name}: a state has {len(self.unknowns)} components "
                f"({', '.join(self.unknowns)}), not shape {x.shape}"
            )
        values = self.values(params)
        return np.concatenate([x, [values[p] for p in self.own_parameters]])

    def scale(self, x, params=None) -> np.ndarray:
        """Positive natural size of each unknown, so that a zero component has one too."""
        x = np.asarray(x, dtype=float)
        out = np.empty(len(self.unknowns))
        self.module.scale(self.controls(np.ones_like(x), params), out)
        return np.maximum(out, np.abs(x))

    def in_domain(self, x, params=None) -> bool:
        """Whether every condition of the model is positive at ``x``."""
        return bool(np.all(np.isfinite(x)) and np.all(self._conditions(x, params) > 0))

    def domain_message(self, x, params=None) -> str:
        """Which conditions fail at ``x``, with their values."""
        found = self._conditions(x, params)
        failed = [
            f"{condition} = {value:.4g}"
            for condition, value in zip(self.module.DOMAIN, found, strict=True)
            if not value > 0
        ]
        return "must be positive: " + ", ".join(failed) if failed else "inside the domain"

    def _conditions(self, x, params) -> np.ndarray:
        out = np.empty(len(self.module.DOMAIN))
        with np.errstate(all="ignore"):
            self.module.domain(self.controls(x, params), out)
        return out

    def starts(self, params=None) -> list[np.ndarray]:
        """Starting points: the model's own for this branch, else a spread over the scales."""
        n = len(self.unknowns)
        labels = self.module.STARTS
        c = self.controls(np.ones(n), params)
        if labels:
            out = np.empty((len(labels), n))
            self.module.starts(c, out)
            chosen = [i for i, b in enumerate(labels) if self.branch in (None, b) or not b]
            return [out[i].copy() for i in chosen]
        scale = np.empty(n)
        self.module.scale(c, scale)
        sizes = (0.5, 1.0, 0.1, 0.02, 2.0, -0.5, -1.0, 5.0)
        return [x for s in sizes if self.in_domain(x := s * scale, params)]

    def edge_energies(self, params=None) -> dict[str, float]:
        """Energies of the states on the edge of the domain that the model declares."""
        out = np.empty(len(self.module.EDGES))
        self.module.edges(self.controls(np.ones(len(self.unknowns)), params), out)
        return dict(zip(self.module.EDGES, map(float, out), strict=True))

    def classify(self, x, params=None, tolerance: float = 1e-4) -> str:
        """Name of the branch that ``x`` belongs to, by which order parameters vanish."""
        size = np.abs(np.asarray(x)) / self.scale(np.zeros(len(self.unknowns)), params)
        alive = {n for n, s in zip(self.unknowns, size, strict=True) if s > tolerance}
        base = {*self.unknowns}
        for ansatz in self._ansaetze:
            if ansatz.name in self.model.branches:
                base |= {str(k) for k in ansatz.substitution}
        patterns = {
            name: {str(s) for s in a.nonzero} & base for name, a in self.model.branches.items()
        }
        tested = set().union(*patterns.values()) if patterns else set()
        matches = [name for name, pattern in patterns.items() if pattern == alive & tested]
        if self.branch in matches:
            return self.branch
        return matches[0] if matches else "solution"

    def canonical(self, x) -> np.ndarray:
        """One representative among the mirror images of a state."""
        x = np.array(x, dtype=float)
        for flip in self.model.mirrors:
            places = [i for i, s in enumerate(self.unknowns) if s in {str(f) for f in flip}]
            if places and x[max(places, key=lambda i: abs(x[i]))] < 0:
                x[places] *= -1
        return x + 0.0

    # --- numbers ------------------------------------------------------------------------------

    def residual(self, x, params=None, accuracy: float | None = None) -> np.ndarray:
        """``F(x) - x``, or the gradient of the free energy; (n,).

        Parameters
        ----------
        accuracy : float, optional
            Relative accuracy of the expectations. At a given accuracy the residual is a smooth,
            deterministic function of ``x``.
        """
        c = self.controls(x, params)
        out = self._assemble(c, self.integrator.moments(c, accuracy, estimate=False).values)
        return self._residual_of(out, c)

    def update(self, x, params=None, accuracy: float | None = None) -> np.ndarray:
        """One state-evolution step ``F(x)`` of a fixed-point system."""
        return np.asarray(x, dtype=float) + self.residual(x, params, accuracy)

    def energy(self, x, params=None, accuracy: float | None = None) -> float:
        """The free energy at ``x``; conjugates take the values that ``x`` implies."""
        return self.evaluate(x, params, accuracy).energy

    def jacobian(self, x, params=None, accuracy: float | None = None) -> np.ndarray | None:
        """Derivative of the residual with respect to the unknowns.

        Exact up to quadrature, since derivatives of expectations act on the Gaussian density; but
        a conjugate that is quadratic in the proximal force depends on the response through the
        surface where the force jumps, and that entry is a central difference.

        Returns
        -------
        (n, n) array, or None where only differences of the residual can serve.
        """
        found = update_slopes(self, x, params, accuracy)
        if found is None:
            return None
        n = len(self.unknowns)
        return found[:, :n] - np.eye(n) * (self.form == "fixed_point")

    def parameter_jacobian(self, x, params=None, accuracy: float | None = None):
        """Derivative of the residual with respect to the parameters.

        Returns
        -------
        (n, k) array, NaN for parameters that only differences can serve; or None as above.
        """
        found = update_slopes(self, x, params, accuracy)
        if found is None:
            return None
        out = np.full((len(self.unknowns), len(self.own_parameters)), np.nan)
        for j, name in enumerate(self.module.KNOWN[len(self.unknowns) :], len(self.unknowns)):
            out[:, self.own_parameters.index(name)] = found[:, j]
        return out

    def evaluate(self, x, params=None, accuracy: float | None = None) -> Evaluation:
        """Residual, energy, parameter slopes and observables, each with its error.

        ``accuracy`` chooses the rule; the error says whether it was reached (`solve` takes finer
        rules until it is).
        """
        c = self.controls(x, params)
        moments = self.integrator.moments(c, accuracy, estimate=True)
        out = self._assemble(c, moments.values)
        errors = self._propagate(c, moments, out)
        n = len(self.unknowns)

        def pick(prefix, array):
            return {
                k.removeprefix(prefix): float(array[i])
                for k, i in self._where.items()
                if k.startswith(prefix)
            }

        energy = self._where["energy"]
        return Evaluation(
            residual=self._residual_of(out, c),
            residual_error=errors[:n],
            energy=float(out[energy]),
            energy_error=float(errors[energy]),
            observables=pick("observable ", out),
            observable_errors=pick("observable ", errors),
            gradient=pick("slope ", out),
            gradient_error=pick("slope ", errors),
            evaluations=moments.points,
            unresolved=moments.unresolved,
            relative_error=moments.relative_error,
        )

    @property
    def diagnoses(self) -> bool:
        """Whether the model declares diagnostics."""
        return bool(self.module.DIAGNOSTICS)

    def diagnostics(self, x, params=None, accuracy: float | None = None):
        """Quantities that say how far a solution is to be trusted, and their errors.

        Returns
        -------
        values, errors : dict of str to float
        """
        values, errors = self._diagnosed(x, params, accuracy)
        names = self.module.DIAGNOSTICS
        return dict(zip(names, values, strict=False)), dict(zip(names, errors, strict=False))

    def transverse(self, x, params=None, accuracy: float | None = None):
        """Jacobian of the residual over the order parameters that vanish on this branch.

        It decides, exactly up to quadrature, whether the branch is stable against them. Its
        derivatives act on the Gaussian density, so that jumps of the proximal point do no harm.

        Returns
        -------
        names : tuple of str
        matrix, errors : (k, k) arrays
        """
        names = tuple(dict.fromkeys(x for x, _ in self.module.TRANSVERSE))
        shape = (len(names), len(names))
        if not names:
            return names, np.zeros(shape), np.zeros(shape)
        values, errors = (a[len(self.module.DIAGNOSTICS) :].reshape(shape)
                          for a in self._diagnosed(x, params, accuracy))  # fmt: skip
        return names, values - np.eye(len(names)) * (self.form == "fixed_point"), errors

    def _diagnosed(self, x, params, accuracy) -> tuple[np.ndarray, np.ndarray]:
        c = self.controls(x, params)
        moments = self.integrator.moments(c, accuracy, estimate=True, extent=ALL)
        size = len(self.module.DIAGNOSTICS) + len(self.module.TRANSVERSE)

        def diagnose(values):
            out = np.empty(size)
            with np.errstate(all="ignore"):
                self.module.diagnose(c, values, out)
            return out

        values = diagnose(moments.values)
        return values, 1e-13 * np.abs(values) + _spread(diagnose, moments, values)

    def conjugate_values(self, x, params=None, accuracy: float | None = None) -> dict[str, float]:
        """The conjugates at ``x``."""
        c = self.controls(x, params)
        out = self._assemble(c, self.integrator.moments(c, accuracy, estimate=False).values)
        return {h: float(out[self._where[f"conjugate {h}"]]) for h in self.conjugates}

    def verify(self, x, params=None, digits: int = 30):
        """Polish a state of a smooth system in arbitrary precision.

        Returns
        -------
        state : list of mpf
        residual : mpf
            What is left of the equations there.

        Raises
        ------
        DerivationError
            For a system with a Moreau envelope (compare with quasi-Monte-Carlo instead).
        """
        from theory.precise import refine

        return refine(self.system, x, self.values(params), digits)

    def moments(self, x, params=None, accuracy: float | None = None) -> Moments:
        """The expectations themselves, with their errors."""
        return self.integrator.moments(self.controls(x, params), accuracy, estimate=True)

    def _residual_of(self, out, c):
        n = len(self.unknowns)
        return out[:n] - c[:n] if self.form == "fixed_point" else out[:n].copy()

    def _assemble(self, c, moments) -> np.ndarray:
        out = np.empty(len(self._where))
        with np.errstate(all="ignore"):
            self.module.assemble(c, moments, out)
        return out

    def _propagate(self, c, moments: Moments, out) -> np.ndarray:
        """First-order bound: rounding, and the changes that each moment's error can cause."""
        total = np.empty(len(out))
        with np.errstate(all="ignore"):
            self.module.magnitudes(c, moments.values, total)
        total *= 4e-15  # of the terms; a few roundings happen inside each
        return total + _spread(lambda values: self._assemble(c, values), moments, out)


@np.errstate(all="ignore")
def _spread(function, moments: Moments, out: np.ndarray) -> np.ndarray:
    """Changes of a function of the moments that each moment's error can cause, added up."""
    total = np.zeros(len(out))
    for k, error in enumerate(moments.errors):
        known = bool(np.isfinite(error))
        shifted = moments.values.copy()
        shifted[k] += error if known else max(moments.magnitudes[k], 1e-3)
        change = np.abs(function(shifted) - out)
        total += change if known else np.where(change > 0, np.inf, 0.0)
    return total
