"""What solvers and continuation need of a problem: generated code, or any plain Python class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from theory.errors import AnsatzError, SpinodalError
from theory.joint import Name, check_known, moved


@dataclass(frozen=True)
class Evaluation:
    """Everything at one state, with errors.

    Attributes
    ----------
    residual, residual_error : (n,) arrays
        The error is that of the quadrature.
    energy, energy_error : float
    observables, observable_errors : dict
    gradient, gradient_error : dict
        Derivative of the energy with respect to each parameter at fixed state: at a solution the
        total derivative (envelope theorem).
    evaluations : int
        Evaluations of integrands.
    unresolved : float
        Probability mass on which the proximal point could not be certified.
    relative_error : float
        Of the expectations, in units of the expected absolute values: the accuracy reached.
    """

    residual: np.ndarray
    residual_error: np.ndarray
    energy: float
    energy_error: float
    observables: dict[str, float] = field(default_factory=dict)
    observable_errors: dict[str, float] = field(default_factory=dict)
    gradient: dict[str, float] = field(default_factory=dict)
    gradient_error: dict[str, float] = field(default_factory=dict)
    evaluations: int = 1
    unresolved: float = 0.0
    relative_error: float = 0.0


class ProblemLike(Protocol):
    """A system of equations with an energy. `numerics.problem.Problem` is one."""

    name: str
    unknowns: tuple[str, ...]
    form: str
    branch: str | None

    def values(self, params: Mapping[str, float] | None) -> dict[str, float]:
        """All parameters, defaults filled in."""
        ...

    def residual(self, x, params=None, accuracy: float | None = None) -> np.ndarray:
        """``F(x) - x`` (fixed point) or the gradient; smooth in x at a given accuracy."""
        ...

    def jacobian(self, x, params=None, accuracy: float | None = None) -> np.ndarray | None:
        """Exact Jacobian of the residual, or None."""
        ...

    def evaluate(self, x, params=None, accuracy: float | None = None) -> Evaluation:
        """Everything, with errors."""
        ...

    def scale(self, x, params=None) -> np.ndarray:
        """Positive size of each unknown."""
        ...

    def in_domain(self, x, params=None) -> bool: ...

    def domain_message(self, x, params=None) -> str: ...

    def starts(self, params=None) -> list[np.ndarray]: ...

    def classify(self, x, params=None, tolerance: float = 1e-4) -> str:
        """Name of the branch that a state belongs to."""
        ...

    def canonical(self, x) -> np.ndarray:
        """One representative among mirror images."""
        ...


def check_move(
    problem: ProblemLike, params: Mapping[str, float], parameter: Name, span: Iterable[float] = ()
) -> None:
    """Raise for a parameter that is unknown, or that an ansatz ties to one that does not move.

    Parameters
    ----------
    params : mapping
        All values at one point.
    span : values of ``parameter``

    Raises
    ------
    ParameterError, AnsatzError
    """
    check_known(parameter, params, problem.name)
    for value in span:
        try:
            problem.values(moved(params, parameter, value))
        except AnsatzError:
            raise
        except SpinodalError:
            continue  # beyond the edge of its domain, where a line may end


def equation_scale(problem: ProblemLike, x, params=None) -> np.ndarray:
    """Positive size of each equation, in which a residual is small or not.

    For F(x) - x that of the unknowns. A gradient has no such unit of its own; it must not be one
    that grows with the state, or runaway states would count as solutions.
    """
    reference = x if problem.form == "fixed_point" else np.zeros(len(problem.unknowns))
    return problem.scale(reference, params)
