"""Symmetries of a loss as signed permutations of its variables, and what they do to expectations.

A symmetry is declared; that it *is* one (of the loss, of the Gaussian measure, of the response) is
always checked before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sympy as sp

from theory.errors import AnsatzError
from theory.nodes import (
    AtProximal,
    GaussianExpectation,
    Moreau,
    ProximalForce,
    ProximalSlope,
    tidy_expectations,
)
from theory.nodes.moreau import at_proximal


@dataclass(frozen=True)
class Symmetry:
    """A signed permutation of the integration and minimisation variables.

    Parameters
    ----------
    name : str
    mapping : mapping of Symbol to Expr
        Image of each variable: plus or minus another variable. Variables left out stay.
    """

    name: str
    mapping: Mapping[sp.Symbol, sp.Expr]

    def __call__(self, expression: sp.Expr) -> sp.Expr:
        """Change the variables in an integrand (the measure is assumed invariant)."""
        nodes = expression.atoms(Moreau, ProximalForce, ProximalSlope, AtProximal)
        # outermost nodes only: an envelope inside a force is handled by the force
        inner = {n for node in nodes for n in node.atoms(Moreau) if n is not node}
        images = {node: self._image(node) for node in nodes - inner}
        dummies = {node: sp.Dummy() for node in images}
        moved = expression.xreplace(dummies).xreplace(dict(self.mapping))
        return moved.xreplace({dummies[node]: image for node, image in images.items()})

    def _image(self, node):
        if isinstance(node, Moreau):
            return node
        if isinstance(node, ProximalForce):
            sign, i = self._moved(node.moreau, node.index)
            return sign * node.moreau.force(i)
        if isinstance(node, ProximalSlope):
            (s, i), (t, j) = (self._moved(node.moreau, k) for k in node.indices)
            return s * t * node.moreau.slope(i, j)
        return at_proximal(node.expression.xreplace(dict(self.mapping)), node.moreau)

    def _moved(self, moreau: Moreau, index: int) -> tuple[int, int]:
        """Sign and index of the image of a minimisation variable."""
        h = moreau.minimiser
        sign, target = _signed(self.mapping.get(h[index], h[index]))
        return sign, h.index(target)

    def compose(self, other: Symmetry) -> Symmetry:
        """First ``other``, then ``self``."""
        keys = set(self.mapping) | set(other.mapping)
        image = {k: other.mapping.get(k, k) for k in keys}
        mapping = {k: sp.sympify(v).xreplace(dict(self.mapping)) for k, v in image.items()}
        return Symmetry(f"{self.name} {other.name}", {k: v for k, v in mapping.items() if k != v})

    @property
    def key(self) -> frozenset:
        return frozenset(self.mapping.items())

    def check(self, node: GaussianExpectation) -> None:
        """Raise `AnsatzError` unless loss, response and measure of ``node`` are invariant."""
        for moreau in node.atoms(Moreau):
            change = sp.expand(moreau.loss.xreplace(dict(self.mapping)) - moreau.loss)
            if change != 0:
                raise AnsatzError(
                    f"{self.name!r} is not a symmetry of the loss: it changes by {change}"
                )
            matrix = self._matrix(moreau.minimiser)
            if matrix * moreau.response * matrix.T != moreau.response:
                raise AnsatzError(f"{self.name!r} does not leave the response {moreau.response}")
            for h, w in zip(moreau.minimiser, moreau.field, strict=True):
                image = self.mapping.get(h, h).xreplace(
                    dict(zip(moreau.minimiser, moreau.field, strict=True))
                )
                if w.xreplace(dict(self.mapping)) != image:
                    raise AnsatzError(f"{self.name!r} moves {h} and its field {w} differently")
        matrix = self._matrix(node.variables)
        mean = sp.Matrix(list(node.mean))
        if not (matrix * mean - mean).expand().is_zero_matrix:
            raise AnsatzError(f"{self.name!r} does not leave the mean {tuple(node.mean)}")
        if not (matrix * node.covariance * matrix.T - node.covariance).expand().is_zero_matrix:
            raise AnsatzError(f"{self.name!r} does not leave the covariance of {node.variables}")

    def _matrix(self, variables) -> sp.Matrix:
        """The signed permutation matrix that acts on ``variables``."""
        matrix = sp.zeros(len(variables))
        for i, x in enumerate(variables):
            sign, target = _signed(self.mapping.get(x, x))
            if target not in variables:
                raise AnsatzError(f"{self.name!r} takes {x} out of {tuple(variables)}")
            matrix[i, variables.index(target)] = sign
        return matrix


def _signed(image) -> tuple[int, sp.Symbol]:
    return (-1, -image) if image.could_extract_minus_sign() else (1, image)


def closure(generators: Iterable[Symmetry]) -> list[Symmetry]:
    """The group that the generators span (identity first)."""
    group = {frozenset(): Symmetry("1", {})}
    frontier = list(group.values())
    generators = list(generators)
    while frontier:
        fresh = []
        for element in frontier:
            for generator in generators:
                product = generator.compose(element)
                if product.key not in group:
                    group[product.key] = product
                    fresh.append(product)
        frontier = fresh
    return list(group.values())


def average(node: GaussianExpectation, group: list[Symmetry]) -> sp.Expr:
    """``E[f] = E[mean of f over the group]``; odd parts vanish, images of each other coincide."""
    # the scores carry the covariance, so an integrand moves with its variables only
    images = [symmetry(node.integrand) for symmetry in group]
    total = sp.Add(*images) / len(group)
    expanded = sp.expand(total)
    if expanded.count_ops() < total.count_ops():
        total = expanded
    return node.over(sp.factor_terms(total))


def symmetrise(expression: sp.Expr, group: list[Symmetry]) -> sp.Expr:
    """Replace every expectation in ``expression`` by that of its group average."""
    nodes = expression.atoms(GaussianExpectation)
    return tidy_expectations(expression.xreplace({node: average(node, group) for node in nodes}))
