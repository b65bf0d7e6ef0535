"""What trips continuation tools, one test each; statuses; storage; stability; hypothesis."""

import json

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import theory
from numerics import PlainProblem, Status
from numerics.branches import compiled, locate
from numerics.continuation import Branch, Settings, diagram, follow, resume
from numerics.continuation.tracer import correct
from numerics.continuation.watch import Watcher
from theory.errors import ParameterError
from theory.models import get

x, y, lam, mu, eps = sp.symbols("x y lam mu eps", real=True)


def potential(expression, unknowns, parameters, **options):
    model = theory.FreeEnergy(expression, unknowns, parameters, **options)
    return theory.derive(model).compile()


@pytest.fixture(scope="module")
def cusp():
    return potential(x**4 / 4 - lam * x**2 / 2 - mu * x, [x], [lam, mu])


@pytest.fixture(scope="module")
def pitchfork():
    return potential(x**4 / 4 - lam * x**2 / 2 + eps * x, [x], [lam, eps])


def of_kind(branch, kind):
    return [e for e in branch.events if e.kind == kind]


# --- 1. events are solved for, not interpolated


@pytest.mark.parametrize("longest", [0.05, 0.25, 1.0])
def test_a_fold_does_not_depend_on_the_steps(cusp, longest):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, settings=Settings(longest=longest))
    values = [e.value for e in of_kind(branch, "fold")]
    assert values == pytest.approx([2 / 27**0.5, -2 / 27**0.5], abs=1e-14)
    for e in of_kind(branch, "fold"):
        assert e.status == "polished" and e.residual < 1e-12 and e.error < 1e-12
        assert abs(cusp.jacobian(e.state.x, {**e.params, "mu": e.value})[0, 0]) < 1e-6


# --- 2. pitchforks, from both sides


def test_a_pitchfork_from_the_trivial_branch(pitchfork):
    branch = follow(pitchfork, {"x": 0.0}, "lam", (-1, 1), eps=0.0)
    (event,) = of_kind(branch, "pitchfork")
    assert event.value == pytest.approx(0.0, abs=1e-12) and not of_kind(branch, "fold")
    assert branch.unstable[0] == 0 and branch.unstable[-1] == 1


def test_a_pitchfork_from_the_side_branch(pitchfork):
    branch = follow(pitchfork, {"x": 1.0}, "lam", (1, -1), eps=0.0)
    (event,) = of_kind(branch, "pitchfork")
    assert event.value == pytest.approx(0.0, abs=1e-12) and not of_kind(branch, "fold")
    # no mirror image is declared, so the other half is followed too
    assert branch["x"][0] == pytest.approx(1) and branch["x"][-1] == pytest.approx(-1)
    assert branch.status is Status.REACHED_BOUND


def test_both_half_branches_are_followed(pitchfork):
    found = diagram(pitchfork, "lam", (-1, 1), eps=0.0)
    assert len(found.branches) == 2
    side = max(found.branches, key=lambda b: np.ptp(b["x"]))
    assert side["x"].min() == pytest.approx(-1) and side["x"].max() == pytest.approx(1)
    assert np.max(np.abs(side["x"] ** 2 - side.values)) < 1e-9


def test_an_imperfect_pitchfork_is_a_fold(pitchfork):
    for value in (1e-2, 1e-4, 1e-6):
        found = diagram(pitchfork, "lam", (-1, 1), eps=value)
        (fold,) = found.events
        assert fold.kind == "fold"
        assert fold.value == pytest.approx(3 * (value / 2) ** (2 / 3), rel=1e-9)


# --- 3. every run ends with a reason; caps count all attempts


def flow(function, parameters=None, **options):
    return PlainProblem(
        lambda u, p: np.array([function(u[0], p)]), ["u"], parameters or {"s": 0.0}, **options
    )


def test_reached_bound_exactly(cusp):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 0.2), lam=1.0)
    assert branch.status is Status.REACHED_BOUND and branch.values[-1] == 0.2
    assert branch.events[-1].kind == "bound" and branch.events[-1].value == 0.2


