"""Generated code at three levels: the text, the numbers, and arbitrary precision."""

import math
import re

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import theory
from numerics.kernels import kernel_sources
from theory.codegen import write_module
from theory.codegen.printer import KernelPrinter
from theory.errors import DomainError
from theory.models import get
from theory.nodes import LogGaussianTail, Logistic, Softplus
from theory.precise import evaluate, refine, residual


def test_text_is_deterministic_and_clean(attention_model):
    system = theory.derive(attention_model).branch("semantic")
    first = write_module(system, kernel_sources())
    again = write_module(theory.derive(get("attention")).branch("semantic"), kernel_sources())
    assert first == again
    for word in ("Derivative(", "DiracDelta", "Dummy", "numerics.", "theory."):
        assert word not in first
    imports = re.findall(r"^(?:import|from) .*", first, re.M)
    assert set(imports) == {"import math", "import numpy as np", "from numba import njit"}


def test_undeclared_symbols_are_refused():
    with pytest.raises(theory.DerivationError, match="undeclared"):
        KernelPrinter({}).doprint(sp.Symbol("x"))


@pytest.mark.parametrize("node", [Logistic, Softplus, LogGaussianTail])
@pytest.mark.parametrize("value", [-30.0, -2.0, 0.3, 5.0, 25.0])
def test_stable_nodes_against_mpmath(node, value):
    x = sp.Symbol("x", real=True)
    model = theory.FreeEnergy(node(x), [x], [])
    problem = theory.derive(model).compile(mode="python")
    exact = evaluate(node(x), {x: value})
    assert math.isclose(problem.evaluate([value]).energy, float(exact), rel_tol=2e-14)


@pytest.mark.parametrize("name", ["landau", "blume-capel", "curie-weiss"])
def test_compiled_plain_and_mpmath_agree(name):
    system = theory.derive(get(name))
    compiled, plain = system.compile(), system.compile(mode="python")
    for x in (-0.9, 0.2, 0.7):
        a, b = compiled.evaluate([x]), plain.evaluate([x])
        np.testing.assert_allclose(a.residual, b.residual, rtol=1e-13, atol=1e-15)
        exact = residual(system, [x], compiled.values({}))
        np.testing.assert_allclose(a.residual, float(exact[0]), rtol=1e-12, atol=1e-14)
        step = 1e-6
        slope = (compiled.residual([x + step]) - compiled.residual([x - step])) / (2 * step)
        np.testing.assert_allclose(compiled.jacobian([x])[0], slope, rtol=1e-7, atol=1e-9)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.floats(-1, 1), st.floats(0.1, 2), st.floats(-0.5, 0.5))
def test_gradient_is_the_slope_of_the_energy(m, T, h):
    problem = _curie_weiss()
    params, step = {"T": T, "h": h}, 1e-5
    slope = (problem.energy([m + step], params) - problem.energy([m - step], params)) / (2 * step)
    assert abs(problem.residual([m], params)[0] - slope) < 1e-8


def _curie_weiss(cache=[]):  # noqa: B006
    if not cache:
        cache.append(theory.derive(get("curie-weiss")).compile(mode="python"))
    return cache[0]


def test_refinement_to_thirty_digits():
    system = theory.derive(get("curie-weiss"))
    x, left = refine(system, [0.95], {"T": 0.5, "h": 0.0})
    assert left < 1e-28
    assert abs(x[0] - math.tanh(float(x[0]) / 0.5)) < 1e-15


def test_overflow_in_plain_python_is_said_plainly():
    m, a = sp.symbols("m a", real=True)
    system = theory.derive(theory.FreeEnergy(sp.exp(m) + m**4 - a * m, [m], [a]))
    plain, fast = system.compile(mode="python"), system.compile()
    for value in (1e3, 1e100):
        for function in (plain.residual, plain.jacobian, plain.energy, plain.evaluate):
            with pytest.raises(DomainError, match=r"plain Python at values up to 1e\+"):
                function([value], {"a": 1.0})
        assert not np.isfinite(fast.residual([value], {"a": 1.0})[0])
    assert plain.residual([0.0], {"a": 1.0})[0] == 0.0
