"""The central object: one symbolic free energy, and what must be said about it."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from theory.checks import check
from theory.nodes import GaussianExpectation
from theory.symmetry import Symmetry

SHOWN = ("fingerprint", "comparisons", "limits")  # no part of what is computed


@dataclass(frozen=True)
class Parameter:
    """A control parameter.

    Parameters
    ----------
    symbol : Symbol
        Its name is the one used on the command line.
    default : float, optional
        Without one, a value must be given.
    low, high : float
        Bounds; ``low_open`` excludes the lower one.
    description : str
    """

    symbol: sp.Symbol
    default: float | None = None
    low: float = -float("inf")
    high: float = float("inf")
    low_open: bool = False
    description: str = ""

    @property
    def name(self) -> str:
        return self.symbol.name


@dataclass(frozen=True)
class Ansatz:
    """A restriction of the order parameters, applied by substitution and checked by `derive`.

    Parameters
    ----------
    name : str
    substitution : mapping of Symbol to Expr
        Unknowns and conjugates (and parameters, see ``requires``) in terms of the ones kept: zero,
        or a constant times one of them.
    symmetries : sequence of Symmetry
        Why it is consistent: symmetries of the loss and, under the ansatz, of the measure.
    requires : mapping of Symbol to Symbol
        Parameters that must be equal (key takes the value's place); part of the substitution.
    description : str
    nonzero : sequence of Symbol
        Order parameters that do not vanish on the branch this ansatz describes.
    """

    name: str
    substitution: Mapping[sp.Symbol, sp.Expr]
    symmetries: Sequence[Symmetry] = ()
    requires: Mapping[sp.Symbol, sp.Symbol] = field(default_factory=dict)
    description: str = ""
    nonzero: Sequence[sp.Symbol] = ()

    @property
    def all_substitutions(self) -> dict[sp.Symbol, sp.Expr]:
        return {**self.substitution, **self.requires}


class FreeEnergy:
    """A free energy whose stationary points are the states of a model.

    Parameters
    ----------
    expression : Expr
        May contain `GaussianExpectation` and `Moreau` nodes.
    unknowns : sequence of Symbol
        Order parameters. The extremum is taken over these and over ``conjugates``.
    parameters : sequence of Symbol or Parameter
        Control parameters.
    conjugates : sequence of Symbol
        Conjugate ("hat") variables, each entering linearly beside its order parameter; `derive`
        solves for them in closed form.
    domain : sequence of Expr
        Expressions of unknowns and parameters that must be positive.
    observables : mapping of str to Expr
        Further quantities to report at a solution.
    diagnostics : mapping of str to Expr
        Quantities that say how far a solution is to be trusted, such as the replicon. Their
        expectations may converge slowly; they have errors of their own and do not count towards
        the accuracy of a solution.
    comparisons : mapping of str to (str, str)
        Pairs of observables whose equality is of interest, such as ``{"l": ("test_error",
        "baseline_error")}``; the key is a subscript: alpha_l is where they are equal.
    limits : mapping of str to float
        Diagnostics that must not exceed a value, such as ``{"replicon": 1}``: beyond it a solution
        is marked as not to be trusted.
    reductions : sequence of Ansatz
        Tried in order by `derive`: the first whose requirements hold replaces the order parameters
        by fewer ones.
    branches : mapping of str to Ansatz
        Families of solutions distinguished by symmetry, in terms of the reduced order parameters.
    scales : mapping of Symbol to Expr
        Natural magnitude of an unknown, in terms of the parameters; 1 where none is given.
    starts : mapping of str to mapping
        For each branch name ("" for any), typical values of the unknowns (expressions of
        the parameters): starting points, nothing more.
    mirrors : sequence of sequences of Symbol
        Sets of unknowns whose joint change of sign leaves the free energy as it is (with their
        conjugates): mirror images count as one solution.
    edges : mapping of str to Expr
        States on the edge of the domain, where the equations do not hold (a conjugate is infinite):
        their free energy, as a function of the parameters. They compete with the others.
    plan : object
        Hint for the integrator, see `theory.plan`.
    transition : mapping
        Where the first-order transition is looked for by default: ``between`` (two branches),
        ``parameter`` and ``span``.
    name, title, reference : str

    Raises
    ------
    ModelError
        If a free symbol is neither an unknown, a conjugate nor a parameter.

    Examples
    --------
    >>> import sympy, theory
    >>> m, T = sympy.symbols("m T", real=True)
    >>> f = theory.FreeEnergy(m**4 / 4 + T * m**2 / 2, [m], [T])
    >>> theory.derive(f).equations[0]
    Eq(T*m + m**3, 0)
    """

    def __init__(
        self,
        expression: Any,
        unknowns: Sequence[sp.Symbol],
        parameters: Sequence[sp.Symbol | Parameter] = (),
        *,
        conjugates: Sequence[sp.Symbol] = (),
        domain: Sequence[Any] = (),
        observables: Mapping[str, Any] | None = None,
        diagnostics: Mapping[str, Any] | None = None,
        comparisons: Mapping[str, tuple[str, str]] | None = None,
        limits: Mapping[str, float] | None = None,
        reductions: Sequence[Ansatz] = (),
        branches: Mapping[str, Ansatz] | None = None,
        scales: Mapping[sp.Symbol, Any] | None = None,
        starts: Mapping[str, Mapping[sp.Symbol, Any]] | None = None,
        mirrors: Sequence[Sequence[sp.Symbol]] = (),
        edges: Mapping[str, Any] | None = None,
        plan: Any = None,
        transition: Mapping[str, Any] | None = None,
        name: str = "model",
        title: str = "",
        reference: str = "",
        notes: Mapping[str, str] | None = None,
    ):
        self.expression = sp.sympify(expression)
        self.unknowns = tuple(unknowns)
        self.parameters = tuple(p if isinstance(p, Parameter) else Parameter(p) for p in parameters)
        self.conjugates = tuple(conjugates)
        self.domain = tuple(sp.sympify(c) for c in domain)
        self.observables = {k: sp.sympify(v) for k, v in (observables or {}).items()}
        self.diagnostics = {k: sp.sympify(v) for k, v in (diagnostics or {}).items()}
        self.comparisons = {k: (a, b) for k, (a, b) in (comparisons or {}).items()}
        self.limits = dict(limits or {})
        self.reductions = tuple(reductions)
        self.branches = dict(branches or {})
        self.scales = {k: sp.sympify(v) for k, v in (scales or {}).items()}
        self.starts = {
            b: {k: sp.sympify(v) for k, v in s.items()} for b, s in (starts or {}).items()
        }
        self.mirrors = tuple(tuple(flip) for flip in mirrors)
        self.edges = {k: sp.sympify(v) for k, v in (edges or {}).items()}
        self.plan = plan
        self.transition = dict(transition or {})
        self.name = name
        self.title = title or name
        self.reference = reference
        self.notes = dict(notes or {})
        check(self)

    @property
    def parameter_symbols(self) -> tuple[sp.Symbol, ...]:
        return tuple(p.symbol for p in self.parameters)

    @property
    def expectations(self) -> list[GaussianExpectation]:
        return sorted(self.expression.atoms(GaussianExpectation), key=sp.default_sort_key)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Text that determines the model: equal for equal models, in any process."""
        return repr([_spelled(v) for k, v in sorted(vars(self).items()) if k not in SHOWN])

    def __repr__(self) -> str:
        unknowns = ", ".join(map(str, self.unknowns))
        parameters = ", ".join(p.name for p in self.parameters)
        return f"FreeEnergy({self.name!r}, unknowns=[{unknowns}], parameters=[{parameters}])"


def _spelled(value: Any) -> Any:
    """Nested data with every expression written out, assumptions of symbols included."""
    if isinstance(value, sp.Basic | sp.MatrixBase):
        kinds = {type(node) for node in sp.preorder_traversal(value)}
        return [sp.srepr(value), *sorted(_source(k) for k in kinds if _foreign(k))]
    if isinstance(value, Mapping):
        return [(_spelled(k), _spelled(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return [_spelled(v) for v in value]
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, _spelled(vars(value))]
    return repr(value)


def _foreign(kind: type) -> bool:
    """Whether a node's rules of differentiation come from a user's own code."""
    return kind.__module__.partition(".")[0] not in ("sympy", "theory")


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return uuid.uuid4().hex  # not readable: never taken for the same again
