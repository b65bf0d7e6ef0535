"""From a free energy to its saddle-point equations.

Differentiation with respect to the order parameters gives the conjugates in closed form
(the energetic, or channel, side); differentiation with respect to the conjugates gives the order
parameters in closed form (the entropic side). Without conjugates the equations are the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from theory.checks import all_unknowns
from theory.errors import AnsatzError, DerivationError, ModelError, ParameterError, near
from theory.free_energy import Ansatz, FreeEnergy
from theory.joint import separate
from theory.mirrors import check_mirrors
from theory.nodes import GaussianExpectation, Logistic, expand_expectations, tidy_expectations
from theory.stability import jacobian_block
from theory.symmetry import closure, symmetrise
from theory.system import SaddlePointSystem


def derive(
    model: FreeEnergy, *, ansatz: str | None = None, values: Mapping[str, float] | None = None
) -> SaddlePointSystem:
    """Derive the saddle-point equations.

    Parameters
    ----------
    model : FreeEnergy
    ansatz : str, optional
        Name of one of ``model.reductions``, or ``"none"`` for the order parameters as declared.
        By default the first one whose requirements hold.
    values : mapping, optional
        Numerical values of parameters, looked at only to decide which reduction is allowed.

    Returns
    -------
    SaddlePointSystem
        With the equations, observables and (checked) branches of the model.

    Raises
    ------
    AnsatzError
        If a named reduction is not consistent; the message says which equation fails.
    ModelError
        If a declared mirror changes the free energy, or an unknown enters it linearly.
    DerivationError
        If a conjugate does not enter linearly.
    """
    check_mirrors(model, all_unknowns(model))
    channel, entropic = _stationarity(model)
    system = SaddlePointSystem(
        model=model,
        unknowns=model.unknowns,
        conjugates=channel,
        updates=entropic,
        energy=model.expression,
        parameters=model.parameters,
        observables=dict(model.observables),
        diagnostics=dict(model.diagnostics),
        transverse={},
        domain=model.domain,
        scales=dict(model.scales),
        ansaetze=(),
    )
    if ansatz == "none":
        return system
    if ansatz is not None:
        named = {a.name: a for a in model.reductions}
        if ansatz not in named:
            raise AnsatzError(
                f"{model.name} has no reduction {ansatz!r}{near(ansatz, named)}; there are: "
                f"{', '.join(named) or 'none'}"
            )
        broken = broken_requirement(named[ansatz], values or {})
        if broken:
            raise AnsatzError(broken)
        return reduce(system, named[ansatz])
    allowed = reduction_for(model, values or {})
    return system if allowed is None else reduce(system, allowed)


def reduction_for(model: FreeEnergy, values: Mapping[str, float]) -> Ansatz | None:
    """The first reduction of the model whose requirements hold."""
    allowed = (a for a in model.reductions if broken_requirement(a, values) is None)
    return next(allowed, None)


def broken_requirement(ansatz: Ansatz, values: Mapping[str, float]) -> str | None:
    """Why ``ansatz`` is not allowed at these parameter values; None if it is."""
    for a, b in ansatz.requires.items():
        if a.name in values and b.name in values and values[a.name] != values[b.name]:
            return (
                f"the {ansatz.name} symmetry is broken: it needs {a} = {b}, but {a} = "
                f"{values[a.name]} and {b} = {values[b.name]}"
            )
    return None


def _stationarity(model: FreeEnergy):
    """Explicit conjugates and order parameters (empty dicts where there are no conjugates)."""
    if not model.conjugates:
        gradient = {x: tidy_expectations(model.expression.diff(x)) for x in model.unknowns}
        for x, slope in gradient.items():
            if not slope.free_symbols & set(model.unknowns):
                raise ModelError(
                    f"{model.name}: the free energy is linear in {x}: its derivative {slope} "
                    f"contains no unknown and has no zero to solve for; look for a missing term in "
                    f"{x}, or make {x} a parameter"
                )
        return {}, gradient
    hats, orders = set(model.conjugates), set(model.unknowns)
    channel, entropic = {}, {}
    for x in model.unknowns:
        hat, value = _solve_linear(model, x, hats)
        channel[hat] = value
    for hat in model.conjugates:
        x, value = _solve_linear(model, hat, orders)
        entropic[x] = value
    for what, found, wanted in (
        ("order parameter", entropic, orders),
        ("conjugate", channel, hats),
    ):
        if set(found) != wanted:
            lost = ", ".join(sorted(map(str, wanted - set(found))))
            raise DerivationError(f"{model.name}: no equation determines the {what} {lost}")
    ordered = {h: channel[h] for h in model.conjugates}
    return ordered, {x: entropic[x] for x in model.unknowns}


def _solve_linear(model: FreeEnergy, variable: sp.Symbol, partners: set[sp.Symbol]):
    """Solve dF/d(variable) = 0 for the one partner that enters it linearly."""
    slope = model.expression.diff(variable)
    fixed = set(model.parameter_symbols)
    candidates = [p for p in slope.free_symbols & partners if slope.diff(p).free_symbols <= fixed]
    if len(candidates) != 1 or slope.free_symbols & partners != set(candidates):
        raise DerivationError(
            f"{model.name}: the derivative with respect to {variable} must contain exactly one of "
            f"{', '.join(sorted(map(str, partners)))}, linearly, with a coefficient of numbers and "
            f"parameters; it is {slope}. Each unknown needs a conjugate that multiplies it and "
            "enters otherwise without it; else declare all of them as unknowns, without conjugates"
        )
    partner = candidates[0]
    rest = slope.xreplace({partner: sp.S.Zero})
    return partner, sp.factor_terms(tidy_expectations(-rest / slope.diff(partner)))


def _transverse(system: SaddlePointSystem, vanishing):
    """Stability against what vanishes; not known where a response is among it."""
    try:
        return jacobian_block(system, vanishing)
    except DerivationError:
        return {}


def reduce(system: SaddlePointSystem, ansatz: Ansatz) -> SaddlePointSystem:
    """Apply an ansatz after checking that the equations it eliminates hold identically.

    Raises
    ------
    AnsatzError
        Naming the equation that does not hold, with its residual.
    """
    image = {k: sp.sympify(v) for k, v in ansatz.all_substitutions.items()}

    def put(e):
        return sp.sympify(e).xreplace(image)

    group = closure((*ansatz.symmetries, *system.symmetries))
    energy = put(system.energy)
    for node in sorted(energy.atoms(GaussianExpectation), key=sp.default_sort_key):
        for symmetry in (*ansatz.symmetries, *system.symmetries):
            try:
                symmetry.check(node)
            except AnsatzError as error:
                raise AnsatzError(f"ansatz {ansatz.name!r}: {error}") from None

    def close(e):
        return symmetrise(put(e), group)

    conjugates = _reduce_equations(ansatz, image, system.conjugates, close)
    updates = _reduce_equations(
        ansatz, image, system.updates, close, gradient=not system.conjugates
    )
    if not updates:
        raise ModelError(
            f"{system.name}: {ansatz.name!r} leaves no unknown to solve for; give a state that is "
            "known by itself an empty substitution, and its values in starts=..."
        )
    vanishing = [x for x in system.unknowns if image.get(x, x) == 0]
    transverse = {**system.transverse, **_transverse(system, vanishing)}
    return SaddlePointSystem(
        model=system.model,
        unknowns=tuple(updates),
        conjugates=conjugates,
        updates=updates,
        energy=symmetrise(energy, group),
        parameters=tuple(p for p in system.parameters if p.symbol not in ansatz.requires),
        observables={k: close(v) for k, v in system.observables.items()},
        diagnostics={k: close(v) for k, v in system.diagnostics.items()},
        transverse={k: close(v) for k, v in transverse.items()},
        domain=tuple(dict.fromkeys(put(c) for c in system.domain if put(c).free_symbols)),
        scales=_reduce_scales(image, system.scales),
        ansaetze=(*system.ansaetze, ansatz),
    )


def _reduce_scales(image, scales):
    reduced = {}
    for x, scale in scales.items():
        target = image.get(x, x)
        symbols = target.free_symbols
        if len(symbols) == 1 and target.is_Symbol:
            reduced.setdefault(target, scale.xreplace(image))
        elif x not in image:
            reduced[x] = scale.xreplace(image)
    return reduced


def _reduce_equations(ansatz, image, equations, close, *, gradient=False):
    """Keep one equation per remaining variable; check all others against it."""
    kept, checks = {}, []
    for x, right in equations.items():
        target, right = image.get(x, x), close(right)
        factor, variable = target.as_independent(*target.free_symbols, as_Add=False)
        if target == 0:
            checks.append((x, right))
        elif gradient:
            # several directions move together: their slopes add up
            kept[variable] = kept.get(variable, 0) + factor * right
        elif variable not in kept:
            kept[variable] = right / factor
        else:
            checks.append((x, right - factor * kept[variable]))
    for x, residual in checks:
        # the kept variables are unequal symbols, so a residual of zero is an identity
        if not is_identically_zero(residual):
            raise AnsatzError(
                f"ansatz {ansatz.name!r} is not consistent: the equation for {x} is left with "
                f"the residual {residual}"
            )
    return kept


def is_identically_zero(expression: sp.Expr) -> bool:
    """Whether an expression is zero after linearity of the expectations and cancellation."""
    expanded = expand_expectations(expression)
    if expanded == 0:
        return True
    reflected = {
        node: 1 - Logistic(-node.args[0])
        for node in expanded.atoms(Logistic)
        if node.args[0].could_extract_minus_sign()
    }
    if reflected:
        return is_identically_zero(expanded.xreplace(reflected))
    coefficients = sp.collect(expanded, list(expanded.atoms(GaussianExpectation)), evaluate=False)
    return all(sp.cancel(sp.together(c)) == 0 for c in coefficients.values())


def check_values(
    model: FreeEnergy, given: Mapping[str, float], *, partial: bool = False
) -> dict[str, float]:
    """Defaults completed by ``given``, every value checked against its bounds.

    A joint name such as ``"A11,A22"`` gives both parameters one value.

    With ``partial``, parameters without a value are left out.

    Raises
    ------
    ParameterError
        For an unknown name, a missing value or one out of bounds.
    """
    declared = {p.name: p for p in model.parameters}
    given = separate(given)
    for name in given:
        if name not in declared:
            raise ParameterError(
                f"unknown parameter {name!r} of {model.name}{near(name, declared)}; "
                f"it has: {', '.join(declared)}"
            )
    values = {}
    for name, p in declared.items():
        value = given.get(name, p.default)
        if value is None and partial:
            continue
        if value is None:
            raise ParameterError(
                f"{model.name} needs a value for {name}; give it with --set {name}=VALUE "
                f"or params={{{name!r}: ...}}"
            )
        value = float(value)
        inside = (p.low < value if p.low_open else p.low <= value) and value <= p.high
        if not inside or value != value or value in (float("inf"), -float("inf")):
            left = "(" if p.low_open or p.low == -float("inf") else "["
            right = ")" if p.high == float("inf") else "]"
            raise ParameterError(
                f"{name} = {value:g} is outside its domain {left}{p.low:g}, {p.high:g}{right}"
                f"{': ' + p.description if p.description else ''}"
            )
        values[name] = value
    return values
