"""Parameters that move as one: the name ``"A11,A22"`` stands for both, which keep one value.

The slope with respect to such a joint parameter is the sum of the slopes with respect to its
members. Values of parameters are kept by their single names; a joint name says only what moves.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from theory.errors import ParameterError, near

Name = str | Sequence[str]


def joint(name: Name) -> str:
    """One name for a parameter, or for several: ``("A11", "A22")`` and ``"A11, A22"`` alike.

    Raises
    ------
    ParameterError
        For an empty name, or a parameter named twice.

    Examples
    --------
    >>> joint(("A11", "A22"))
    'A11,A22'
    """
    parts = name.split(",") if isinstance(name, str) else name
    words = [str(part).strip() for part in parts]
    if not words or not all(words):
        raise ParameterError(f"{name!r} is not the name of a parameter; write NAME, or NAME,NAME "
                             "for several that move together")  # fmt: skip
    for k, word in enumerate(words):
        if word in words[:k]:
            raise ParameterError(f"{word} is named twice in {name!r}")
    return ",".join(words)


def members(name: Name) -> tuple[str, ...]:
    """The parameters behind a name; itself, for a single one."""
    return _members(name if isinstance(name, str) else tuple(name))


@functools.lru_cache(maxsize=256)
def _members(name: Name) -> tuple[str, ...]:
    return tuple(joint(name).split(","))


def moved(params: Mapping[str, Any], name: Name, value: Any) -> dict[str, Any]:
    """Parameters with ``name`` (all of its members) at ``value``."""
    return {**params, **dict.fromkeys(members(name), value)}


def without(params: Mapping[str, Any], name: Name) -> dict[str, Any]:
    """The other parameters."""
    own = members(name)
    return {k: v for k, v in params.items() if k not in own}


def value_of(params: Mapping[str, float], name: Name, default: float | None = None) -> float:
    """The one value that all members of ``name`` have, else ``default``.

    Raises
    ------
    ParameterError
        Without a default, if one is missing or they differ.
    """
    own = members(name)
    values = [params.get(k) for k in own]
    first = values[0]
    if first is not None and all(v == first for v in values):
        return float(first)
    if default is not None:
        return default
    check_known(name, params)
    shown = ", ".join(f"{k} = {params[k]:g}" for k in own)
    raise ParameterError(f"{' and '.join(own)} move together, but differ at the start: {shown}; "
                         f"give them one value there (--set {joint(name)}=...)")  # fmt: skip


def slope(gradient: Mapping[str, float], name: Name) -> float:
    """Derivative with respect to ``name``: the sum of those with respect to its members."""
    return sum(gradient.get(k, 0.0) for k in members(name))


def separate(params: Mapping[Any, Any]) -> dict[str, Any]:
    """Values by single names, joint names written out.

    Raises
    ------
    ParameterError
        For a parameter that is given twice.
    """
    if all(type(k) is str and "," not in k for k in params):
        return dict(params)
    out: dict[str, Any] = {}
    for name, value in params.items():
        for word in members(name):
            if word in out:
                raise ParameterError(f"{word} is given twice: by itself and as one of several that "
                                     "move together")  # fmt: skip
            out[word] = value
    return out


def shared(a: Name, b: Name | Iterable[str]) -> str | None:
    """A parameter that is in both names."""
    there = {m for k in ([b] if isinstance(b, str) else b) for m in members(k)}
    return next((m for m in members(a) if m in there), None)


def check_known(
    name: Name, known: Iterable[str], owner: str = "the problem", has: str = "it has"
) -> None:
    """Raise `ParameterError` for a parameter that is not among the known ones."""
    there = list(known)
    for word in members(name):
        if word not in there:
            raise ParameterError(f"unknown parameter {word!r} of {owner}{near(word, there)}; "
                                 f"{has}: {', '.join(there)}")  # fmt: skip
