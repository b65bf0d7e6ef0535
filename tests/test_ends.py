"""Branches that meet their mirror image, events on a bound, and coincidences by symmetry."""

import math

import numpy as np
import pytest
import sympy as sp

import theory
from numerics import Status
from numerics.branches import compiled
from numerics.cli import main
from numerics.continuation import diagram, follow
from theory.models import get

m, y, r, u, v, g = sp.symbols("m y r u v g", real=True)


def kinds(found):
    return sorted(e.kind for e in found.events if e.kind != "bound")


@pytest.fixture(scope="module")
def landau():
    return compiled(get("landau"))


@pytest.fixture(scope="module")
def curie_weiss():
    return compiled(get("curie-weiss"))


@pytest.fixture(scope="module")
def blume_capel():
    return compiled(get("blume-capel"), "ordered")


@pytest.fixture(scope="module")
def slaved():
    """A second unknown follows m: y = r^2 + g m^2, and leaves r m^2/2 + u m^4/4 to m."""
    energy = r * m**2 / 2 + u * m**4 / 4 + (y - r**2 - g * m**2) ** 2 / 2
    model = theory.FreeEnergy(energy, [m, y], [r, u, g], mirrors=[[m]])
    return theory.derive(model).compile()


# --- equal energies by symmetry are no transition


@pytest.mark.parametrize("span", [(0.3, 1.5), (0.2, 0.9), (0.5, 1.0)])
def test_images_under_an_undeclared_symmetry_have_no_transition(curie_weiss, span):
    found = diagram(curie_weiss, "T", span, h=0.0)
    assert not found.of_kind("first-order")
    values = [e.value for e in found.of_kind("pitchfork")]
    assert values == ([pytest.approx(1.0, abs=1e-14)] if span[1] >= 1 else [])


def test_a_true_coexistence_is_still_a_transition(curie_weiss):
    found = diagram(curie_weiss, "h", (-0.4, 0.4), T=0.5)
    (event,) = found.of_kind("first-order")
    assert abs(event.value) <= max(event.error, 1e-14)
    assert sorted(abs(e.value) for e in found.of_kind("fold")) == pytest.approx(
        [0.266419987676776] * 2, abs=1e-13
    )


def test_the_coexistence_line_on_the_command_line(capsys):
    with pytest.raises(SystemExit):
        main(["diagram", "curie-weiss", "--over", "T=0.3:1.5"])
    out = capsys.readouterr().out
    assert "first-order" not in out and "pitchfork" in out and "supercritical" in out


# --- a branch ends where it becomes its mirror image


@pytest.mark.parametrize("start", [0.92, -0.92])
def test_a_branch_ends_at_the_pitchfork_onto_its_mirror_image(blume_capel, start):
    branch = follow(blume_capel, {"m": start}, "D", (0.3, 0.6), T=0.25, both=True)
    fold, pitchfork = (e for e in branch.events if e.kind != "bound")
    assert (fold.kind, pitchfork.kind) == ("fold", "pitchfork")
    assert fold.value == pytest.approx(0.490265484857193, abs=1e-14)
    assert pitchfork.value == pytest.approx(0.447939867307014, abs=1e-14)
    assert pitchfork.message == "subcritical"
    assert branch.status is Status.MIRRORED and branch.start_status is Status.REACHED_BOUND
    assert branch.values[-1] == pitchfork.value and abs(branch.curve[-1, 0]) < 1e-12
    assert np.all(branch.curve[:-1, 0] * start > 0)
    assert branch.unstable[0] == 0 and branch.unstable[-1] == 1


def test_a_continuous_transition_is_supercritical(blume_capel):
    exact = -0.4 * math.log(0.4 / 0.6 / 2)
    branch = follow(blume_capel, {"m": 0.68}, "D", (0.3, 0.6), T=0.4)
    assert kinds(branch) == ["pitchfork"] and branch.events[0].message == "supercritical"
    assert branch.values[-1] == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize(("quartic", "kind"), [(1.0, "supercritical"), (-1.0, "subcritical")])
