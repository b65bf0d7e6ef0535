r"""Expectations with a proximal point in a basis that is closed under differentiation.

The basis consists of products of nodes (forces g, an envelope M) and of scores
:math:`s = \Sigma^{-1}(x - \mu)`. With :math:`P = \Sigma^{-1}`, for a density that depends on y,

.. math::
    \partial_y \log\rho = \mu_i' s_i + \tfrac12 \Sigma_{ij}' (s_i s_j - P_{ij}), \qquad
    \partial_y s = -P (\Sigma' s + \mu').

A force is the weak slope of its envelope, :math:`g = -\nabla_W M`, so that
:math:`E[c\,g_k] = -E[M\,(c\,s_k - \partial_{W_k} c)]`: its derivative with respect to what else the
envelope depends on, the response or a parameter of the loss, is that of the envelope. Products of
forces have no such form; what they leave has a term on the surface of the jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sp

from theory.errors import DerivationError
from theory.nodes import GaussianExpectation, Moreau, ProximalForce
from theory.nodes.moreau import _Jumping
from theory.symmetry import Symmetry, average

Nodes = Moreau | _Jumping


@dataclass(frozen=True)
class Product:
    """``smooth * jumping`` over a measure: powers of scores, and of nodes."""

    node: GaussianExpectation
    scores: tuple[sp.Symbol, ...]
    smooth: sp.Expr
    jumping: sp.Expr


class Scores:
    """Rewrites expectations in the basis, and differentiates them there.

    Parameters
    ----------
    group : sequence of Symmetry
        Of loss and measure; every integrand of the basis is an average over it.
    """

    def __init__(self, group: Sequence[Symmetry]):
        self.group = list(group)
        self._known: dict[GaussianExpectation, sp.Expr] = {}
        self._basis: dict[tuple, sp.Expr] = {}
        self._products: dict[sp.Expr, Product] = {}

    def __call__(self, expression: sp.Expr) -> sp.Expr:
        """The same expression by the basis; expectations that are not of its form stay."""
        nodes = expression.atoms(GaussianExpectation)
        for node in nodes - set(self._known) - set(self._products):
            self._known[node] = self._rewritten(node)
        return expression.xreplace({node: self._known.get(node, node) for node in nodes})

    def derivative(self, expression: sp.Expr, y: sp.Symbol) -> sp.Expr:
        """Derivative of a rewritten expression.

        Raises
        ------
        DerivationError
            Where it would have a term on the surface of the jumps.
        """
        nodes = sorted(expression.atoms(GaussianExpectation), key=sp.default_sort_key)
        masks = {node: sp.Dummy(f"e{i}") for i, node in enumerate(nodes)}
        masked = expression.xreplace(masks)
        total = masked.diff(y)
        for node, mask in masks.items():
            if y in node.free_symbols:
                product = self._products.get(node)
                slope = self(node.diff(y)) if product is None else self._slope(product, y)
                total += masked.diff(mask) * slope
        return total.xreplace({mask: node for node, mask in masks.items()})

    def _rewritten(self, node: GaussianExpectation) -> sp.Expr:
        """Change the variables to scores; one term for each product of scores and nodes."""
        if not node.has(Moreau):
            return average(node, self.group)
        scores = sp.symbols(f"score_:{len(node.variables)}", real=True)
        shifted = sp.Matrix(list(node.mean)) + node.covariance * sp.Matrix(scores)
        change = dict(zip(node.variables, shifted, strict=True))
        return self._collected(node, scores, node.integrand, change)

    def _collected(self, node, scores, integrand: sp.Expr, change) -> sp.Expr:
        found = integrand.atoms(Moreau, _Jumping)
        outer = sorted(found - {n.moreau for n in found if isinstance(n, _Jumping)},
                       key=sp.default_sort_key)  # fmt: skip
        masks = {n: sp.Dummy(f"n{i}") for i, n in enumerate(outer)}
        masked = integrand.xreplace(masks).xreplace(change)
        try:
            terms = sp.Poly(masked, *scores, *masks.values()).terms()
        except sp.PolynomialError:
            return average(node, self.group)
        split = len(scores)
        return sp.Add(*(
            sp.factor_terms(c) * self._moment(Product(
                node, scores, sp.Mul(*map(sp.Pow, scores, powers[:split])),
                sp.Mul(*map(sp.Pow, outer, powers[split:])),
            ))
            for powers, c in terms
        ))  # fmt: skip

    def _moment(self, product: Product) -> sp.Expr:
        """Expectation of the product, averaged over the group: scores move with their variables."""
        node, whole = product.node, product.smooth * product.jumping
        key = (node.measure, whole)
        if key not in self._basis:
            back = dict(zip(node.variables, product.scores, strict=True))
            images = []
            for g in self.group:
                turned = {back[x]: y.xreplace(back) for x, y in g.mapping.items() if x in back}
                images.append(Symmetry(g.name, {**g.mapping, **turned})(whole))
            mean = sp.Add(*images) / len(images)
            sign = -1 if mean.could_extract_minus_sign() else 1
            there = dict(zip(product.scores, node.scores, strict=True))
            moment = node.over((sign * mean).xreplace(there))
            if isinstance(moment, GaussianExpectation):
                self._products.setdefault(
                    moment, Product(node, product.scores, product.smooth, sign * product.jumping)
                )
            self._basis[key] = sign * moment
        return self._basis[key]

    def _slope(self, product: Product, y: sp.Symbol) -> sp.Expr:
        node, s, smooth = product.node, sp.Matrix(product.scores), product.smooth
        n = range(len(s))
        precision = sp.Matrix(len(s), len(s), lambda i, j: node.scores[i].diff(node.variables[j]))
        names = sp.Matrix(len(s), len(s), lambda i, j: sp.Symbol(f"P_{min(i, j)}_{max(i, j)}")
                          if precision[i, j] != 0 else 0)  # fmt: skip
        mean, covariance = sp.Matrix(list(node.mean)).diff(y), node.covariance.diff(y)
        density = (mean.T * s)[0] + sum(
            covariance[i, j] * (s[i] * s[j] - names[i, j]) for i in n for j in n
        ) / 2
        moved = -names * (covariance * s + mean)
        own = sum(smooth.diff(s[i]) * moved[i] for i in n)
        total = (smooth * density + own) * product.jumping
        if y in product.jumping.free_symbols:
            total += _of_envelope(product, y, names)
        known = {names[i, j]: precision[i, j] for i in n for j in n if precision[i, j] != 0}
        return self._collected(node, product.scores, sp.sympify(total), {}).xreplace(known)


def _of_envelope(product: Product, y: sp.Symbol, precision: sp.Matrix) -> sp.Expr:
    """The part of a derivative that acts on the nodes."""
    sign, inner = product.jumping.as_coeff_Mul()
    if isinstance(inner, Moreau):
        return sign * inner.diff(y) * product.smooth
    variables, s = product.node.variables, product.scores
    if isinstance(inner, ProximalForce) and inner.moreau.field[inner.index] in variables:
        k = variables.index(inner.moreau.field[inner.index])
        divergence = sum(product.smooth.diff(x) * precision[i, k] for i, x in enumerate(s))
        return -sign * inner.moreau.diff(y) * (product.smooth * s[k] - divergence)
    raise DerivationError(
        f"{product.jumping} jumps where two proximal points exchange: the derivative of its "
        f"expectation with respect to {y} has a surface term"
    )
