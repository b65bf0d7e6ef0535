"""All lines of a model in two parameters: each event at one value of the second one, traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from numerics.continuation.boundary import Boundary, phase_boundary
from numerics.continuation.conditions import condition_curve, difference, softening
from numerics.continuation.crossing import crossing
from numerics.continuation.curves import branch_point_curve, fold_curve
from numerics.continuation.diagram import Diagram
from numerics.continuation.event import Event
from numerics.continuation.landmarks import equalities
from numerics.continuation.naming import BIRTHS, named, owner
from numerics.continuation.singular import SingularCurve, SpecialPoint
from numerics.continuation.survey import survey
from numerics.continuation.transition import Transition
from numerics.protocol import ProblemLike
from numerics.solvers.derivatives import differentiable
from numerics.status import Status
from theory.errors import ParameterError, SpinodalError
from theory.joint import Name, joint, moved, value_of, without

Curve = SingularCurve | Boundary


@dataclass(frozen=True, eq=False)
class Line:
    """One line in two parameters.

    Attributes
    ----------
    symbol, name : str
        Such as "alpha_m" and "birth of positional"; see `numerics.continuation.naming`.
    event : Event
        Where it was found.
    curve : SingularCurve, Boundary or None
        None where it could not be traced; ``message`` says why.
    """

    symbol: str
    name: str
    event: Event
    curve: Curve | None
    message: str = ""

    @classmethod
    def of(cls, curve: Boundary, start: Transition) -> Line:
        """A phase boundary that was traced from a transition."""
        event = Event(
            "first-order", start.parameter, start.value, start.error, start.interval,
            abs(start.residual), "polished", start.states, start.params,
        )  # fmt: skip
        (name,) = named([event], [])
        traced = len(curve) > 1
        return cls(name.symbol, name.text, event, curve if traced else None,
                   "" if traced else _reason(curve))  # fmt: skip

    def __len__(self) -> int:
        return 0 if self.curve is None else len(self.curve)

    def __getitem__(self, name: str) -> np.ndarray:
        """A parameter along the line."""
        if self.curve is None:
            raise ParameterError(f"the line {self.name!r} was not traced: {self.message}")
        return self.curve[name]

    @property
    def errors(self) -> np.ndarray:
        """Of the first parameter."""
        if self.curve is None:
            return np.zeros(0)
        if len(self.curve.errors):
            return self.curve.errors
        # exact but for ten times the corrector's tolerance
        return np.full(len(self.curve), 1e-10 * np.max(np.abs(self.curve.values[:, 0])) + 1e-15)

    @property
    def special(self) -> list[SpecialPoint]:
        """Cusps, critical and tricritical points on it or at its ends."""
        if isinstance(self.curve, Boundary):
            return [SpecialPoint(_kind(e["reason"]), e["values"], e["errors"], {})
                    for e in self.ends if "CRITICAL" in e["reason"].name]  # fmt: skip
        return [] if self.curve is None else list(self.curve.special)

    @property
    def label(self) -> str:
        """For legends."""
        from numerics.plotting import subscripted

        return f"{subscripted(self.symbol)}: {self.name.replace('_', ' ')}"

    @property
    def ends(self) -> list[dict[str, Any]]:
        """For both ends: ``reason``, ``message``, ``values`` and ``errors`` of the parameters."""
        if self.curve is None:
            return []
        if isinstance(self.curve, Boundary):
            return self.curve.ends
        found = []
        for status, k in zip(self.curve.ends, (0, -1), strict=True):
            first, second = self.curve.parameters
            values = dict(zip((first, second), map(float, self.curve.values[k]), strict=True))
            errors = {first: float(self.errors[k]), second: math.nan}
            kind = _kind(status)
            near = [s for s in self.curve.special if s.kind == kind]
            if near:  # where the state merges with its mirror image, beyond the last point
                point = min(near, key=lambda s: abs(s.values[second] - values[second]))
                values, errors = dict(point.values), dict(point.errors)
            found.append({"reason": status, "message": status.message(),
                          "values": values, "errors": errors})  # fmt: skip
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        curve = {} if self.curve is None else self.curve.to_dict()
        return {"symbol": self.symbol, "name": self.name, "message": self.message,
                "traced": self.curve is not None, "event": self.event.to_dict(), **curve,
                "ends": [{**e, "reason": e["reason"].name.lower()} for e in self.ends]}  # fmt: skip


def lines(
    problem: ProblemLike,
    parameters: tuple[Name, Name],
    over: tuple[float, float],
    span: tuple[float, float],
    params: Mapping[str, float] | None = None,
    *,
    at: float | None = None,
    found: Diagram | None = None,
    known: Iterable[Line] = (),
    kinds: Iterable[str] | None = None,
    accuracy: float | None = None,
    callback: Callable[[dict], Any] | None = None,
) -> list[Line]:
    """Find what happens in one parameter, and trace all of it in a second one.

    Births of branches, losses of stability, folds (smooth systems), first-order transitions and
    the model's comparisons (`FreeEnergy.comparisons`) are sought at one value of the second
    parameter; what does not occur there is not found.

    Parameters
    ----------
    problem : Problem
        The whole model.
    parameters : (str, str)
        The one in which events are sought, and the one along which they are traced.
    over, span : (low, high)
        Of the first and of the second one.
    params : mapping, optional
        All others; defaults of the model where not given.
    at : float, optional
        The value of the second parameter at which events are sought: its default where that is in
        the range, else the middle.
    found : Diagram, optional
        At such a value, known already.
    known : iterable of Line, optional
        Traced already; they come first in what is returned.
    kinds : iterable of str, optional
        Kinds of events to trace; all by default.
    accuracy : float, optional
        Of the expectations: 1e-5 for systems with proximal points.

    Returns
    -------
    list of Line
        First-order transitions first. Lines that could not be traced are there, with the reason.
    """
    first, second = map(joint, parameters)
    low, high = sorted(map(float, span))

    def surveyed(value: float) -> Diagram:
        given = moved(without(params or {}, first), second, value)
        return survey(problem, first, over, given, accuracy=accuracy, callback=callback)

    if found is None:
        if at is None:
            default = value_of(getattr(problem, "defaults", {}), second, math.nan)
            at = default if low <= default <= high else 0.5 * (low + high)
        found = surveyed(at)
    traced = list(known)
    options = (kinds, second, (low, high), over, accuracy, callback)
    if _add(traced, found, *options):
        # what takes the place of an unfolded point is seen at another value only
        here = value_of(found.params, second)
        aside = max(0.25 * low + 0.75 * high, 0.75 * low + 0.25 * high,
                    key=lambda v: abs(v - here))  # fmt: skip
        _add(traced, surveyed(aside), *options)
    return traced


def _add(traced: list[Line], found: Diagram, kinds, second, span, over, accuracy, callback) -> bool:
    """Trace the events of a diagram through which no line passes; whether one was unfolded."""
    events = [*found.events]
    if not any(e.kind == "equality" for e in events):
        events += [e for b in found.branches for e in equalities(b)]
    events = [e for e in events if kinds is None or e.kind in kinds]
    events.sort(key=lambda e: (e.kind != "first-order", e.value))
    unfolded = False
    for event, name in zip(events, named(events, found.branches), strict=True):
        if any(_passes(line, event, second) for line in traced):
            continue
        if callback is not None:
            callback({"stage": f"tracing {name.symbol}"})
        curve, why = None, ""
        try:
            curve = _trace(event, found, second, span, over, accuracy, callback)
        except SpinodalError as error:
            why = str(error)
        if curve is not None and len(curve) < 2:
            unfolded = unfolded or Status.UNFOLDED in curve.ends
            curve, why = None, _reason(curve)
        traced.append(Line(name.symbol, name.text, event, curve, why))
    return unfolded


def _kind(status: Status) -> str:
    """Of the special point in which a line ends with a status."""
    return status.name.lower().removesuffix("_end")


def _reason(curve: Curve) -> str:
    ends = [e["message"] if isinstance(e, dict) else e.message() for e in curve.ends]
    return "; ".join(dict.fromkeys(ends)) or "nothing beyond its first point"


def _trace(event: Event, found: Diagram, second, span, over, accuracy, callback) -> Curve:
    problem: Any = owner(event, found.branches)
    if problem is None:
        raise ParameterError("no branch that the event could belong to")
    options = {"over": over, "callback": callback}
    if event.kind == "first-order":
        return _first_order(event, found, second, span, over, accuracy, callback)
    if event.kind == "equality":
        pair = event.message.rpartition(": ")[2].split(" = ")
        return condition_curve(
            problem, difference(*pair), event.state, (event.parameter, second), span,
            kind=" = ".join(pair), accuracy=accuracy, **options,
        )  # fmt: skip
    if event.transverse and event.kind == "pitchfork" and hasattr(problem, "transverse"):
        return condition_curve(
            problem, softening, event.state, (event.parameter, second), span, kind=event.kind,
            accuracy=accuracy, **options,
        )  # fmt: skip
    if event.kind in BIRTHS:
        return branch_point_curve(event, second, span, problem=problem, **options)
    if event.kind == "fold":
        return fold_curve(event, second, span, problem=problem, **options)
    raise ParameterError(f"lines of {event.kind} events are not traced")


def _first_order(event, found: Diagram, second, span, over, accuracy, callback) -> Boundary:
    states = list(event.states.values())
    if len(states) != 2:
        raise ParameterError("one of the states is on the edge of the domain, which is not traced")
    problems = []
    for state in states:
        single = Event(**{**vars(event), "states": {state.kind: state}})
        problems.append(owner(single, found.branches))
    smooth = all(map(differentiable, problems))
    params = moved(found.params, event.parameter, event.value)
    start = crossing(
        problems[0], problems[1], params, event.parameter, tuple(sorted(over)),
        start_a=states[0], start_b=states[1], guess=event.value,
        accuracy=1e-12 if smooth else accuracy or 1e-5,
    )  # fmt: skip
    if start.status is not Status.CONVERGED:
        raise SpinodalError(start.message)
    return phase_boundary(start, second, span, over=over, accuracy=accuracy, callback=callback)


def _passes(line: Line, event: Event, second: str) -> bool:
    """Whether a traced line passes through an event (which is then no line of its own)."""
    other = line.event
    if line.curve is None or other.kind != event.kind or other.message != event.message:
        return False
    kinds = [{s.kind for s in e.states.values()} for e in (other, event)]
    # a first-order line may have been found between branches that have other names
    if kinds[0] != kinds[1] and event.kind != "first-order":
        return False
    here = value_of(event.params, second)
    x, y, errors = line[second], line[event.parameter], line.errors
    for k in np.flatnonzero((x[1:] - here) * (x[:-1] - here) <= 0):
        share = 0.5 if x[k] == x[k + 1] else (here - x[k]) / (x[k + 1] - x[k])
        value = y[k] + share * (y[k + 1] - y[k])
        bend = 0.02 * abs(y[k + 1] - y[k])
        if abs(value - event.value) <= bend + 3 * (errors[k] + event.error):
            return True
    return False
