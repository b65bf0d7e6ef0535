"""The theory against the gradient descent of the paper's authors (d = 1000, 24 runs a point)."""

import shutil
import statistics
from pathlib import Path

import pytest

from numerics.paper import compare, read_measured, theory_at
from theory.errors import DataError

DATA = Path(__file__).parents[2] / "shared/reference/authors_gd_d1000_mean.csv"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the authors' data are not here")

# where gradient descent is in the state that the theory describes
AGREE = [("positional", 0.3), ("positional", 0.4), ("positional", 0.5),
         ("semantic", 0.1), ("semantic", 0.2), ("semantic", 0.3), ("semantic", 0.4)]  # fmt: skip


@pytest.fixture(scope="module")
def groups():
    rows = [r for r in read_measured(DATA) if r.params["alpha"] >= 1.25]
    found: dict[tuple[str, float], list] = {}
    for row, state, scores in compare(rows):
        found.setdefault((row.branch, row.params["omega"]), []).append((row, state, scores))
    return found


@needs_data
@pytest.mark.slow
def test_agreement_within_the_standard_errors(groups):
    """Also within the finite-size shift at d = 1000, which the standard errors do not cover."""
    limits = {"energy": (2.3, 4.5), "test_error": (2.0, 4.5), "baseline_error": (1.3, 3.5),
              "theta": (1.3, 3.5), "m": (3.5, 5.5)}  # fmt: skip
    for group in AGREE:
        assert len(groups[group]) == 10
        for name, (middle, most) in limits.items():
            scores = [abs(z[name]) for _, _, z in groups[group] if name in z]
            if scores:
                assert statistics.median(scores) < middle, (group, name)
                assert max(scores) < most, (group, name)


@needs_data
@pytest.mark.slow
def test_agreement_within_a_few_percent(groups):
    for group in AGREE:
        for row, state, _ in groups[group]:
            assert state.energy == pytest.approx(row.values["energy"], rel=0.06)
            assert state["test_error"] == pytest.approx(row.values["test_error"], rel=0.08)
            if group[0] == "positional":
                assert abs(state["m"]) == pytest.approx(row.values["m"], rel=0.03)


@needs_data
@pytest.mark.slow
def test_disagreement_where_descent_stays_in_a_minimum_that_no_branch_describes(groups):
    """At small omega the positional branch ends, and descent from the positions stays there."""
    assert len(groups["positional", 0.1]) < 3
    kept = [r for r in read_measured(DATA) if r.branch == "positional"
            and r.params["omega"] == 0.1 and r.params["alpha"] > 1.3]  # fmt: skip
    assert all(r.values["m"] > 0.2 for r in kept)
    assert statistics.median(abs(z["m"]) for _, _, z in groups["positional", 0.2]) > 10


@needs_data
@pytest.mark.slow
def test_no_semantic_state_below_its_birth_where_descent_finds_one():
    row = next(r for r in read_measured(DATA) if r.informed and r.params["omega"] == 0.3
               and 0.45 < r.params["alpha"] < 0.6)  # fmt: skip
    assert row.values["theta"] > 0.2
    assert theory_at(row.params, "semantic") is None


@needs_data
def test_reading_the_data_says_what_is_wrong(tmp_path):
    alone = tmp_path / "gd_mean.csv"
    shutil.copy(DATA, alone)
    with pytest.raises(DataError, match=r"gd_std\.csv"):
        read_measured(alone)
    lines = DATA.with_name("authors_gd_d1000_std.csv").read_text().splitlines()
    (tmp_path / "gd_std.csv").write_text("\n".join(lines[:1]) + "\n")
    with pytest.raises(DataError, match="no row for"):
        read_measured(alone)
    (tmp_path / "gd_std.csv").write_text("alpha,omega\n1,2\n")
    with pytest.raises(DataError, match="lacks the column 'd'"):
        read_measured(alone)


def test_missing_data(tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        read_measured(tmp_path / "none_mean.csv")
