"""Crossings and roots on toy problems with known answers."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_solvers import Toy, curie_weiss

from numerics import Status, solve
from numerics.continuation import crossing, follow, root
from numerics.continuation.root import difference_of
from theory.errors import ParameterError


def symmetry(x, tolerance):
    return "disordered" if abs(x) <= tolerance else "ordered"


def landau(branch, **options):
    """r m^2/2 + u m^4/4 + v m^6/6: first-order at 3u^2/16v for u < 0; ordered while r < u^2/4v."""
    toy = Toy(
        "landau",
        lambda m, p: p["r"] * m**2 / 2 + p["u"] * m**4 / 4 + p["v"] * m**6 / 6,
        lambda m, p: p["r"] * m + p["u"] * m**3 + p["v"] * m**5,
        lambda m, p: p["r"] + 3 * p["u"] * m**2 + 5 * p["v"] * m**4,
        {"r": lambda m, p: m**2 / 2, "u": lambda m, p: m**4 / 4, "v": lambda m, p: m**6 / 6},
        {"r": 0.1, "u": -1.0, "v": 1.0}, branch=branch, kinds=symmetry,
        start=1.0 if branch == "ordered" else 0.0, **options,
    )  # fmt: skip
    toy.canonical = np.abs
    return toy


def blume_capel(branch, **options):
    """f = m^2/2 - T ln(1 + 2 e^{-D/T} cosh(m/T))."""

    def parts(m, p):
        weights = [1.0, math.exp((m - p["D"]) / p["T"]), math.exp((-m - p["D"]) / p["T"])]
        total = sum(weights)
        return total, (weights[1] - weights[2]) / total, (weights[1] + weights[2]) / total

    toy = Toy(
        "blume-capel",
        lambda m, p: m**2 / 2 - p["T"] * math.log(parts(m, p)[0]),
        lambda m, p: m - parts(m, p)[1],
        lambda m, p: 1 - (parts(m, p)[2] - parts(m, p)[1] ** 2) / p["T"],
        {"D": lambda m, p: parts(m, p)[2]},
        {"T": 0.25, "D": 0.45}, branch=branch, kinds=symmetry,
        start=0.9 if branch == "ordered" else 0.0, **options,
    )  # fmt: skip
    toy.canonical = np.abs
    return toy


def double_well(branch, *, left, right, depth, at, tilt):
    """k (x-a)^2 (x-b)^2 + tilt (p - at) x: equally deep exactly at p = at."""
    quartic = np.poly1d(depth * np.poly([left, left, right, right]))
    middle = (left + right) / 2
    return Toy(
        "double-well",
        lambda x, p: quartic(x) + tilt * (p["p"] - at) * x,
        lambda x, p: quartic.deriv()(x) + tilt * (p["p"] - at),
        lambda x, p: quartic.deriv(2)(x),
        {"p": lambda x, p: tilt * x}, {"p": at + 1e-3}, branch=branch,
        start=left if branch == "left" else right,
        kinds=lambda x, tolerance: "left" if x < middle else "right",
    )  # fmt: skip


CROSSINGS = [
    (blume_capel, {"T": 0.25}, "D", (0.3, 0.6), 0.476265836632844),
    (blume_capel, {"T": 0.20}, "D", (0.3, 0.6), 0.486701271068090),
    (landau, {"u": -1.0, "v": 1.0}, "r", (0.01, 0.5), 3 / 16),
    (landau, {"u": -0.5, "v": 2.0}, "r", (0.001, 0.5), 3 * 0.25 / 32),
]


@pytest.mark.parametrize(("make", "params", "parameter", "span", "exact"), CROSSINGS)
def test_known_crossings(make, params, parameter, span, exact):
    found = crossing(make("ordered"), make("disordered"), params, parameter, span, accuracy=1e-11)
    assert found.status is Status.CONVERGED and found.kind == "first-order"
    assert found.value == pytest.approx(exact, abs=1e-11)
    assert found.interval[0] <= found.value <= found.interval[1]
    assert set(found.states) == {"ordered", "disordered"} and abs(found.residual) < 1e-11
    a, b = found.states.values()
    assert found.slope == pytest.approx(a.gradient[parameter] - b.gradient[parameter])


@pytest.mark.parametrize("noise", [0.1, 1.0])
@pytest.mark.parametrize("accuracy", [1e-4, 1e-6, 1e-8])
def test_error_of_a_crossing_is_honest(noise, accuracy):
    """The noise moves the energies, the states and so the crossing; the bar covers it."""
    for make, params, parameter, span, exact in CROSSINGS[:3]:
        pair = [make(b, noise=noise, exact=False) for b in ("ordered", "disordered")]
        found = crossing(*pair, params, parameter, span, accuracy=accuracy)
        assert found.status is Status.CONVERGED
        assert abs(found.value - exact) <= found.error
        assert found.error < 1e3 * accuracy  # and is not merely huge


def test_crossing_with_a_floor_of_accuracy():
    pair = [blume_capel(b, noise=1.0, floor=1e-5, exact=False) for b in ("ordered", "disordered")]
    found = crossing(*pair, {"T": 0.25}, "D", (0.3, 0.6), accuracy=1e-9)
    assert found.status is Status.ACCURACY_NOT_REACHED and not found.status.success
    assert abs(found.value - 0.476265836632844) <= found.error


def test_crossing_from_solutions_and_from_branches():
    a, b = blume_capel("ordered"), blume_capel("disordered")
    params, exact = {"T": 0.25}, 0.476265836632844
    states = [solve(p, {"T": 0.25, "D": 0.46}) for p in (a, b)]
    # starts of their own would lead nowhere: the states given must be what is used
    a.starts = b.starts = lambda params=None: [np.array([7.0])]
    found = crossing(a, b, params, "D", (0.3, 0.6), start_a=states[0], start_b=states[1])
    assert found.status is Status.CONVERGED and found.value == pytest.approx(exact, abs=1e-6)
    lines = [follow(p, s, "D", (0.46, 0.485), T=0.25) for p, s in zip((a, b), states, strict=True)]
    seen = []
    found = crossing(*lines, callback=seen.append)
    assert found.status is Status.CONVERGED and found.value == pytest.approx(exact, abs=1e-6)
    # the branches bracket it, so the search starts there
    assert seen[0]["D"] == pytest.approx(exact, abs=1e-3)
    with pytest.raises(ParameterError, match="do not overlap"):
        other = follow(b, states[1], "D", (0.45, 0.4599))
        crossing(lines[0], other)
    with pytest.raises(ParameterError, match="not one of each"):
        crossing(lines[0], b)
    low = [follow(p, s, "D", (0.44, 0.47), T=0.25, both=True)
           for p, s in zip((a, b), states, strict=True)]  # fmt: skip
    none = crossing(*low)
    assert none.status is Status.NO_CROSSING and "ordered is lower" in none.message


def test_no_crossing_names_the_range_and_the_lower_branch():
    found = crossing(landau("ordered"), landau("disordered"), {}, "r", (0.01, 0.15))
    assert found.status is Status.NO_CROSSING and math.isnan(found.value)
    assert "ordered is lower" in found.message and "[0.01, 0.15]" in found.message
    assert all(difference < 0 for _, difference in found.scanned)
    assert found.to_dict()["r_c"] is None


def test_a_branch_lower_from_its_birth():
    """u > 0: the ordered branch is born at r = 0 and lower wherever it exists."""
    found = crossing(
        landau("ordered"), landau("disordered"), {"u": 1.0, "r": -0.1}, "r", (-0.5, 0.5)
    )
    assert found.status is Status.LOWER_FROM_BIRTH
    assert "ordered is lower" in found.message and "only from" in found.message


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("r", [-0.3, -0.2, -0.01])
def test_merging_branches_are_no_crossing(exact, noise, r):
    """Both energies tend to zero at the pitchfork, and Newton on their difference leads there."""
    for accuracy in (1e-5, 1e-7):
        for span in ((-0.4, 0.3), (-0.2, 1.0)):
            pair = [landau(b, exact=exact, noise=noise) for b in ("ordered", "disordered")]
            found = crossing(*pair, {"u": 1.0, "r": r}, "r", span, accuracy=accuracy)
            assert found.status in (
                Status.LOWER_FROM_BIRTH, Status.CRITICAL_END, Status.BRANCH_LOST,
            )  # fmt: skip


def test_a_branch_that_does_not_exist():
    found = crossing(landau("ordered"), landau("disordered"), {"r": 0.6}, "r", (0.5, 0.7))
    assert found.status is Status.BRANCH_LOST and "ordered not found" in found.message


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.floats(-2, 0), st.floats(0.8, 2.5), st.floats(0.5, 4), st.floats(0.2, 0.8),
    st.sampled_from([-0.5, 0.4, 1.0]),
)  # fmt: skip
def test_random_double_wells_cross_where_they_must(left, width, depth, at, tilt):
    wells = {"left": left, "right": left + width, "depth": depth, "at": at, "tilt": tilt}
    # both wells exist while |tilt (p - at)| < the largest slope of the quartic
    reach = 0.9 * depth * width**3 / (3 * math.sqrt(3)) / abs(tilt)
    span = (at - min(0.15, reach), at + min(0.15, reach))
    pair = [double_well(b, **wells) for b in ("left", "right")]
    found = crossing(*pair, {}, "p", span, accuracy=1e-10)
    assert found.status is Status.CONVERGED
    assert abs(found.value - at) <= found.error + 1e-12
    beyond = crossing(*pair, {}, "p", (at + 0.2 * (span[1] - at), span[1]))
    assert beyond.status is Status.NO_CROSSING


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_root_of_an_observable(noise):
    """m = 1/2 at T = 1/2 / artanh(1/2)."""
    problem = curie_weiss(noise=noise, exact=noise == 0)
    exact = 0.5 / math.atanh(0.5)

    def function(s):
        return s["size"] - 0.5, s.observable_errors["size"]

    found = root(problem, function, {"T": 0.8}, "T", (0.5, 0.99), accuracy=1e-7)
    assert found.status is Status.CONVERGED and found.kind == "observable"
    assert abs(found.value - exact) <= found.error + 1e-9
    assert found.error < 1e-4
    state = found.states["solution"]
    assert state["m"] == pytest.approx(0.5, abs=1e-6)


def test_root_that_is_not_there():
    def function(s):
        return s["size"] + 1.0, 0.0

    found = root(curie_weiss(), function, {"T": 0.8}, "T", (0.5, 0.9))
    assert not found.status.success and math.isnan(found.value)
    assert found.status is Status.NO_CROSSING


def test_root_on_another_branch():
    """Beyond its spinodal the ordered branch's start leads to the disordered state."""

    def function(s):
        return s.energy - 1.0, 0.0

    found = root(landau("ordered"), function, {"r": 0.6}, "r", (0.5, 0.7))
    assert found.status is Status.WRONG_BRANCH and math.isnan(found.value)


def test_difference_of_adds_errors():
    state = solve(curie_weiss(noise=1.0), {"T": 0.5}, accuracy=1e-4)
    value, error = difference_of("size", "T")(state)
    assert value == state["size"] - 0.5 and error == state.observable_errors["size"] > 0


def test_a_transition_is_data():
    found = crossing(blume_capel("ordered"), blume_capel("disordered"), {}, "D", (0.3, 0.6))
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["D_c"] == found.value and data["D_c_error"] == found.error
    assert data["status"] == "converged" and set(data["branches"]) == set(found.states)
    assert data["evaluations"] == found.evaluations > 2
    text = str(found)
    assert "D = 0.4762658" in text and "ordered" in text and "converged" in text
