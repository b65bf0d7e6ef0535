"""Whether a declared mirror leaves the free energy as it is, tried at random points."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy as sp

from theory.errors import ModelError, SpinodalError, near
from theory.nodes import GaussianExpectation, Moreau

if TYPE_CHECKING:
    from theory.free_energy import FreeEnergy

POINTS = 3
DIGITS = 20


def check_mirrors(model: FreeEnergy, unknowns: Sequence[sp.Symbol]) -> None:
    """Raise `ModelError` for a mirror of something unknown, or one that changes the free energy.

    Free energies with an envelope, or with expectations over several variables, are taken on
    trust: a value of sufficient accuracy takes too long.
    """
    for flip in model.mirrors:
        for x in flip:
            if x not in unknowns:
                raise ModelError(
                    f"{model.name}: mirrors names {x}, which is no unknown{near(x, unknowns)}; the "
                    f"unknowns are: {', '.join(map(str, unknowns))}"
                )
    nodes = model.expression.atoms(GaussianExpectation)
    if not model.mirrors or any(len(n.variables) > 1 or n.has(Moreau) for n in nodes):
        return
    for flip in model.mirrors:
        _try(model, [x for x in flip if x in model.unknowns])


def _try(model: FreeEnergy, flip: list[sp.Symbol]) -> None:
    partners = [h for h in model.conjugates if any(_paired(model.expression, x, h) for x in flip)]
    source, tried = random.Random(1), 0
    for _ in range(20 * POINTS):
        point = _point(model, source)
        here = _value(model, point)
        there = _value(model, {k: -v if k in (*flip, *partners) else v for k, v in point.items()})
        if here is None or there is None:
            continue
        if abs(here - there) > 1e-10 * (1 + abs(here)):
            at = ", ".join(f"{k} = {float(v):.3g}" for k, v in point.items())
            raise ModelError(
                f"{model.name}: mirrors: changing the sign of {', '.join(map(str, flip))} changes "
                f"the free energy from {float(here):.6g} to {float(there):.6g} at {at}; declare "
                "only sign changes that leave it as it is, whatever the parameters"
            )
        tried += 1
        if tried == POINTS:
            return


def _paired(expression: sp.Expr, x: sp.Symbol, hat: sp.Symbol) -> bool:
    """Whether a term is the product of an unknown and a conjugate."""
    terms = sp.Add.make_args(sp.expand_mul(expression))
    return any({x, hat} <= t.free_symbols and sp.sympify(t / (x * hat)).free_symbols.isdisjoint(
        {x, hat}) for t in terms)  # fmt: skip


def _point(model: FreeEnergy, source: random.Random) -> dict[sp.Symbol, sp.Expr]:
    values = {x: source.uniform(0.1, 1.5) for x in (*model.unknowns, *model.conjugates)}
    for p in model.parameters:
        shift = source.uniform(0.1, 0.5)
        guess = (1.0 if p.default is None else p.default) + shift
        values[p.symbol] = guess if guess <= p.high else max(p.low, p.high - shift)
    return {k: sp.Rational(round(1000 * v), 1000) for k, v in values.items()}


def _value(model: FreeEnergy, point: dict[sp.Symbol, sp.Expr]):
    """The free energy at a point; None outside its domain."""
    from theory.precise import evaluate

    if any(not c.subs(point).is_positive for c in model.domain):
        return None
    try:
        value = evaluate(model.expression, {k: float(v) for k, v in point.items()}, DIGITS)
    except (ArithmeticError, TypeError, ValueError, NameError, SpinodalError):
        return None
    return value if value == value and abs(value) < 1e100 else None
