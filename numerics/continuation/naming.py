"""What an event is called: a symbol such as alpha_m, and words such as "birth of positional"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from numerics.continuation.branch import Branch
from numerics.continuation.event import Event
from numerics.continuation.stability import embed, whole
from numerics.protocol import ProblemLike

BIRTHS = ("pitchfork", "transcritical", "branch point")


@dataclass(frozen=True)
class EventName:
    """Symbol and words.

    Attributes
    ----------
    symbol : str
        The parameter and a subscript: ``c`` where energies cross, ``s`` at a fold, the key of the
        model's comparison, or the order parameters that become soft (with the branch on which they
        do, where that one has an order parameter already).
    text : str
    """

    symbol: str
    text: str


def named(events: Iterable[Event], branches: Iterable[Branch]) -> list[EventName]:
    """Names of the events of a diagram; equal symbols are numbered by the parameter's value."""
    branches, events = list(branches), list(events)
    names = [_name(e, _owner(e, branches), branches) for e in events]
    order = sorted(range(len(events)), key=lambda k: events[k].value)
    counts: dict[str, int] = {}
    numbered = dict.fromkeys(range(len(events)), "")
    for k in order:
        counts[names[k].symbol] = counts.get(names[k].symbol, 0) + 1
        numbered[k] = str(counts[names[k].symbol])
    return [
        EventName(n.symbol + ("" if numbered[k] == "1" else f",{numbered[k]}"), n.text)
        for k, n in enumerate(names)
    ]


def owner(event: Event, branches: Iterable[Branch]) -> ProblemLike | None:
    """The problem on whose branch an event was found."""
    found = _owner(event, list(branches))
    return None if found is None else found.problem


def _owner(event: Event, branches: list[Branch]) -> Branch | None:
    """The branch that reported the event; else one with the same unknowns."""
    own = set(event.state.state)
    alike = [b for b in branches if len(b) and set(b.points[0].state) == own
             and b.problem is not None]  # fmt: skip
    for b in alike:
        if any(e.kind == event.kind and e.value == event.value for e in b.events):
            return b
    same = [b for b in alike if b.problem and b.problem.branch == event.state.branch]
    return next(iter([*same, *alike]), None)


def _name(event: Event, branch: Branch | None, branches: list[Branch]) -> EventName:
    p = event.parameter
    kinds = [s.kind for s in event.states.values()]
    if event.kind == "first-order":
        return EventName(f"{p}_c", f"first-order, {' / '.join(dict.fromkeys(kinds))}")
    if event.kind == "equality":
        key, _, words = event.message.rpartition(": ")
        return EventName(f"{p}_{key}", f"{words} on {event.state.kind}")
    here = "" if event.state.kind == "solution" else f"{event.state.kind} "
    gained = _gained(event, branches)
    if event.kind in BIRTHS:
        soft, parent, born = _soft(event, branch)
        change = f"{here or 'it '}{gained}" if gained else ""
        words = f"birth of {born}" if born else f"{here}{event.kind}"
        return EventName(f"{p}_{soft}{',' + parent if parent else ''}",
                    ", ".join(w for w in (words, change) if w))  # fmt: skip
    if event.kind == "fold":
        return EventName(f"{p}_s", f"{here}fold")
    return EventName(f"{p}_{event.label or event.kind}", f"{here}{event.kind}")


def _gained(event: Event, branches: list[Branch]) -> str:
    """Whether the branch becomes or ceases to be stable as the parameter grows."""
    below, above = (event.details.get(k) for k in ("unstable below", "unstable above"))
    if below is None:
        through = [(b, *_beside(event, b)) for b in branches if len(b)]
        through = [t for t in through if None not in t[1:] and _kind(t[0]) == event.state.kind]
        if through:
            _, below, above = min(through, key=lambda t: _distance(event, t[0]))
    if below is None or above is None or min(below, above) != 0 or below == above:
        return ""
    return "gains stability" if above == 0 else "loses stability"


def _kind(branch: Branch) -> str:
    kinds = [p.kind for p in branch.points]
    return max(kinds, key=kinds.count)


def _distance(event: Event, branch: Branch) -> float:
    """Of an event's state from that of the nearest point of a branch."""
    near = branch.points[int(np.argmin(np.abs(branch.values - event.value)))]
    own = event.state.state
    return max((abs(v - own[k]) for k, v in near.state.items() if k in own), default=0.0)


def _beside(event: Event, branch: Branch) -> tuple[int | None, int | None]:
    """Numbers of growing directions at the nearest points on both sides."""
    values, found = branch.values, []
    for side in (values < event.value, values > event.value):
        places = np.flatnonzero(side)
        near = places[np.argmin(np.abs(values[places] - event.value))] if len(places) else None
        found.append(None if near is None or branch.unstable[near] < 0 else branch.unstable[near])
    return found[0], found[1]


def _soft(event: Event, branch: Branch | None) -> tuple[str, str, str]:
    """Order parameters that become soft, the branch if it has one already, what is born."""
    problem = None if branch is None else branch.problem
    if problem is None or event.direction is None:
        return event.label or "b", "", ""
    full = whole(problem)
    x, params = embed(problem, np.array(list(event.state.state.values()))), event.state.params
    scale = full.scale(x, params)
    push = event.direction / scale
    push = push / np.max(np.abs(push))
    names = list(full.unknowns)
    zero = np.abs(x) < 1e-3 * scale
    loud = np.abs(push) > 0.1
    chosen = loud & zero if np.any(loud & zero) else loud
    soft = "".join(n for n, c in zip(names, chosen, strict=True) if c)
    kind = getattr(full, "classify", lambda x, p: "solution")
    born = kind(np.where(chosen, x + 0.05 * scale * push, x), params)
    odd = {str(s) for flip in getattr(getattr(full, "model", None), "mirrors", ()) for s in flip}
    alive = any(n in odd and not z for n, z in zip(names, zero, strict=True))
    parent = event.state.kind if alive else ""
    return soft, parent, "" if born in ("solution", event.state.kind) else born
