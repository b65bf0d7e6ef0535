"""What is wrong with a model is said when it is declared, by name and with the fix."""

import pytest
import sympy as sp

import theory
from numerics import continuation, solve
from numerics.status import Status
from theory.derive import is_identically_zero
from theory.models import get

m, T = sp.symbols("m T", real=True)


def declared(expression=m**4 / 4 + T * m**2 / 2, **options):
    return theory.FreeEnergy(expression, [m], [T], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": {"": {sp.Symbol("mm"): 1}}}, r"value for mm, which is no unknown \(did you me"),
        ({"starts": {"": {sp.Symbol("m"): 1}}}, "other assumptions"),
        ({"starts": {"": {m: m + 1}}}, "only numbers and parameters"),
        ({"scales": {T: 1}}, "scales has a value for T"),
        (
            {"starts": {"odered": {m: 1}}, "branches": {"ordered": theory.Ansatz("ordered", {})}},
            r"unknown branch 'odered' \(did you mean 'ordered'\?\)",
        ),
    ],
)
def test_starts_speak_of_the_unknowns(options, message):
    with pytest.raises(theory.ModelError, match=message):
        declared(**options)


def test_a_given_start_speaks_of_the_unknowns():
    problem = theory.derive(get("landau")).compile(mode="python")
    message = r"value for 'M', which is no unknown \(did you mean 'm'\?\)"
    with pytest.raises(theory.ParameterError, match=message):
        solve(problem, {}, {"m": 1, "M": 2})
    with pytest.raises(theory.ParameterError, match=message):
        continuation.follow(problem, {"M": 1}, "r", (0, 1))
    with pytest.raises(theory.ParameterError, match=message):
        continuation.diagram(problem, "r", (0, 1), starts=[{"M": 1}])
    with pytest.raises(theory.ModelError, match="did you mean 'ordered'"):
        theory.derive(get("landau")).branch("orderd")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (sp.I * m**2 + T * m, "contains the imaginary unit I; it must be real"),
        (m**2 + sp.log(-1) * m, "imaginary unit"),
        (m**2 + T / sp.S.Zero, "the free energy is not finite: it contains zoo"),
        (sp.Integral(sp.exp(-(T**2)) * m, (T, 0, 1)), r"theory\.GaussianExpectation"),
    ],
)
def test_expressions_are_real_and_in_closed_form(expression, message):
    with pytest.raises(theory.ModelError, match=message):
        declared(expression)


def test_a_linear_unknown_is_named():
    with pytest.raises(theory.ModelError, match="is linear in m: its derivative T contains no"):
        theory.derive(declared(T * m))


def test_a_kink_says_how_to_smooth_it():
    with pytest.raises(theory.ModelError, match=r"has a kink where m = 0 .*smooth it"):
        theory.derive(declared(sp.Abs(m) + T * m**2)).compile(mode="python")
    h, w, x = sp.symbols("h w x", real=True)
    envelope = theory.Moreau(sp.Abs(h - x), [h], [w], [[m]])
    with pytest.raises(theory.ModelError, match=r"the loss contains Abs\(h - x\), which has"):
        declared(theory.GaussianExpectation(envelope, [w, x], [0, 0], sp.eye(2)))


def hopfield(**options):
    """Retrieval with m as a parameter, so that q and r are a pair of conjugates."""
    q, r = sp.symbols("q r", positive=True)
    alpha, beta = sp.symbols("alpha beta", positive=True)
    z = sp.Symbol("z", real=True)
    local = theory.GaussianExpectation(sp.log(2 * sp.cosh(beta * z)), [z], [m], [[alpha * r]])
    rest = 1 - beta * (1 - q)
    noise = alpha / (2 * beta) * (sp.log(rest) - beta * q / rest)
    return theory.FreeEnergy(
        alpha * beta * r * (1 - q) / 2 + noise - local / beta, [q], [alpha, beta, m],
        conjugates=[r], domain=[rest, q], **options,
    )  # fmt: skip


