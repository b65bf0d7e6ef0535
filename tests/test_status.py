"""One enumeration: every outcome distinct, explained, and success said by one predicate."""

import pytest

from numerics import Status


@pytest.mark.parametrize("status", list(Status))
def test_messages_explain(status):
    plain = status.message()
    assert plain and plain[0].islower() and not plain.endswith(".")
    text = status.message(residual=3e-4, steps=50, where="alpha")
    assert text.startswith(plain) and "residual 0.0003" in text
    assert "steps 50" in text and "where alpha" in text


def test_messages_and_codes_are_distinct():
    assert len({s.message() for s in Status}) == len(Status) == len({int(s) for s in Status})


@pytest.mark.parametrize("status", [s for s in Status if not s.success])
def test_failures_say_what_to_do(status):
    assert any(mark in status.message() for mark in (":", ";")), "only the fact, no advice"


def test_success_and_use():
    assert {s for s in Status if s.success} == {
        Status.CONVERGED, Status.REACHED_BOUND, Status.CLOSED_LOOP, Status.MIRRORED, Status.MERGED,
    }  # fmt: skip
    assert {s for s in Status if s.usable and not s.success} == {Status.ACCURACY_NOT_REACHED}


def test_the_integer_survives_a_compiled_kernel():
    assert Status(int(Status.MAX_STEPS)) is Status.MAX_STEPS
