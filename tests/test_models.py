"""What is wrong with a model is said when it is declared, by name and with the fix."""

import pytest
import sympy as sp

import theory
from numerics import continuation, solve
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
