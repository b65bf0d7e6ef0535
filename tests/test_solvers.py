"""Solvers on toy problems in plain Python: known answers, honest errors, named failures."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numerics import solve, solve_all
from numerics.protocol import Evaluation
from numerics.solvers import NewtonSettings, newton
from numerics.status import Status
from theory.errors import ConvergenceError, DomainError, ParameterError


class Toy:
    """One unknown ``m`` with an energy, everything analytic; `noise` imitates a quadrature.

    Parameters
    ----------
    energy : callable (x, p) -> float
    residual, slope : callable (x, p) -> float
        The residual and its derivative in x.
    slopes : dict of callables
        dE/dparameter.
    """

    unknowns, observables = ("m",), ("size",)

    def __init__(self, name, energy, residual, slope, slopes, defaults, *, start=1.0, branch=None,
                 form="gradient", noise=0.0, floor=0.0, exact=True, kinds=None):  # fmt: skip
        self.name, self.branch, self.form = name, branch, form
        self._energy, self._residual, self._slope, self._slopes = energy, residual, slope, slopes
        self.defaults, self.parameters = defaults, tuple(defaults)
        self.start, self.noise, self.floor, self.exact = start, noise, floor, exact
        self.kinds = kinds or (lambda x, tolerance: "solution")
        self.calls = {"loose": 0, "fine": 0}

    @property
    def roughness(self):
        return 1e-16 if self.noise == 0 else 1e-8

    def values(self, params=None):
        return {**self.defaults, **(params or {})}

    def _wiggle(self, x, accuracy):
        """Smooth, deterministic, at most `noise * accuracy`; another one for each accuracy."""
        accuracy = max(1e-7 if accuracy is None else accuracy, self.floor)
        phase = math.log10(accuracy)
        return self.noise * accuracy, self.noise * accuracy * math.cos(3 * x + 5 * phase)

    def residual(self, x, params=None, accuracy=None):
        assert self.in_domain(x, params), "evaluated outside the domain"
        self.calls["loose" if accuracy and accuracy >= 1e-4 else "fine"] += 1
        return np.array([self._residual(x[0], self.values(params))
                         + self._wiggle(x[0], accuracy)[1]])  # fmt: skip

    def jacobian(self, x, params=None, accuracy=None):
        return np.array([[self._slope(x[0], self.values(params))]]) if self.exact else None

    def evaluate(self, x, params=None, accuracy=None):
        p = self.values(params)
        bound, wiggle = self._wiggle(x[0], accuracy)
        return Evaluation(
            residual=self.residual(x, params, accuracy),
            residual_error=np.array([bound]),
            energy=self._energy(x[0], p) + wiggle,
            energy_error=bound + 1e-16,
            observables={"size": abs(x[0]) + wiggle},
            observable_errors={"size": bound},
            gradient={k: f(x[0], p) for k, f in self._slopes.items()},
            gradient_error=dict.fromkeys(self._slopes, bound),
            relative_error=bound,
        )

    def scale(self, x, params=None):
        return np.maximum(1.0, np.abs(x))

    def in_domain(self, x, params=None):
        return bool(np.all(np.abs(x) < 50))

    def domain_message(self, x, params=None):
        return f"must be positive: 50 - |m| = {50 - abs(x[0]):.4g}"

    def starts(self, params=None):
        return [np.array([self.start])]

    def classify(self, x, params=None, tolerance=1e-4):
        return self.kinds(x[0], tolerance)

    def canonical(self, x):
        return np.array(x)


def curie_weiss(form="fixed_point", **options):
    """m = tanh((m+h)/T)."""

    def residual(m, p):
        return math.tanh((m + p["h"]) / p["T"]) - m

    def slope(m, p):
        return (1 - math.tanh((m + p["h"]) / p["T"]) ** 2) / p["T"] - 1

    sign = 1 if form == "fixed_point" else -1
    return Toy(
        "curie-weiss",
        lambda m, p: m**2 / 2 - p["T"] * math.log(2 * math.cosh((m + p["h"]) / p["T"])),
        lambda m, p: sign * residual(m, p), lambda m, p: sign * slope(m, p),
        {"h": lambda m, p: -math.tanh((m + p["h"]) / p["T"])},
        {"T": 0.5, "h": 0.0}, form=form,
        kinds=lambda m, tol: "paramagnet" if abs(m) <= tol else "magnet", **options,
    )  # fmt: skip


def magnetisation(T, h=0.0):
    """Independent of the solvers: bisection on [1e-9, 1]."""
    low, high = 1e-9, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if math.tanh((middle + h) / T) > middle else (low, middle)
    return low


def polynomial(coefficients, **options):
    """Residual = polynomial with these coefficients (highest first), energy its integral."""
    f = np.poly1d(coefficients)
    energy = f.integ()
    return Toy("polynomial", lambda x, p: energy(x) + p["s"] * x, lambda x, p: f(x) + p["s"],
               lambda x, p: f.deriv()(x), {"s": lambda x, p: x}, {"s": 0.0}, **options)  # fmt: skip


@pytest.mark.parametrize("form", ["fixed_point", "gradient"])
@pytest.mark.parametrize("exact", [True, False])
def test_newton_finds_the_magnetisation(form, exact):
    found = solve(curie_weiss(form, exact=exact), {"T": 0.5}, accuracy=1e-12, tolerance=1e-12)
    assert found["m"] == pytest.approx(magnetisation(0.5), abs=1e-11)
    assert found.status is Status.CONVERGED and found.kind == "magnet"
    assert found.residual <= 1e-12 and found.gradient["h"] == pytest.approx(-found["m"], abs=1e-11)


def test_few_fine_evaluations():
    problem = curie_weiss(exact=False, noise=1.0)
    solve(problem, {"T": 0.5}, accuracy=1e-9)
    assert 1 <= problem.calls["fine"] <= 8


@pytest.mark.parametrize("accuracy", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_error_bars_contain_the_truth(accuracy, noise):
    """Honesty apart from convergence: the noise moves the solution by up to 1/|F' - 1| times it."""
    for T in (0.3, 0.5, 0.7, 0.9):
        problem = curie_weiss(exact=False, noise=noise)
        found = solve(problem, {"T": T}, accuracy=accuracy, raise_on_failure=False)
        exact = magnetisation(T)
        assert abs(found["m"] - exact) <= found.errors["m"]
        energy = problem._energy(exact, {"T": T, "h": 0.0})
        assert abs(found.energy - energy) <= found.energy_error
        assert found.errors["m"] < 100 * accuracy  # and is not merely huge