def test_a_start_on_a_bound(cusp):
    inward = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0)
    assert inward.values[0] == -1 and len(inward) > 10
    outward = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, both=True)
    assert outward.start_status is Status.REACHED_BOUND and len(outward) == len(inward)


def test_closed_loop():
    circle = flow(lambda u, p: u**2 + p["s"] ** 2 - 1)
    branch = follow(circle, [1.0], "s", (-2, 2), stability=False)
    assert branch.status is Status.CLOSED_LOOP and branch.status.success
    folds = sorted(e.value for e in of_kind(branch, "fold"))
    assert folds == pytest.approx([-1, 1], abs=1e-10)


def test_max_steps_counts_every_attempt(cusp):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, settings=Settings(max_points=5))
    assert branch.status is Status.MAX_STEPS and len(branch) == 6
    calls = 0

    def rough(u, p):
        nonlocal calls
        calls += 1
        return u - p["s"] if p["s"] <= 0.1 else u - p["s"] + 1.0  # no way on

    capped = Settings(max_attempts=4)
    branch = follow(flow(rough), [0.0], "s", (0.0, 1.0), settings=capped, stability=False)
    assert branch.status is Status.MAX_STEPS and len(branch) <= 5 and calls < 2000


def test_step_too_small_where_the_equations_end():
    """A jump in the equations: there is no way on, and the run says so."""
    broken = flow(lambda u, p: u - p["s"] if p["s"] <= 0.5 else u - p["s"] + 1.0)
    branch = follow(broken, [0.0], "s", (0.0, 1.0), stability=False)
    assert branch.status is Status.STEP_TOO_SMALL
    assert branch.values[-1] == pytest.approx(0.5, abs=1e-5)


def test_left_domain():
    root = flow(lambda u, p: u**2 - p["s"] - 0.25, domain=lambda u, p: u[0] > 0.3)
    branch = follow(root, [1.0], "s", (0.75, -1.0))
    assert branch.status is Status.LEFT_DOMAIN
    assert branch["u"][-1] == pytest.approx(0.3, abs=1e-5)


def test_non_finite():
    def log(u, p):
        return u - np.log(p["s"]) if p["s"] > 0 else np.nan

    branch = follow(flow(log, {"s": 1.0}), [0.0], "s", (1.0, -1.0), stability=False)
    assert branch.status in (Status.NON_FINITE, Status.STEP_TOO_SMALL)
    assert np.all(np.isfinite(branch["u"])) and branch.values[-1] > 0


def test_user_stop(cusp):
    seen = []

    def callback(news):
        seen.append(news)
        return news["mu"] < -0.5

    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, callback=callback)
    assert branch.status is Status.USER_STOP and len(branch) == len(seen)


def test_mirrored_branch_ends_at_its_branch_point():
    problem = theory.derive(get("landau")).compile()
    branch = follow(problem, {"m": 1.1}, "r", (-0.5, 0.5), u=1.0)
    assert branch.status is Status.MIRRORED
    assert branch.events[-1].kind == "pitchfork"
    assert branch.events[-1].value == pytest.approx(0.0, abs=1e-12)


def test_nothing_to_follow():
    none = flow(lambda u, p: u**2 + 1 + p["s"] ** 2)
    branch = follow(none, [1.0], "s", (0.0, 1.0))
    assert len(branch) == 0 and not branch.status.success and branch.to_arrays() == {}


# --- 4. no jumps


@pytest.mark.parametrize("gap", [0.05, 0.01, 1e-3])
@pytest.mark.parametrize("longest", [0.25, 2.0])
def test_no_jump_between_close_branches(gap, longest):
    """(u - s)(u + s) = gap^2: two hyperbolas that nearly touch."""
    near = flow(lambda u, p: (u - p["s"]) * (u + p["s"]) - gap**2)
    branch = follow(near, [1.0], "s", (-1.0, 1.0), settings=Settings(longest=longest))
    assert branch.status is Status.REACHED_BOUND
    assert np.all(branch["u"] > 0.9 * gap)
    assert branch["u"] == pytest.approx(np.sqrt(branch.values**2 + gap**2), abs=1e-9)


