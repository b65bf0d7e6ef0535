"""Common sub-expressions, and moving what is known early out of the inner loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from theory.codegen.printer import KernelPrinter


class Hoister:
    """Collects maximal sub-expressions that do not depend on the inner variables.

    They become entries of an array ``ctx`` that an outer loop fills once; inner functions refer to
    them by symbol. One hoister serves all inner functions, so that they share the array.

    Parameters
    ----------
    inner : iterable of Symbol
        Variables of the inner loops.
    name : str
        Of the array.
    known : iterable of Symbol
        Outer variables that inner functions have at hand: alone, they need no entry.
    """

    def __init__(self, inner, name: str = "ctx", known=()):
        self.inner, self.name, self.known = frozenset(inner), name, frozenset(known)
        self.entries: dict[sp.Expr, sp.Symbol] = {}

    def __call__(self, expression: sp.Expr) -> sp.Expr:
        if expression.is_number or expression in self.known:
            return expression
        if not expression.free_symbols & self.inner:
            return self._entry(expression)
        if not expression.args:
            return expression
        if isinstance(expression, (sp.Add, sp.Mul)):
            outer = [a for a in expression.args if not a.free_symbols & self.inner]
            rest = [self(a) for a in expression.args if a.free_symbols & self.inner]
            head = self(expression.func(*outer)) if outer else expression.func.identity
            return expression.func(head, *rest, evaluate=True)
        return expression.func(*(self(a) for a in expression.args))

    def _entry(self, expression):
        if expression not in self.entries:
            self.entries[expression] = sp.Symbol(f"{self.name}[{len(self.entries)}]", real=True)
        return self.entries[expression]

    @property
    def names(self) -> dict[sp.Symbol, str]:
        return {symbol: symbol.name for symbol in self.entries.values()}


def assignments(
    targets: Sequence[str], expressions: Sequence[sp.Expr], names: Mapping[sp.Symbol, str]
) -> list[str]:
    """Lines that compute ``expressions`` into ``targets``, common sub-expressions first.

    Piecewise expressions stay whole, so that nothing guarded is evaluated outside its branch.
    """
    pieces = {p: sp.Dummy(f"piece{i}", real=True) for i, p in enumerate(_piecewise(expressions))}
    masked = [sp.sympify(e).xreplace(pieces) for e in expressions]
    symbols = sp.numbered_symbols("t", real=True)
    taken = {s.name for s in names} | set(names.values())
    fresh = (s for s in symbols if s.name not in taken)
    common, reduced = sp.cse(masked, symbols=fresh, order="canonical", list=True)
    restore = {d: p for p, d in pieces.items()}
    printer = KernelPrinter(names)
    lines = []

    def emit(target, expression):
        expression, bases = _named_bases(expression, fresh)
        for symbol, base in bases:
            emit(symbol.name, base)
            printer.declare(symbol)
        lines.append(f"{target} = {printer.doprint(expression.xreplace(restore))}")

    for symbol, expression in common:
        emit(symbol.name, expression)
        printer.declare(symbol)
    for target, expression in zip(targets, reduced, strict=True):
        emit(target, expression)
    return lines


def _named_bases(expression, fresh):
    """Give the base of each small integer power a name, since it is printed as a product."""
    bases = {}
    for power in sorted(expression.atoms(sp.Pow), key=sp.default_sort_key):
        base, exponent = power.as_base_exp()
        small = exponent.is_Integer and 2 <= abs(int(exponent)) <= 4
        if small and base.args and not base.is_number and base not in bases:
            bases[base] = next(fresh)
    image = {base**k: symbol**k for base, symbol in bases.items() for k in (-4, -3, -2, 2, 3, 4)}
    return expression.xreplace(image), [(symbol, base) for base, symbol in bases.items()]


def _piecewise(expressions):
    found = set().union(*(sp.sympify(e).atoms(sp.Piecewise) for e in expressions), set())
    nested = {q for p in found for q in p.atoms(sp.Piecewise) if q is not p}
    return sorted(found - nested, key=sp.default_sort_key)