def test_quadrature_that_cannot_do_better_says_so():
    problem = curie_weiss(exact=False, noise=1.0, floor=1e-5)
    found = solve(problem, {"T": 0.5}, accuracy=1e-9, raise_on_failure=False)
    assert found.status is Status.ACCURACY_NOT_REACHED and found.status.usable
    assert not found.status.success
    assert abs(found["m"] - magnetisation(0.5)) <= found.errors["m"]
    with pytest.raises(ConvergenceError, match="lower accuracy") as caught:
        solve(problem, {"T": 0.5}, accuracy=1e-9)
    assert caught.value.result["m"] == found["m"]


def test_energy_error_covers_an_unconverged_state():
    """The energy of a minimum is zero here, so a bound relative to it would be zero too."""
    problem = Toy("stiff", lambda x, p: 5e5 * (x - 1) ** 2, lambda x, p: 1e6 * (x - 1),
                  lambda x, p: 1e6, {"s": lambda x, p: 0.0}, {"s": 0.0},
                  start=1 + 1e-9)  # fmt: skip
    found = solve(problem, tolerance=1e-2, accuracy=1e-2)
    assert abs(found.energy) <= found.energy_error


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_pitchfork_neighbourhood(distance):
    """m = sqrt(3 distance) is small but not zero, and its error bar must reach the exact value."""
    T = 1 - distance
    exact = magnetisation(T)
    found = solve(curie_weiss(), {"T": T}, [2 * exact], accuracy=1e-13, tolerance=1e-13)
    assert abs(found["m"] - exact) <= found.errors["m"] + 1e-12
    assert found["m"] == pytest.approx(exact, rel=1e-4)