# --- 5. mirror images are one branch


def test_mirror_images_are_not_counted():
    m = sp.Symbol("m", real=True)
    r = sp.Symbol("r", real=True)
    energy = r * m**2 / 2 + m**4 / 4
    plain = diagram(potential(energy, [m], [r]), "r", (-1, 1))
    declared = diagram(potential(energy, [m], [r], mirrors=[[m]]), "r", (-1, 1))
    spans = [sorted(np.ptp(b["m"]) for b in d.branches) for d in (plain, declared)]
    assert len(spans[0]) == len(spans[1]) == 2
    assert spans[0][1] == pytest.approx(2) and spans[1][1] < 1.2
    assert len(declared.events) == len(plain.events) == 1


# --- 8. several events in one step, user functions


def test_two_events_in_one_step():
    """The fold and the branch point of two cells in one long step, and two user events."""
    a = sp.Symbol("a", real=True)
    energy = -(x**2) - y**2 + x * y + a * (sp.exp(x) + sp.exp(y))
    cells = potential(energy, [x, y], [a])
    fine = follow(cells, [0.01, 0.01], "a", (0.01, 1.0))
    equations_run = follow(
        cells, [0.01, 0.01], "a", (0.01, 1.0),
        settings=Settings(step=3.0, longest=10.0, angle=3.2, newton=8),
        functions={"half": lambda s, p: s["x"] - 0.5, "one": lambda s, p: s["x"] - 0.6},
    )  # fmt: skip
    assert len(equations_run) < 0.5 * len(fine)
    assert len(of_kind(equations_run, "user")) == 2
    for kind in ("fold", "pitchfork"):
        one, other = of_kind(fine, kind), of_kind(equations_run, kind)
        assert [e.value for e in one] == pytest.approx([e.value for e in other], abs=1e-12)
    names = [e.message for e in of_kind(equations_run, "user")]
    assert names == ["half", "one"]


def test_events_between_the_same_two_points():
    a = sp.Symbol("a", real=True)
    energy = -(x**2) - y**2 + x * y + a * (sp.exp(x) + sp.exp(y))
    cells = potential(energy, [x, y], [a])
    from numerics.continuation.equations import BranchEquations
    from numerics.continuation.tracer import make_point

    equations = BranchEquations(cells, "a", {}, (0.01, 1.0), 1e-10)
    ends = []
    for value in (0.5, 3.5):  # a = u exp(-u) on the symmetric branch
        at = np.array([value, value, value * np.exp(-value)])
        found = correct(equations, at, np.array([1.0, 1.0, 0.0]) / 2**0.5)
        ends.append(make_point(equations, found, np.array([1.0, 1.0, 0.0])))
    events = Watcher(equations, None).between(*ends)
    assert {e.kind for e in events} == {"fold", "pitchfork"}
    for e in events:
        exact = {"fold": np.exp(-1), "pitchfork": 3 * np.exp(-3)}[e.kind]
        assert e.value == pytest.approx(exact, abs=1e-12)


def test_user_functions(cusp):
    branch = follow(
        cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0,
        functions={"zero": lambda s, p: s["x"], "tilt": lambda s, p: p["mu"] - 0.25},
    )  # fmt: skip
    found = {}
    for e in of_kind(branch, "user"):
        found.setdefault(e.message, []).append(e)
    assert [e.value for e in found["zero"]] == pytest.approx([0.0], abs=1e-8)
    assert [e.value for e in found["tilt"]] == pytest.approx([0.25] * 3, abs=1e-8)


# --- 9, 10. no success with a large residual or NaN


def test_residuals_travel_with_the_points(cusp):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0)
    assert max(p.residual for p in branch.points) < 1e-11
    assert all(p.status is Status.CONVERGED for p in branch.points)


