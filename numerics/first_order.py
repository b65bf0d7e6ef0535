"""The main job from one call: model in, first-order transition and branches out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numerics.branches import compiled
from numerics.continuation import Branch, Transition, crossing, follow
from theory.free_energy import FreeEnergy


def find_transition(
    model: FreeEnergy,
    params: Mapping[str, float] | None = None,
    *,
    between: tuple[str, str] | None = None,
    parameter: str | None = None,
    span: tuple[float, float] | None = None,
    accuracy: float = 1e-6,
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
            callback({"stage": f"deriving and compiling {name} (the first time takes longer)"})
        problems.append(compiled(model, name, params))
    return crossing(
        problems[0], problems[1], params, parameter, span, accuracy=accuracy, callback=callback
    )


def branch_curves(
    model: FreeEnergy,
    found: Transition,
    span: tuple[float, float],
    *,
    points: int = 6,
    accuracy: float = 4e-4,
    callback: Callable[[dict], Any] | None = None,
) -> list[Branch]:
    """Both branches around a transition, as far as they exist within reach, for a figure."""
    curves = []
    for name, state in found.states.items():
        problem = compiled(model, name, {**found.params, found.parameter: span[0]})
        here = state.params[found.parameter]
        low, high = _window(here, span)
        left = follow(problem, state, found.parameter, (here, low), points=points, finest=2,
                      accuracy=accuracy, callback=callback)  # fmt: skip
        right = follow(problem, state, found.parameter, (here, high), points=points, finest=2,
                       accuracy=accuracy, callback=callback)  # fmt: skip
        curves.append(Branch(found.parameter, left.points[::-1] + right.points[1:], right.status))
    return curves


def _window(here: float, span: tuple[float, float]) -> tuple[float, float]:
    """A range around the transition that shows it."""
    low, high = span
    if low > 0 and high / low > 4:
        return max(low, 0.65 * here), min(high, 1.5 * here)
    reach = 0.35 * (high - low)
    return max(low, here - reach), min(high, here + reach)