def test_at_the_pitchfork_the_error_bar_is_not_small():
    """Residual 1e-9 at a triple root leaves m uncertain by 1e-3."""
    found = solve(curie_weiss(), {"T": 1.0}, [0.5], tolerance=1e-9, raise_on_failure=False)
    assert abs(found["m"]) <= found.errors["m"]


def test_collapse_onto_the_trivial_branch_is_named():
    found = solve(curie_weiss(branch="magnet"), {"T": 1.2})
    assert found.branch == "magnet" and found.kind == "paramagnet"
    assert abs(found["m"]) < 1e-6


def test_repulsive_fixed_point():
    """F(x) = 4 - 7x repels the iteration; x = 1/2 is a solution all the same."""
    problem = Toy("repulsive", lambda x, p: 4 * x**2 - 4 * x, lambda x, p: 4 - 8 * x,
                  lambda x, p: -8.0, {"s": lambda x, p: 0.0}, {"s": 0.0}, start=0.4,
                  form="fixed_point")  # fmt: skip
    assert solve(problem)["m"] == pytest.approx(0.5, abs=1e-12)
    failed = solve(problem, method="damped", raise_on_failure=False)
    assert not failed.status.success and failed.residual > 0.1


def test_damped_crawl_is_not_convergence():
    """Steps of 1e-5 far from the solution: small steps must not count as success."""
    problem = Toy("crawl", lambda x, p: 0.0, lambda x, p: 1e-5 * (1 - x), lambda x, p: -1e-5,
                  {"s": lambda x, p: 0.0}, {"s": 0.0}, start=0.0, form="fixed_point")  # fmt: skip
    failed = solve(problem, method="damped", max_steps=40, raise_on_failure=False)
    assert failed.status is Status.MAX_STEPS and failed.steps == 40
    # and where the tolerance lets it pass, the error bar tells
    lenient = solve(problem, method="damped", tolerance=1e-4, raise_on_failure=False)
    assert abs(lenient["m"] - 1) <= lenient.errors["m"] * (1 + 1e-12)


def test_damped_agrees_with_newton():
    a = solve(curie_weiss(), {"T": 0.5}, method="damped")
    assert a["m"] == pytest.approx(magnetisation(0.5), abs=2e-7) and a.status.success
    with pytest.raises(ParameterError, match="method='newton'"):
        solve(curie_weiss("gradient"), method="damped")


def test_steps_are_shortened_at_the_edge_of_the_domain():
    """Newton from 40 on a flat tail points far outside |m| < 50; `residual` would raise there."""
    found = solve(polynomial([1, 0, 0, -8], start=0.05), max_steps=100)
    assert found["m"] == pytest.approx(2.0, abs=1e-8)


def test_no_solution_stalls_or_runs_out():
    failed = solve(polynomial([1, 0, 1]), raise_on_failure=False)  # x^2 + 1
    assert failed.status in (Status.STALLED, Status.SINGULAR, Status.MAX_STEPS)
    assert failed.residual >= 1 and "residual" in failed.message
    with pytest.raises(ConvergenceError) as caught:
        solve(polynomial([1, 0, 1]))
    assert caught.value.result.residual >= 1


@pytest.mark.parametrize("start", [0.3, 2.0, 3.0])
def test_no_solution_stalls(start):
    failed = solve(polynomial([1, 0, 1]), start=[start], method="newton", raise_on_failure=False)
    assert failed.status is Status.STALLED and failed.residual >= 1


def test_singular_start():
    failed = solve(polynomial([1, 0, 1]), start=[0.0], raise_on_failure=False)
    assert failed.status is Status.SINGULAR and math.isinf(failed.errors["m"])


@pytest.mark.parametrize("method", ["newton", "auto", "damped"])
def test_nan_never_converges(method):
    problem = Toy("nan", lambda x, p: math.nan, lambda x, p: math.nan, lambda x, p: 1.0,
                  {"s": lambda x, p: 0.0}, {"s": 0.0}, form="fixed_point")  # fmt: skip
    failed = solve(problem, method=method, raise_on_failure=False)
    assert failed.status is Status.NON_FINITE
    assert failed.to_dict()["energy"] is None


