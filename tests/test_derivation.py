"""The equations are outputs: compared with the written ones, symbol by symbol."""

import pytest
import sympy as sp

import theory
from theory.derive import is_identically_zero
from theory.models import attention, get
from theory.nodes import GaussianExpectation, Logistic, Moreau, expand_expectations


@pytest.fixture(scope="module")
def exchange():
    return theory.derive(attention(), ansatz="exchange")


def test_entropic_side_is_the_written_one(exchange):
    names = {str(s): s for s in (*exchange.unknowns, *exchange.conjugates)}
    qh, vh, mh, th = (names[n] for n in ("qhat", "Vhat", "mhat", "thetahat"))
    p = {q.name: q.symbol for q in exchange.parameters}
    s2, lam = p["sigma"] ** 2, p["lambda"]
    # theory writes the conjugates summed over the two tokens
    Q, V, M, T = 2 * qh, 2 * vh, 2 * mh, 2 * th
    D, rho = lam + s2 * V, s2
    written = {
        "q": s2 * (s2 * Q + M**2 + s2 * rho * T**2) / D**2,
        "V": s2 / D,
        "m": M / D,
        "theta": s2 * rho * T / D,
    }
    for name, expression in written.items():
        assert sp.simplify(exchange.updates[names[name]] - expression) == 0


def test_channel_side_is_the_stein_form():
    system = theory.derive(attention(), ansatz="none")
    names = {str(s): s for s in (*system.unknowns, *system.conjugates)}
    alpha = next(p.symbol for p in system.parameters if p.name == "alpha")
    sigma = next(p.symbol for p in system.parameters if p.name == "sigma")
    node = next(n for n in system.expectations if n.atoms(Moreau))
    moreau = next(iter(node.atoms(Moreau)))
    W, Z = node.variables[:2], node.variables[2:]
    for k in (1, 2):
        g, w, z = moreau.force(k - 1), W[k - 1], Z[k - 1]
        q, m, theta = (names[f"{n}_{k}"] for n in ("q", "m", "theta"))
        rho = sigma**2
        written = {
            "qhat": alpha * node.over(g**2),
            "mhat": alpha * node.over(g),
            "thetahat": alpha * node.over(g * (z - theta / q * (w - m))) / (rho - theta**2 / q),
            "Vhat": -alpha * node.over(g * (w - m - theta / rho * z)) / (q - theta**2 / rho),
        }
        for name, expression in written.items():
            derived = system.conjugates[names[f"{name}_{k}"]]
            assert is_identically_zero(derived - expression), name


def test_loss_of_two_tokens(exchange):
    moreau = next(iter(exchange.energy.atoms(Moreau)))
    h1, h2 = moreau.minimiser
    sigma = next(p.symbol for p in exchange.parameters if p.name == "sigma")
    zero = {s: 0 for s in moreau.loss.free_symbols if str(s).startswith("Z")}
    omega = next(p.symbol for p in exchange.parameters if p.name == "omega")
    at = moreau.loss.subs(zero).subs(omega, 0)
    s1, s2 = Logistic(h1 * (h1 - h2)), Logistic(h2 * (h2 - h1))
    half = sp.Rational(1, 2)
    assert sp.expand(at - sigma**2 * ((s1 - half) ** 2 + (s2 - half) ** 2)) == 0


@pytest.mark.parametrize("branch", ["positional", "semantic", "agnostic", "mixed"])
@pytest.mark.parametrize("ansatz", ["exchange", "isotropic"])
def test_branches_are_consistent(branch, ansatz):
    reduced = theory.derive(attention(), ansatz=ansatz).branch(branch)
    gone = {"positional": {"theta"}, "semantic": {"m"}, "agnostic": {"m", "theta"}, "mixed": set()}
    assert {str(x) for x in reduced.unknowns} == {"q", "V", "m", "theta"} - gone[branch]


def test_broken_exchange_says_so_and_falls_back():
    values = {"A11": 0.3, "A22": 0.8}
    with pytest.raises(theory.AnsatzError, match="exchange symmetry is broken"):
        theory.derive(attention(), ansatz="exchange", values=values)
    system = theory.derive(attention(), values=values)
    assert [a.name for a in system.ansaetze] == ["isotropic"]
    # the conjugates stay one per token
    assert {"qhat_1", "qhat_2"} <= {str(h) for h in system.conjugates}


def test_a_wrong_ansatz_is_refused():
    model = attention()
    theta = [s for s in model.unknowns if str(s).startswith("theta")]
    m = [s for s in model.unknowns if str(s).startswith("m")]
    wrong = theory.Ansatz("wrong", {m[1]: m[0], theta[1]: theta[0]})
    from theory.derive import reduce

    with pytest.raises(theory.AnsatzError, match="not consistent"):
        reduce(theory.derive(model, ansatz="none"), wrong)


@pytest.mark.parametrize("kwargs", [{"tokens": 3}, {"rank": 2, "teacher_rank": 1}])
def test_general_shapes(kwargs):
    system = theory.derive(attention(**kwargs))
    assert len(system.updates) == len(system.unknowns)


def test_differentiating_through_a_jump_is_refused(exchange):
    moreau = next(iter(exchange.energy.atoms(Moreau)))
    with pytest.raises(theory.DerivationError, match="surface term"):
        moreau.force(0).diff(moreau.field[0])


def test_price_and_bonnet_on_polynomials():
    x, y = sp.symbols("x y", real=True)
    a, b, m = sp.symbols("a b m", positive=True)
    c = sp.Symbol("c", real=True)
    # E[x^2 y] with mean (m, 0) and covariance c is 2 m c
    node = GaussianExpectation(x**2 * y, [x, y], [m, 0], sp.Matrix([[a, c], [c, b]]))
    by_c = expand_expectations(node.diff(c))
    assert by_c == 2 * GaussianExpectation(x, *node.measure)
    by_m = expand_expectations(node.diff(m))
    assert by_m == 2 * GaussianExpectation(x * y, *node.measure)


def test_stray_symbols_are_named():
    m, T, stray = sp.symbols("m T stray", real=True)
    with pytest.raises(theory.ModelError, match=r"stray.*neither an unknown nor a parameter"):
        theory.FreeEnergy(m**2 * stray + T, [m], [T])
    with pytest.raises(theory.ModelError, match="other assumptions"):
        theory.FreeEnergy(m**2 * sp.Symbol("T"), [m], [T])


def test_the_derivation_can_be_read():
    system = theory.derive(get("attention"))
    text = system.explain()
    assert "Moreau envelope" in text and "Saddle-point equations" in text
    assert system.latex().startswith(r"\begin{align}")
    assert r"\hat{\theta}" in system.latex()