def test_nan_never_converges():
    bad = flow(lambda u, p: np.nan)
    branch = follow(bad, [1.0], "s", (0.0, 1.0))
    assert branch.status is Status.NON_FINITE and len(branch) == 0


# --- 11. saved branches come back, and go on


def test_saved_branches_come_back(cusp, tmp_path):
    branch = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0)
    path = tmp_path / "branch.json"
    branch.save(path)
    again = Branch.load(path, cusp)
    assert np.array_equal(again.curve, branch.curve) and again.unstable == branch.unstable
    assert [e.value for e in again.events] == [e.value for e in branch.events]
    assert again.points[3].state == branch.points[3].state
    assert again.status is branch.status and b"pickle" not in path.read_bytes()
    json.loads(path.read_text().replace("Infinity", "null").replace("NaN", "null"))
    other = theory.derive(get("landau")).compile()
    with pytest.raises(ParameterError, match="unknowns"):
        Branch.load(path, other)
    path.write_text("{}")
    with pytest.raises(ParameterError, match="not a saved branch"):
        Branch.load(path)
    with pytest.raises(ParameterError, match="cannot read"):
        Branch.load(tmp_path / "none.json")


def test_a_stopped_run_goes_on(cusp, tmp_path):
    whole = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0)
    part = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, settings=Settings(max_points=40))
    part.save(tmp_path / "part.json")
    rest = resume(Branch.load(tmp_path / "part.json", cusp), (-1, 1))
    assert rest.status is Status.REACHED_BOUND
    found = [e.value for b in (part, rest) for e in of_kind(b, "fold")]
    assert found == pytest.approx([e.value for e in of_kind(whole, "fold")], abs=1e-13)
    middle = resume(whole, (-1, 1), label="F2")
    assert middle["x"][0] == pytest.approx(3**-0.5, abs=1e-6)
    assert middle.values[-1] == pytest.approx(1.0)
    with pytest.raises(ParameterError, match="no event"):
        resume(whole, (-1, 1), label="Z9")


def test_same_input_same_bits(cusp):
    runs = [follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0) for _ in range(2)]
    assert np.array_equal(runs[0].curve, runs[1].curve)
    assert [e.value for e in runs[0].events] == [e.value for e in runs[1].events]


def test_xarray(cusp):
    pytest.importorskip("xarray")
    data = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0).to_xarray()
    assert {"mu", "x", "energy", "x_error", "unstable"} <= set(data)
    assert data.attrs["status"] == "reached_bound" and data.attrs["lam"] == 1.0
    assert len(json.loads(data.attrs["events"])) == 3


# --- methods


@pytest.mark.parametrize("predictor", ["tangent", "secant"])
def test_predictors_agree(cusp, predictor):
    run = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, settings=Settings(predictor=predictor))
    assert [e.kind for e in run.events] == ["fold", "fold", "bound"]


def test_natural_continuation_stops_at_a_fold(cusp):
    run = follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, settings=Settings(method="natural"))
    assert run.status is Status.STEP_TOO_SMALL
    assert run.values[-1] == pytest.approx(0.384900179, abs=1e-3) and np.all(run["x"] < -0.5)


