"""Locating events: ours against SciPy alone, and against what can be installed."""

import peers
import pytest


@pytest.mark.parametrize("tool", ["spinodal", "scipy"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_locating(benchmark, number, tool):
    case = peers.cases()[number]
    found = benchmark.pedantic(peers.TOOLS[tool], args=(case,), rounds=1)
    if tool == "spinodal":
        assert set(found) >= set(case.exact)
        for event, exact in case.exact.items():
            assert found[event] == pytest.approx(exact, abs=1e-10)


def test_errors_are_honest_with_difference_quotients():
    for case in peers.cases():
        for event in peers.events(case):
            kind = peers.KINDS.get(event.kind, event.kind)
            off = abs(abs(event.value) - case.exact[kind])
            assert off <= event.error + 1e-15 and event.error < 1e-7


@pytest.mark.parametrize("package", ["pycont", "jaxcont", "bice"])
def test_peers_can_be_driven(package):
    pytest.importorskip(package)
    tool = {"pycont": "pycont-lite"}.get(package, package)
    found = peers.TOOLS[tool](peers.cases()[0])
    assert found.get("fold", 0.0) == pytest.approx(0.3849, abs=0.05)