def test_many_starts_are_deduplicated_and_classified():
    starts = [[x] for x in np.linspace(-3, 3, 25)]
    found = solve_all(polynomial([1, 0, -1, 0]), {}, starts)
    assert sorted(round(s["m"], 6) for s in found) == [-1.0, 0.0, 1.0]
    assert [s.energy for s in found] == sorted(s.energy for s in found)
    mirrored = polynomial([1, 0, -1, 0])
    mirrored.canonical = np.abs
    assert sorted(round(s["m"], 6) for s in solve_all(mirrored, {}, starts)) == [0.0, 1.0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(-3, 3), st.floats(0.3, 3), st.floats(0.3, 3), st.floats(-8, 8))
def test_random_double_wells(left, width, rest, start):
    """Three known stationary points: whatever is found is one of them, within its error bar."""
    roots = np.array([left, left + width, left + width + rest])
    problem = polynomial(np.poly(roots))
    found = solve(problem, start=[start], accuracy=1e-10, raise_on_failure=False)
    if found.status.success:
        assert np.min(np.abs(roots - found["m"])) <= found.errors["m"] + 1e-12
    near = np.concatenate([roots, (roots[1:] + roots[:-1]) / 2])
    distinct = sorted(solve_all(problem, {}, near[:, None] + 0.02), key=lambda s: s["m"])
    assert len(distinct) == 3
    for s, exact in zip(distinct, roots, strict=True):
        assert abs(s["m"] - exact) <= s.errors["m"] + 1e-12


def test_a_solve_can_be_stepped():
    from numerics.solvers import done, init, result, step

    problem, goal = curie_weiss(), NewtonSettings(tolerance=1e-10)
    values = problem.values({"T": 0.5})
    state = init(problem, [0.9], values, goal, 1e-10)
    seen = []
    while not done(state, goal):
        step(problem, state, values, goal, 1e-10)
        seen.append(state.history[-1])
    assert seen[-1] < 1e-10 < seen[0] and len(seen) == state.steps
    stepped = result(problem, state, values, goal, 1e-10)
    assert stepped["m"] == pytest.approx(magnetisation(0.5), abs=1e-9)
    assert stepped.status is Status.CONVERGED
    state = newton(problem, [0.9], values, 1e-10, NewtonSettings(max_steps=1))
    assert state.status is Status.MAX_STEPS


def test_callback_and_start_from_a_solution():
    news = []
    first = solve(curie_weiss(), {"T": 0.5}, callback=news.append)
    assert news and {"step", "residual"} <= set(news[0])
    again = solve(curie_weiss(), {"T": 0.5}, first)
    assert again.steps <= first.steps and again["m"] == pytest.approx(first["m"], abs=1e-7)


def test_solution_reads_well_and_serialises():
    import json

    found = solve(curie_weiss(noise=1.0), {"T": 0.5}, accuracy=1e-6)
    text = str(found)
    lines = text.splitlines()
    assert "curie-weiss" in lines[0] and "magnet" in lines[0] and "converged" in lines[-1]
    assert any(line.split()[0] == "m" for line in lines if line.strip())
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["m"] == found["m"] and data["errors"]["m"] == found.errors["m"]
    assert data["settings"]["accuracy"] == 1e-6 and data["status"] == "converged"
    with pytest.raises(KeyError):
        found["nonsense"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.energy = 0.0


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="unknown method 'bisect'"):
        solve(curie_weiss(), method="bisect")
    with pytest.raises(ParameterError, match="value for 'q', which is no unknown; it needs m"):
        solve(curie_weiss(), start={"q": 1.0})
    with pytest.raises(ParameterError, match="2 components"):
        solve(curie_weiss(), start=[1.0, 2.0])
    with pytest.raises(DomainError, match=r"50 - \|m\| = -10"):
        solve(curie_weiss(), start=[60.0])