def test_wrong_questions(cusp):
    for call, message in (
        (lambda: follow(cusp, {"x": -1.5}, "nu", (-1, 1), lam=1.0), "unknown parameter"),
        (lambda: follow(cusp, {"x": -1.5}, "mu", (-1, 1), lam=1.0, mu=0.3), "do not fix it"),
        (lambda: follow(cusp, {"x": -1.5}, "mu", (1, 1), lam=1.0), "is empty"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()


# --- stability in the full system


def test_a_reduced_branch_shows_its_transverse_instability():
    """x^4/4 + y^4/4 + c x^2 y^2/2 - (x^2 + (1 - s) y^2)/2: the x axis loses y at s = 1 - c."""
    s, c = sp.symbols("s c", real=True)
    energy = x**4 / 4 + y**4 / 4 + c * x**2 * y**2 / 2 - (x**2 + (1 - s) * y**2) / 2
    none = theory.free_energy.Ansatz("axis", {y: sp.S.Zero}, nonzero=[x])
    both = theory.free_energy.Ansatz("mixed", {}, nonzero=[x, y])
    model = theory.FreeEnergy(
        energy, [x, y], [s, c], branches={"axis": none, "mixed": both}, mirrors=[[x], [y]],
        starts={"axis": {x: 1}, "mixed": {x: 1, y: sp.Rational(1, 2)}},
    )  # fmt: skip
    system = theory.derive(model)
    axis = system.compile(branch="axis")
    assert axis.unknowns == ("x",) and axis.whole.unknowns == ("x", "y")
    branch = follow(axis, {"x": 1.0}, "s", (-0.5, 1.5), c=0.4)
    (event,) = of_kind(branch, "pitchfork")
    assert event.transverse and event.status == "polished"
    assert event.value == pytest.approx(0.6, abs=1e-12)
    assert np.abs(event.direction) == pytest.approx([0, 1], abs=1e-9)
    assert branch.unstable[0] == 1 and branch.unstable[-1] == 0
    found = diagram(system.compile(), "s", (-0.5, 1.5), c=0.4)
    assert any(abs(e.value - 0.6) < 1e-10 and e.kind == "pitchfork" for e in found.events)
    mixed = [b for b in found.branches if "y" in b.points[0].state and np.any(b["x"] * b["y"])]
    assert len(mixed) == 1


# --- hypothesis: nothing missed, nothing invented


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.floats(-2, 0), st.floats(0.8, 2.5), st.floats(0.5, 4), st.floats(-0.3, 0.3),
    st.sampled_from([-0.5, 0.4, 1.0]),
)  # fmt: skip
def test_random_double_wells(left, width, depth, at, tilt):
    """k (u-a)^2 (u-b)^2 + t (p - p0) u: Maxwell point p0, spinodals where the slope is extremal."""
    quartic = np.poly1d(depth * np.poly([left, left, left + width, left + width]))
    slope, curve = quartic.deriv(), quartic.deriv(2)
    wells = PlainProblem(
        lambda u, p: np.array([slope(u[0]) + tilt * (p["p"] - at)]), ["u"], {"p": at},
        energy=lambda u, p: quartic(u[0]) + tilt * (p["p"] - at) * u[0],
        jacobian=lambda u, p: np.array([[curve(u[0])]]), form="gradient",
        starts=[[left], [left + width]],
    )  # fmt: skip
    spinodals = sorted(at - slope(r) / tilt for r in np.real(curve.roots))
    reach = 1.5 * (spinodals[1] - spinodals[0])
    found = diagram(wells, "p", (at - reach, at + reach))
    assert len(found.branches) == 1
    assert [e.value for e in found.of_kind("fold")] == pytest.approx(spinodals, abs=1e-9)
    (maxwell,) = found.of_kind("first-order")
    assert maxwell.value == pytest.approx(at, abs=1e-9)
    assert len(found.events) == 3


def test_beyond_its_fold_a_branch_falls_back_to_the_symmetric_state():
    problem = compiled(get("blume-capel"), "ordered", {"T": 0.25})
    for D in (0.491, 0.5, 0.55):
        state = locate(problem, {"T": 0.25, "D": D}, raise_on_failure=False)
        assert state.status is Status.CONVERGED and state.kind == "disordered"


@pytest.mark.slow
def test_attention_branch_ends_where_it_is_born():
    problem = compiled(get("attention"), "semantic", {"omega": 0.3})
    state = locate(problem, {"omega": 0.3, "alpha": 1.2}, accuracy=1e-4)
    found = follow(problem, state, "alpha", (1.2, 0.3), stability=False, accuracy=1e-4)
    assert found.status is Status.MERGED
    assert all(p.kind == "semantic" for p in found.points)
    assert 0.7191 < found.values[-1] < 0.76
