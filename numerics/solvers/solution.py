"""The result of a solve: numbers with their errors and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from numerics.protocol import Evaluation, ProblemLike, equation_scale
from numerics.solvers.derivatives import LOOSE, state_jacobian
from numerics.status import Status

DIAGNOSTIC = 3e-5  # accuracy of diagnostics: they are looked at, not built upon


@dataclass(frozen=True)
class Solution:
    """A state, its energy and observables.

    Attributes
    ----------
    model, branch, kind : str
        ``branch`` is what was asked for, ``kind`` what was found (they differ where the branch does
        not exist and the equations fall back to another one).
    state, errors : dict
        Order parameters; error bars include quadrature and residual.
    params : dict
    energy, energy_error : float
    observables, observable_errors : dict
        With the model's diagnostics, where the solution was refined.
    gradient : dict
        dE/d(parameter) by the envelope theorem, with ``gradient_error``.
    residual : float
        Largest undamped residual in units of the natural scales.
    residual_error : float
        Its quadrature error, in the same units.
    status : Status
    steps, evaluations : int
        Solver steps, integrand evaluations of the final evaluation.
    reached : float
        Relative error of the expectations: the accuracy that could have been asked for.
    jacobian : array
        Of the residual, good enough to start a solve nearby.
    """

    model: str
    branch: str | None
    kind: str
    state: dict[str, float]
    errors: dict[str, float]
    params: dict[str, float]
    energy: float
    energy_error: float
    observables: dict[str, float]
    observable_errors: dict[str, float]
    gradient: dict[str, float]
    gradient_error: dict[str, float]
    residual: float
    residual_error: float
    status: Status
    steps: int
    evaluations: int
    unresolved: float = 0.0
    reached: float = math.nan
    settings: dict[str, object] = field(default_factory=dict)
    jacobian: np.ndarray | None = field(default=None, repr=False, compare=False)

    @property
    def x(self) -> np.ndarray:
        """The state as an array, in the order of the problem's unknowns."""
        return np.array(list(self.state.values()))

    @property
    def message(self) -> str:
        numbers: dict[str, object] = {"residual": self.residual, "steps": self.steps}
        if self.status is Status.ACCURACY_NOT_REACHED:
            asked = self.settings.get("accuracy", math.nan)
            numbers |= {"accuracy asked": asked, "reached": self.reached}
        return self.status.message(**numbers)

    def __getitem__(self, name: str) -> float:
        for source in (self.state, self.observables, self.params):
            if name in source:
                return source[name]
        if name == "energy":
            return self.energy
        raise KeyError(name)

    def __str__(self) -> str:
        settings = ", ".join(f"{k} = {v:g}" for k, v in self.params.items())
        rows = [
            *((k, v, self.errors[k]) for k, v in self.state.items()),
            ("energy", self.energy, self.energy_error),
            *((k, v, self.observable_errors[k]) for k, v in self.observables.items()),
        ]
        width = max(len(name) for name, _, _ in rows)
        return "\n".join([
            f"{self.model}: {self.kind} at {settings}",
            *(f"  {name:<{width}}  {value: .10g} +- {error:.1e}" for name, value, error in rows),
            self.message,
        ])  # fmt: skip

    def to_dict(self) -> dict[str, object]:
        """Plain data, ready for JSON (no NaN or infinity: those become None)."""
        return {
            "model": self.model,
            "branch": self.branch,
            "kind": self.kind,
            "parameters": self.params,
            **self.state,
            "errors": _finite(self.errors),
            "energy": _finite(self.energy),
            "energy_error": _finite(self.energy_error),
            **{k: _finite(v) for k, v in self.observables.items()},
            "observable_errors": _finite(self.observable_errors),
            "gradient": _finite(self.gradient),
            "residual": _finite(self.residual),
            "residual_error": _finite(self.residual_error),
            "unresolved": self.unresolved,
            "status": self.status.name.lower(),
            "message": self.message,
            "steps": self.steps,
            "evaluations": self.evaluations,
            "settings": self.settings,
        }


def belongs(solution: Solution) -> bool:
    """Whether a solution is usable and on the branch that was asked for."""
    return solution.status.usable and (
        solution.branch in (None, solution.kind) or solution.kind == "solution"
    )


def _finite(value):
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return value if math.isfinite(value) else None