def test_conjugates_may_have_parameters_in_their_coefficients():
    problem = theory.derive(hopfield()).compile(mode="python")
    params = {"alpha": 0.03, "beta": 5.0, "m": 0.9995884629}
    state = solve(problem, params, [0.99], accuracy=1e-9)
    # from the saddle point in m, q and r of the full free energy
    assert state["q"] == pytest.approx(0.9991800823, abs=1e-8)
    with pytest.raises(theory.DerivationError, match="coefficient of numbers and parameters"):
        x, y = sp.symbols("x y", real=True)
        theory.derive(theory.FreeEnergy(m**2 * x * y, [m], [y], conjugates=[x]))


def test_the_logistic_function_is_known_to_be_reflected():
    x, y = sp.symbols("x y", real=True)
    s = theory.Logistic
    assert is_identically_zero(s(x - y) + s(y - x) - 1)
    mean = theory.GaussianExpectation(x * (s(x) + s(-x)), [x], [m], [[1]])
    assert is_identically_zero(mean - theory.GaussianExpectation(x, [x], [m], [[1]]))
    assert not is_identically_zero(s(x) - s(-x))
    a, b = sp.symbols("a b", real=True)
    swap = theory.Ansatz("swap", {b: -a})
    energy = theory.Softplus(a) + theory.Softplus(b) + T * (a**2 + b**2) - (a + b) / 2
    reduced = theory.derive(theory.FreeEnergy(energy, [a, b], [T], reductions=[swap]))
    assert len(reduced.unknowns) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("start", [0.3, 8.0])
def test_divergent_expectations_end_in_a_status_and_not_in_warnings(start):
    z = sp.Symbol("z", real=True)
    mean = theory.GaussianExpectation(sp.exp(sp.exp(z**2)) * (m + 1), [z], [0], [[1]])
    problem = theory.derive(declared(mean + T * m**2)).compile()
    found = solve(problem, {"T": 1}, [start], raise_on_failure=False)
    assert found.status is Status.NON_FINITE


@pytest.mark.parametrize(
    ("expression", "mirrors", "message"),
    [
        (m**4 + T * m, [[m]], r"changing the sign of m changes the free energy from \S+ to \S+ at"),
        (m**4 + T * m**2, [[T]], "mirrors names T, which is no unknown"),
        (theory.GaussianExpectation(
            sp.log(1 + sp.exp(sp.Symbol("z"))), [sp.Symbol("z")], [m], [[T**2 + 1]]
        ), [[m]], "changing the sign of m"),
    ],
)  # fmt: skip
def test_mirrors_are_checked(expression, mirrors, message):
    with pytest.raises(theory.ModelError, match=message):
        theory.derive(declared(expression, mirrors=mirrors))


def test_mirrors_that_hold_are_accepted():
    z = sp.Symbol("z", real=True)
    even = theory.GaussianExpectation(sp.log(2 * sp.cosh(z)), [z], [m], [[T**2 + 1]])
    theory.derive(declared(even + m**2, mirrors=[[m]]))
    hat = sp.Symbol("mhat", real=True)
    energy = m * hat - m**2 / 2 - T * sp.log(sp.cosh(hat))
    theory.derive(theory.FreeEnergy(energy, [m], [T], conjugates=[hat], mirrors=[[m]]))


def test_a_parameter_on_the_edge_of_its_domain_is_named():
    problem = theory.derive(get("ridge")).compile()
    message = "lambda = 0 lies on the edge of its domain, where a finite solution need not"
    with pytest.raises(theory.ConvergenceError, match=message):
        solve(problem, {"lambda": 0.0, "alpha": 0.5})


def test_a_branch_keeps_an_unknown():
    model = declared(branches={"zero": theory.Ansatz("zero", {m: 0})})
    with pytest.raises(theory.ModelError, match="'zero' leaves no unknown to solve for"):
        theory.derive(model).branch("zero")
