"""What a declared model must satisfy; every mistake has a message of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import sympy as sp

from theory.errors import ModelError, near
from theory.nodes import Moreau

if TYPE_CHECKING:
    from theory.free_energy import FreeEnergy


def check(model: FreeEnergy) -> None:
    """Raise `ModelError` for a free energy that cannot be what was meant."""
    _names(model)
    _expressions(model)
    _symbols(model)
    _losses(model)
    _starts(model)
    _compared(model)


def _names(model: FreeEnergy) -> None:
    if not model.unknowns:
        raise ModelError(f"{model.name}: a free energy needs at least one unknown")
    known = _declared(model)
    for s in known:
        if not isinstance(s, sp.Symbol):
            raise ModelError(
                f"{model.name}: {s!r} is not a SymPy symbol; make it with sympy.symbols"
            )
    names = [s.name for s in known]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise ModelError(
            f"{model.name}: {twice[0]} is declared twice; an unknown, conjugate or parameter "
            "needs a name of its own"
        )


def _said(model: FreeEnergy) -> list[tuple[str, sp.Expr]]:
    """Everything that is evaluated, with what it is called in messages."""
    further = [*model.observables.items(), *model.diagnostics.items()]
    return [("the free energy", model.expression), *further]


def _expressions(model: FreeEnergy) -> None:
    for what, expression in _said(model):
        if expression.has(sp.I):
            raise ModelError(
                f"{model.name}: {what} contains the imaginary unit I; it must be real (a logarithm "
                "or root of a negative number brings it in, too)"
            )
        if expression.has(sp.zoo, sp.nan, sp.oo) and not expression.has(sp.Integral):
            raise ModelError(
                f"{model.name}: {what} is not finite: it contains {_infinite(expression)}; look "
                "for a division by zero in it"
            )
        integrals = sorted(expression.atoms(sp.Integral, sp.Sum, sp.Product), key=str)
        if integrals:
            raise ModelError(
                f"{model.name}: {what} contains {integrals[0]}, for which there are no numbers; "
                "write an integral over a Gaussian weight as theory.GaussianExpectation(integrand, "
                "variables, mean, covariance), and any other in closed form (.doit())"
            )


def _losses(model: FreeEnergy) -> None:
    """Losses have the two derivatives that the proximal point needs."""
    for moreau in sorted(model.expression.atoms(Moreau), key=str):
        kinks = moreau.loss.atoms(sp.Abs, sp.sign, sp.Max, sp.Min, sp.Heaviside)
        for kink in sorted(kinks, key=str):
            if kink.free_symbols & set(moreau.minimiser):
                raise ModelError(
                    f"{model.name}: the loss contains {kink}, which has a kink as a function of "
                    f"{_list(moreau.minimiser)}; smooth it, such as sqrt(x**2 + 1/10**6) for "
                    "Abs(x), or Softplus(100*x)/100 for Max(x, 0)"
                )


def _infinite(expression: sp.Expr) -> sp.Expr:
    return next(x for x in (sp.nan, sp.zoo, sp.oo) if expression.has(x))


def _symbols(model: FreeEnergy) -> None:
    known = _declared(model)
    for what, expression in _said(model):
        stray = sorted(expression.free_symbols - set(known), key=str)
        if stray:
            raise ModelError(
                f"{model.name}: free symbol {stray[0]} in {what} is neither an unknown nor a "
                "parameter; add it to parameters=[...] or substitute a number"
                f"{_namesake(stray[0], known)}"
            )
    missing = [u for u in model.unknowns if u not in model.expression.free_symbols]
    if missing:
        raise ModelError(
            f"{model.name}: the free energy does not depend on the unknown {missing[0]}; "
            "remove it from unknowns=[...]"
        )


def _starts(model: FreeEnergy) -> None:
    """Branches, unknowns and parameters that the starts and scales speak of."""
    unknowns = all_unknowns(model)
    for branch in model.starts:
        if branch and model.branches and branch not in model.branches:
            raise ModelError(
                f"{model.name}: starts for an unknown branch {branch!r}"
                f"{near(branch, model.branches)}; the branches are: {', '.join(model.branches)} "
                '("" is for any)'
            )
    said = [(f"starts[{b!r}]", values) for b, values in model.starts.items()]
    for where, values in [*said, ("scales", model.scales)]:
        for key, value in values.items():
            if key not in unknowns:
                raise ModelError(
                    f"{model.name}: {where} has a value for {key}, which is no unknown"
                    f"{near(key, unknowns)}; the unknowns are: {_list(unknowns)}"
                    f"{_namesake(key, unknowns)}"
                )
            stray = sorted(value.free_symbols - set(model.parameter_symbols), key=str)
            if stray:
                raise ModelError(
                    f"{model.name}: {where} uses {stray[0]} for {key}; only numbers and "
                    f"parameters may stand there{_namesake(stray[0], model.parameter_symbols)}"
                )


def _compared(model: FreeEnergy) -> None:
    said = [(f"comparisons[{k!r}]", n, model.observables)
            for k, pair in model.comparisons.items() for n in pair]  # fmt: skip
    said += [(f"limits[{k!r}]", k, model.diagnostics) for k in model.limits]
    for where, name, known in said:
        if name not in known:
            kind = "observable" if where.startswith("comparisons") else "diagnostic"
            raise ModelError(
                f"{model.name}: {where} names {name!r}, which is no {kind}{near(name, known)}; "
                f"there are: {_list(known) or 'none'}"
            )


def _declared(model: FreeEnergy) -> list[sp.Symbol]:
    return [*model.unknowns, *model.conjugates, *model.parameter_symbols]


def all_unknowns(model: FreeEnergy) -> list[sp.Symbol]:
    """Order parameters as declared, and those that the reductions put in their place."""
    found = dict.fromkeys(model.unknowns)
    for ansatz in model.reductions:
        for x in model.unknowns:
            image = sp.sympify(ansatz.substitution.get(x, x))
            found |= dict.fromkeys(sorted(image.free_symbols, key=str))
    return list(found)


def _namesake(symbol: Any, known: Iterable[sp.Symbol]) -> str:
    """A hint where only the assumptions of a symbol, or its type, are not the declared ones."""
    if str(symbol) not in {s.name for s in known}:
        return ""
    return (
        " (a declared symbol has the same name but other assumptions, such as real=True: use one "
        "and the same symbol)"
    )


def _list(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
