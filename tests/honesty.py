"""Integration problems whose values are known otherwise, by what makes them hard.

The value of a problem is a function of its parameters, in closed form or by mpmath at 30 digits on
intervals that end where the integrand is singular.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import mpmath as mp
import sympy as sp

import theory
from theory.nodes import GaussianExpectation, Logistic, Moreau, Softplus
from theory.plan import SamplePlan, TensorPlan

mp.mp.dps = 30
s, V, c, r = sp.symbols("s V c r", positive=True)
z, w, h, x = sp.symbols("z w h x", real=True)


@dataclass(frozen=True, eq=False)
class Case:
    """One problem at some accuracies asked.

    ``unreached`` holds those that are known not to be reached.
    """

    name: str
    tag: str
    model: Callable[[], theory.FreeEnergy]
    params: Mapping[str, float]
    value: Callable[[], float]
    route: str
    accuracies: Sequence[float] = (1e-3, 1e-6, 1e-10)
    unreached: Sequence[float] = field(default=())


def of(expectation, parameters, plan=None) -> theory.FreeEnergy:
    """A model whose observable ``value`` is the expectation."""
    return theory.FreeEnergy(
        (x - 1) ** 2 / 2, [x], parameters, observables={"value": expectation}, plan=plan
    )


def _normal(f, points, size=1.0):
    """E f(size z) for a standard normal z, piece by piece."""
    g = lambda t: f(size * t) * mp.exp(-t * t / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731
    return float(mp.quad(g, [-14, *points, 14]))


@functools.cache
def smooth(name: str) -> theory.FreeEnergy:
    """E f(s z), one model for each integrand."""
    integrands = {
        "log cosh": z + Softplus(-2 * z),
        "cosine": sp.cos(3 * z),
        "eighth": z**8,
        "growing": sp.exp(z**2 / 4),
        "saturating": (Logistic(z) - sp.Rational(1, 3)) ** 2,
        "soft kink": sp.sqrt(z**2 + sp.Rational(1, 10**4)),
        "soft hinge": Softplus(50 * z) / 50,
    }
    return of(GaussianExpectation(integrands[name], [z], [0], [[s**2]]), [s])


@functools.cache
def quadratic(tensor: bool) -> theory.FreeEnergy:
    """Envelope of (h - z)^2 / 2 with correlation r between field and source."""
    envelope = Moreau((h - z) ** 2 / 2, [h], [w], sp.Matrix([[V]]))
    measure = sp.Matrix([[s**2, r * s], [r * s, 1]])
    expectation = GaussianExpectation(envelope, [w, z], [0, 0], measure)
    return of(expectation, [s, V, r], TensorPlan() if tensor else SamplePlan())


@functools.cache
def wells(dimension: int) -> theory.FreeEnergy:
    """Envelope of double wells: the proximal point jumps where a field passes zero."""
    fields = sp.symbols(f"w1:{dimension + 1}", real=True)
    minimiser = sp.symbols(f"h1:{dimension + 1}", real=True)
    loss = sum(c * (y**2 - 1) ** 2 / 4 for y in minimiser)
    envelope = Moreau(loss, minimiser, fields, V * sp.eye(dimension))
    zero, measure = [0] * dimension, s**2 * sp.eye(dimension)
    expectation = GaussianExpectation(envelope, fields, zero, measure)
    return of(expectation, [s, V, c], SamplePlan([[-y for y in fields]]))


def well_value(dimension, s, V, c):
    """By the roots of a cubic, and symmetry."""

    def envelope(a):
        a = mp.mpf(a)
        roots = mp.polyroots([c, 0, 1 / mp.mpf(V) - c, -a / V], maxsteps=200, extraprec=200)
        real = [mp.re(y) for y in roots if abs(mp.im(y)) < 1e-12]
        return min((y - a) ** 2 / (2 * V) + c * (y * y - 1) ** 2 / 4 for y in real)

    mp.mp.dps = 18  # the smooth half needs no more
    value = (
        dimension
        * 2
        * mp.quad(
            lambda t: envelope(s * t) * mp.exp(-t * t / 2) / mp.sqrt(2 * mp.pi), [0, 1, 3, 10]
        )
    )
    mp.mp.dps = 30
    return float(value)


def log_cosh(size):
    f = lambda t: mp.log(2 * mp.cosh(t))  # noqa: E731
    return lambda: _normal(f, [-1 / size, 0, 1 / size], size)


def kink(size):
    return lambda: _normal(lambda t: mp.sqrt(t * t + mp.mpf(10) ** -4), [-0.1, 0, 0.1], size)


def hinge(size):
    return lambda: _normal(lambda t: mp.log1p(mp.exp(50 * t)) / 50, [-1, -0.1, 0, 0.1, 1], size)


def saturating(size):
    points = [-10 / size, 0, 10 / size] if size > 2 else [0]
    return lambda: _normal(lambda t: (1 / (1 + mp.exp(-t)) - mp.mpf(1) / 3) ** 2, points, size)


def _quadratic(tag, tensor, s, V, r, accuracies, unreached=()):
    values = {"s": s, "V": V, "r": r}
    value = lambda: (s * s + 1 - 2 * r * s) / (2 * (1 + V))  # noqa: E731
    how = "product rule" if tensor else "Sobol"
    return Case(f"quadratic {how} s={s} V={V} r={r}", tag, functools.partial(quadratic, tensor),
                values, value, "closed form", accuracies, unreached)  # fmt: skip


def _wells(dimension, s, V, c, accuracies, unreached=()):
    return Case(f"{dimension} wells V={V} c={c}", "jump", functools.partial(wells, dimension),
                {"s": s, "V": V, "c": c}, functools.partial(well_value, dimension, s, V, c),
                "roots of a cubic, mpmath", accuracies, unreached)  # fmt: skip


def _smooth(tag, name, size, value, route="mpmath", accuracies=(1e-3, 1e-6, 1e-10), unreached=()):
    return Case(f"{name} s={size}", tag, functools.partial(smooth, name), {"s": size}, value,
                route, accuracies, unreached)  # fmt: skip


SAMPLED = (1e-2, 4e-4, 1e-4)

CASES = [
    _smooth("smooth", "log cosh", 1.0, log_cosh(1.0)),
    _smooth("smooth", "log cosh", 6.0, log_cosh(6.0)),
    _smooth("smooth", "cosine", 1.0, lambda: float(mp.exp(mp.mpf(-9) / 2)), "closed form"),
    _smooth("smooth", "eighth", 1.0, lambda: 105.0, "closed form"),
    _smooth("kink", "soft kink", 1.0, kink(1.0), unreached=(1e-10,)),
    _smooth("kink", "soft kink", 20.0, kink(20.0), unreached=(1e-6, 1e-10)),
    _smooth("kink", "soft hinge", 1.0, hinge(1.0)),
    _smooth("kink", "soft hinge", 10.0, hinge(10.0), unreached=(1e-6, 1e-10)),
    _smooth("tail", "growing", 0.7, lambda: float(1 / mp.sqrt(1 - mp.mpf("0.245"))), "closed form"),
    _smooth(
        "tail",
        "growing",
        1.2,
        lambda: float(1 / mp.sqrt(1 - mp.mpf("0.72"))),
        "closed form",
        unreached=(1e-6, 1e-10),
    ),
    _smooth("tail", "saturating", 1.0, saturating(1.0)),
    _smooth("tail", "saturating", 100.0, saturating(100.0), unreached=(1e-6, 1e-10)),
    _quadratic("smooth", True, 0.8, 2.0, 0.5, (1e-3, 1e-10)),
    _quadratic("edge", True, 1.5, 1e-8, 0.9999999, (1e-3, 1e-10)),
    _quadratic("edge", True, 1.5, 1e8, 0.3, (1e-3, 1e-10)),
    _quadratic("smooth", False, 0.8, 2.0, 0.5, SAMPLED, (4e-4, 1e-4)),
    _quadratic("edge", False, 1.0, 1e-6, 1 - 1e-9, SAMPLED, (4e-4, 1e-4)),
    _quadratic("edge", False, 1.5, 1e8, 0.3, SAMPLED, (4e-4, 1e-4)),
    _wells(1, 1.0, 0.5, 1.0, (*SAMPLED, 1e-5), (4e-4, 1e-4, 1e-5)),
    _wells(1, 0.3, 50.0, 1.0, SAMPLED),
    _wells(6, 1.0, 2.0, 1.0, SAMPLED, (1e-4,)),
    _wells(6, 0.4, 30.0, 3.0, SAMPLED),
]