@np.errstate(all="ignore")
def make_solution(
    problem: ProblemLike,
    x: np.ndarray,
    params: dict[str, float],
    evaluation: Evaluation,
    jacobian: np.ndarray,
    status: Status,
    steps: int,
    tolerance: float,
    accuracy: float,
    settings: dict[str, object],
    refined: bool = True,
) -> Solution:
    """Error bars and verdict from the last evaluation and Jacobian.

    The state's error is ``|J^{-1}| (|residual| + quadrature error)``, enlarged where the Jacobian
    itself changes within it. The energy is stationary, so that enters it to second order only.
    """
    scale = problem.scale(x, params)
    bound = np.abs(evaluation.residual) + evaluation.residual_error
    errors = _state_errors(problem, x, params, bound, jacobian, scale)
    rows = equation_scale(problem, x, params)
    residual = float(np.max(np.abs(evaluation.residual) / rows, initial=0.0))
    residual_error = float(np.max(evaluation.residual_error / rows, initial=0.0))
    if not np.all(np.isfinite(evaluation.residual)):
        status = Status.NON_FINITE
    elif status is Status.CONVERGED and not residual <= tolerance + residual_error:
        status = Status.STALLED
    elif status is Status.CONVERGED and not evaluation.relative_error <= accuracy:
        status = Status.ACCURACY_NOT_REACHED
    relative = float(np.max(errors / scale, initial=0.0))
    magnitude = abs(evaluation.energy) + float(np.sum(bound))
    second_order = magnitude * relative**2 if np.isfinite(relative) else math.inf
    if problem.form == "gradient" and np.isfinite(relative):
        second_order = max(second_order, float(errors @ bound))
    observable_errors, gradient_error = evaluation.observable_errors, evaluation.gradient_error
    if refined and evaluation.observables and np.all(np.isfinite(errors)):
        observable_errors, gradient_error = _with_state_errors(
            problem, x, params, evaluation, errors
        )
    observables = evaluation.observables
    if refined and getattr(problem, "diagnoses", False):
        values, own = diagnosed(problem, x, params, errors)
        observables = {**observables, **values}
        observable_errors = {**observable_errors, **own}
    x = problem.canonical(x)
    return Solution(
        model=problem.name,
        branch=problem.branch,
        kind=problem.classify(x, params, min(max(1e-4, 3 * relative), 0.1)),
        state=dict(zip(problem.unknowns, map(float, x), strict=True)),
        errors=dict(zip(problem.unknowns, map(float, errors), strict=True)),
        params=dict(params),
        energy=evaluation.energy,
        energy_error=evaluation.energy_error + second_order,
        observables=observables,
        observable_errors=observable_errors,
        gradient=evaluation.gradient,
        gradient_error=gradient_error,
        residual=residual,
        residual_error=residual_error,
        status=status,
        steps=steps,
        evaluations=evaluation.evaluations,
        unresolved=evaluation.unresolved,
        reached=evaluation.relative_error,
        settings=settings,
        jacobian=jacobian,
    )


def _state_errors(problem, x, params, bound, jacobian, scale) -> np.ndarray:
    """Linear error of the state, and where that is not enough, near folds and pitchforks."""
    unknown = np.full(len(x), np.inf)
    try:
        inverse = np.linalg.inv(jacobian)
    except np.linalg.LinAlgError:
        return unknown
    errors = np.abs(inverse) @ bound
    if not np.all(np.isfinite(errors)):
        return unknown
    relative = np.max(errors / scale, initial=0.0)
    if relative <= max(1e-5, 30 * np.max(bound / scale, initial=0.0)):
        return errors
    # |x - exact| <= errors / (1 - change), change = |1 - J^{-1} J(nearby)|
    change = 0.0
    for there in (x + errors, x - errors):
        if problem.in_domain(there, params):
            nearby = state_jacobian(problem, there, params, LOOSE)
            off = (np.eye(len(x)) - inverse @ nearby) * scale / scale[:, None]
            change = max(change, float(np.max(np.sum(np.abs(off), axis=1))))
    return errors / (1 - change) if change < 1 else unknown


def diagnosed(problem, x, params, errors) -> tuple[dict[str, float], dict[str, float]]:
    """Diagnostics of a model at a state, with the effect of the state's errors."""
    level = max(DIAGNOSTIC, 16 * getattr(problem, "finest", 0.0))
    values, own = problem.diagnostics(x, params, level)
    if np.max(errors / problem.scale(x, params), initial=0.0) < 0.1 * DIAGNOSTIC:
        return values, own
    for i, error in enumerate(errors):
        moved = x.copy()
        moved[i] += error
        known = np.isfinite(error) and problem.in_domain(moved, params)
        there = problem.diagnostics(moved, params, level)[0] if known else {}
        own = {k: e + abs(there.get(k, np.inf) - values[k]) for k, e in own.items()}
    return values, own


def _with_state_errors(problem, x, params, evaluation: Evaluation, errors):
    """Observables and slopes are not stationary: the state's errors enter them linearly."""
    base = problem.evaluate(x, params, LOOSE)
    observable, slope = dict(evaluation.observable_errors), dict(evaluation.gradient_error)
    scale = problem.scale(x, params)
    for i, error in enumerate(errors):
        moved = x.copy()
        moved[i] += 1e-3 * scale[i]
        if not problem.in_domain(moved, params):
            moved[i] -= 2e-3 * scale[i]
        there = problem.evaluate(moved, params, LOOSE)
        factor = error / (1e-3 * scale[i])
        for k in observable:
            observable[k] += factor * abs(there.observables[k] - base.observables[k])
        for k in slope:
            slope[k] += factor * abs(there.gradient[k] - base.gradient[k])
    return observable, slope