@pytest.mark.parametrize("coupling", [0.0, 2.0, -2.0])
def test_slaved_unknowns_count_in_the_criticality(slaved, quartic, kind, coupling):
    start = {"m": 0.0, "y": 1.0}
    branch = follow(slaved, start, "r", (-1.0, 1.0), u=quartic, g=coupling)
    (event,) = (e for e in branch.events if e.kind != "bound")
    assert event.kind == "pitchfork" and event.message == kind
    assert event.value == pytest.approx(0.0, abs=1e-14)
    # from the side branch it is the same event
    side = -0.8 * quartic
    start = {"m": 0.8**0.5, "y": 0.64 + coupling * 0.8}
    branch = follow(slaved, start, "r", (side, 0.5 * np.sign(-side)), u=quartic, g=coupling)
    assert kinds(branch) == ["pitchfork"] and branch.status is Status.MIRRORED
    assert branch.events[-1].message == kind
    assert branch.curve[-1] == pytest.approx([0, 0, 0], abs=1e-12)


# --- events on a bound


@pytest.mark.parametrize("span", [(-1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, 0.0)])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("coupling", [0.0, 2.0])
def test_a_pitchfork_on_a_bound_of_the_symmetric_branch(slaved, span, both, coupling):
    start = {"m": 0.0, "y": span[0] ** 2}
    branch = follow(slaved, start, "r", span, u=1.0, g=coupling, both=both)
    assert branch.status is Status.REACHED_BOUND
    assert sorted({branch.values[0], branch.values[-1]}) == sorted(span)
    assert kinds(branch) == ["pitchfork"]
    (event,) = (e for e in branch.events if e.kind == "pitchfork")
    assert event.value == pytest.approx(0.0, abs=1e-14) and event.status == "polished"


@pytest.mark.parametrize("coupling", [0.0, 2.0])
def test_a_pitchfork_on_a_bound_of_the_side_branch(slaved, coupling):
    start = {"m": 1.0, "y": 1.0 + coupling}
    branch = follow(slaved, start, "r", (-1.0, 0.0), u=1.0, g=coupling)
    assert kinds(branch) == ["pitchfork"] and branch.status is Status.MIRRORED
    assert branch.curve[-1] == pytest.approx([0, 0, 0], abs=1e-12)
    assert branch["m"][:-1] ** 2 == pytest.approx(-branch.values[:-1], abs=1e-9)


def test_a_pitchfork_just_outside_is_not_reported(slaved):
    for span in ((-1.0, -1e-6), (1e-6, 1.0)):
        branch = follow(slaved, {"m": 0.0, "y": span[0] ** 2}, "r", span, u=1.0, g=0.0)
        assert kinds(branch) == [] and branch.values[-1] == span[1]


def test_a_fold_on_a_bound(landau):
    branch = follow(landau, {"m": 1.0}, "r", (-0.5, 0.25), u=-1.0, v=1.0)
    assert kinds(branch) == ["fold", "pitchfork"]
    assert branch.events[0].value == pytest.approx(0.25, abs=1e-13)


@pytest.mark.parametrize(("span", "quartic"), [((-1.0, 0.0), 1.0), ((0.0, 1.0), -1.0)])
def test_a_diagram_that_ends_on_its_pitchfork(landau, span, quartic):
    found = diagram(landau, "r", span, u=quartic, v=1.0)
    (event,) = found.of_kind("pitchfork")
    assert event.value == pytest.approx(0.0, abs=1e-14)
    assert len(found.branches) == 2
    for branch in found.branches:
        assert span[0] <= min(branch.values) and max(branch.values) <= span[1]
    trivial = min(found.branches, key=lambda b: np.ptp(b["m"]))
    assert sorted((trivial.values[0], trivial.values[-1])) == pytest.approx(span, abs=1e-14)
    assert {trivial.status, trivial.start_status} == {Status.REACHED_BOUND}


def test_a_side_branch_begins_at_its_pitchfork(landau):
    found = diagram(landau, "r", (-0.001, 1.0), u=1.0, v=1.0)
    (event,) = found.of_kind("pitchfork")
    side = max(found.branches, key=lambda b: np.ptp(b["m"]))
    assert sorted((side.values[0], side.values[-1])) == pytest.approx([-0.001, 0], abs=1e-14)
    assert event.value == pytest.approx(0.0, abs=1e-14)
