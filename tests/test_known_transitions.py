"""Problems with known answers, each found by `diagram` from the model and a span alone."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import sympy as sp

import theory
from numerics import PlainProblem
from numerics.continuation import diagram, follow
from theory.models import get

x, y, lam, mu, eps, a = sp.symbols("x y lam mu eps a", real=True)


def potential(expression, unknowns, parameters):
    return theory.derive(theory.FreeEnergy(expression, unknowns, parameters)).compile()


def cusp():
    return potential(x**4 / 4 - lam * x**2 / 2 - mu * x, [x], [lam, mu])


def imperfect():
    return potential(x**4 / 4 - lam * x**2 / 2 + eps * x, [x], [lam, eps])


def two_cells():
    return potential(-(x**2) - y**2 + x * y + a * (sp.exp(x) + sp.exp(y)), [x, y], [a])


def built_in(name):
    return lambda: theory.derive(get(name)).compile()


@dataclass
class Row:
    name: str
    problem: object
    parameter: str
    span: tuple
    fixed: dict
    events: dict = field(default_factory=dict)
    tolerance: float = 1e-10

    def __str__(self):
        return self.name


LN2 = math.log(2)
TABLE = [
    Row("cusp", cusp, "mu", (-1, 1), {"lam": 1.0},
        {"fold": [-0.384900179459751, 0.384900179459751], "first-order": [0.0]}),
    Row("imperfect pitchfork", imperfect, "lam", (-1, 1), {"eps": 0.01},
        {"fold": [0.087720532146386]}),
    Row("pitchfork", imperfect, "lam", (-1, 1), {"eps": 0.0}, {"pitchfork": [0.0]}),
    Row("two-cell Bratu", two_cells, "a", (0.01, 1), {},
        {"fold": [1 / math.e], "pitchfork": [0.149361205103592]}),
    Row("Curie-Weiss in h", built_in("curie-weiss"), "h", (-0.5, 0.5), {"T": 0.5},
        {"fold": [-0.266419987676776, 0.266419987676776], "first-order": [0.0]}),
    Row("Curie-Weiss in T", built_in("curie-weiss"), "T", (0.4, 1.6), {"h": 0.0},
        {"pitchfork": [1.0]}),
    Row("Landau", built_in("landau"), "r", (-0.5, 0.5), {"u": -1.0},
        {"first-order": [3 / 16], "fold": [0.25], "pitchfork": [0.0]}),
    Row("Landau, other u and v", built_in("landau"), "r", (-0.2, 0.3), {"u": -0.8, "v": 2.0},
        {"first-order": [3 * 0.64 / 32], "fold": [0.08], "pitchfork": [0.0]}),
    Row("Blume-Capel, T = .25", built_in("blume-capel"), "D", (0.3, 0.6), {"T": 0.25},
        {"first-order": [0.476265836632844], "fold": [0.490265484857193],
         "pitchfork": [0.447939867307014]}),
    # fold and transition at T = .2 from 40-digit Newton
    Row("Blume-Capel, T = .2", built_in("blume-capel"), "D", (0.3, 0.6), {"T": 0.2},
        {"first-order": [0.486701271068090], "fold": [0.530227853540852],
         "pitchfork": [0.415888308335967]}),
    Row("Potts", built_in("potts"), "K", (2.5, 3.2), {"q": 3.0},
        {"first-order": [4 * LN2], "fold": [2.74564357673272], "transcritical": [3.0]}),
    Row("van der Waals", built_in("van-der-waals"), "p", (0.3, 0.9), {"T": 0.9},
        {"first-order": [0.646998351872251], "fold": [0.419843470459987, 0.724013198001959]}),
    Row("perceptron", built_in("perceptron"), "alpha", (0.5, 2.0), {},
        {"first-order": [1.244683990], "fold": [1.492631818]}, 1e-9),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_every_event_is_found_and_none_is_invented(row):
    found = diagram(row.problem(), row.parameter, row.span, **row.fixed)
    kinds = {e.kind for e in found.events}
    assert kinds == set(row.events)
    for kind, values in row.events.items():
        events = found.of_kind(kind)
        assert len(events) == len(values)
        for event, value in zip(events, values, strict=True):
            assert event.status == "polished"
            assert event.value == pytest.approx(value, abs=row.tolerance)
            assert event.interval[0] <= event.value <= event.interval[1]
            # the exact values are known to fifteen digits, the perceptron's to nine
            known = 6e-10 if row.name == "perceptron" else 2e-15
            assert abs(event.value - value) <= event.error + known
            assert event.residual < 1e-10


def test_states_at_the_transitions():
    found = diagram(built_in("van-der-waals")(), "p", (0.3, 0.9), T=0.9)
    (event,) = found.of_kind("first-order")
    volumes = sorted(s["v"] for s in event.states.values())
    assert volumes == pytest.approx([0.603401903178003, 2.348842376202228], abs=1e-11)
    (event,) = diagram(built_in("potts")(), "K", (2.5, 3.2)).of_kind("first-order")
    assert max(s["s"] for s in event.states.values()) == pytest.approx(0.5, abs=1e-11)
    assert event.details["ground"] == 1.0
    (event,) = diagram(built_in("landau")(), "r", (0.01, 0.5), u=-1.0).of_kind("first-order")
    assert max(s["m"] for s in event.states.values()) ** 2 == pytest.approx(0.75, abs=1e-11)


def test_a_crossing_of_metastable_states_is_no_ground_state():
    """Three minima, the middle one lowest at mu = 0, where the outer two cross."""
    wells = potential(x**6 / 6 - x**4 / 2 + 0.4 * x**2 - mu * x, [x], [mu])
    found = diagram(wells, "mu", (-0.25, 0.25)).of_kind("first-order")
    values = [e.value for e in found]
    assert len(found) == 3 and values[1] == pytest.approx(0.0, abs=1e-10)
    assert values[0] == pytest.approx(-values[2], abs=1e-10)
    assert [e.details["ground"] for e in found] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("cells", [32, 64])
def test_bratu_on_a_line(cells):
    """u'' + lam e^u = 0: the fold approaches 3.51383071912516 like h^2, with a known factor."""
    n = cells - 1

    def residual(u, p):
        padded = np.concatenate([[0.0], u, [0.0]])
        return np.diff(padded, 2) * cells**2 + p["lam"] * np.exp(u)

    def jacobian(u, p):
        band = np.diag(np.full(n - 1, 1.0), 1)
        return (band + band.T - 2 * np.eye(n)) * cells**2 + np.diag(p["lam"] * np.exp(u))

    problem = PlainProblem(residual, [f"u{i}" for i in range(n)], {"lam": 1.0}, jacobian=jacobian)
    branch = follow(problem, np.zeros(n), "lam", (0.1, 4.0))
    (fold,) = [e for e in branch.events if e.kind == "fold"]
    assert fold.status == "polished"
    # Richardson: 3.513830719 + c h^2, c = -1.9...; the next order is smaller by h^2
    h = 1 / cells
    assert abs(fold.value - 3.51383071912516) < 4 * h**2
    assert abs(fold.value - 3.51383071912516) > 0.1 * h**2


def test_ridge_regression_has_no_events():
    found = diagram(built_in("ridge")(), "alpha", (0.5, 3.0), **{"lambda": 0.1})
    assert found.events == [] and len(found.branches) == 1
    branch = found.branches[0]
    for k in (0, len(branch) // 2, -1):
        alpha, lam_, noise = branch.values[k], 0.1, 0.1
        b = lam_ + alpha - 1
        V = (-b + math.sqrt(b * b + 4 * lam_)) / (2 * lam_)
        vhat = alpha / (1 + V)
        theta = vhat / (lam_ + vhat)
        share = alpha * V**2 / (1 + V) ** 2
        q = (theta**2 + share * (1 + noise - 2 * theta)) / (1 - share)
        assert branch["V"][k] == pytest.approx(V, abs=1e-10)
        assert branch["theta"][k] == pytest.approx(theta, abs=1e-10)
        assert branch["q"][k] == pytest.approx(q, abs=1e-10)
    assert np.all(branch.stable)
