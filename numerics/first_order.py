"""The main job from one call: model in, first-order transition and branches out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numerics.ahead import compile_together
from numerics.branches import compiled
from numerics.continuation import Branch, Settings, Transition, crossing, follow
from theory.free_energy import FreeEnergy


def find_transition(
    model: FreeEnergy,
    params: Mapping[str, float] | None = None,
    *,
    between: tuple[str, str] | None = None,
    parameter: str | None = None,
    span: tuple[float, float] | None = None,
    accuracy: float = 1e-6,
    moving: Sequence[str] = (),
    callback: Callable[[dict], Any] | None = None,
) -> Transition:
    """Where the energies of two branches of a model cross.

    Parameters
    ----------
    model : FreeEnergy
    params : mapping, optional
        Control parameters; defaults of the model where not given.
    between, parameter, span : optional
        By default what the model declares as its transition.
    accuracy : float
        Relative accuracy of the expectations.
    moving : sequence of str
        Further parameters that will be moved from there (`compiled`).

    Returns
    -------
    Transition
        Also when there is no crossing: look at ``status`` and ``message``.
    """
    declared = model.transition
    pair = between or declared["between"]
    parameter = parameter or declared["parameter"]
    span = span or declared["span"]
    problems = []
    for name in pair:
        if callback is not None:
            callback({"stage": f"deriving {name}"})
        problems.append(compiled(model, name, params, [parameter, *moving]))
    if callback is not None:
        callback({"stage": "compiling (the first time takes longer)"})
    compile_together(problems, params if span is None else {parameter: span[0], **(params or {})})
    return crossing(
        problems[0], problems[1], params, parameter, span, accuracy=accuracy, callback=callback
    )


def branch_curves(
    model: FreeEnergy,
    found: Transition,
    span: tuple[float, float],
    *,
    points: int = 12,
    accuracy: float = 4e-4,
    callback: Callable[[dict], Any] | None = None,
) -> list[Branch]:
    """Both branches around a transition, as far as they exist within reach, for a figure."""
    low, high = _window(found.value, span)
    settings = Settings(
        step=0.1, longest=0.4, shortest=0.01, angle=0.5, max_points=points, method="natural"
    )
    return [
        follow(
            problem, state, found.parameter, (low, high), both=True, accuracy=accuracy,
            settings=settings, stability=False, callback=callback,
        )
        for problem, state in zip(found.problems, found.states.values(), strict=True)
    ]  # fmt: skip


def _window(here: float, span: tuple[float, float]) -> tuple[float, float]:
    """A range around the transition that shows it."""
    low, high = span
    if low > 0 and high / low > 4:
        return max(low, 0.65 * here), min(high, 1.5 * here)
    reach = 0.35 * (high - low)
    return max(low, here - reach), min(high, here + reach)
