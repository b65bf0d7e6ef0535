"""The command line as a user meets it: output, exit status, one-line errors."""

import json
import math
import subprocess
import sys

import pytest

from numerics.cli import main
from numerics.cli.inputs import parse_settings
from numerics.cli.output import uncertain
from theory.errors import ParameterError


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_transition_json(capsys):
    code, out, _ = run(capsys, "transition", "--set", "omega=0.3", "--json")
    data = json.loads(out)
    assert code == 0 and data["status"] == "converged"
    assert abs(data["alpha_c"] - 1.2515356) < 1.2e-6 and 0 < data["alpha_c_error"] < 1e-5
    for name in ("positional", "semantic"):
        keys = ("q", "V", "m", "theta", "energy", "energy_error", "test_error")
        assert all(k in data["branches"][name] for k in keys)


def test_solve_json_and_figure(capsys, tmp_path):
    figure = tmp_path / "state.png"
    code, out, _ = run(
        capsys, "solve", "--branch", "semantic", "--set", "alpha=1.5", "--accuracy", "1e-4",
        "--json", "--plot", str(figure),
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0 and data["status"] == "converged" and data["m"] == 0
    assert {"q", "V", "theta", "energy", "energy_error", "test_error", "residual"} <= set(data)
    assert figure.stat().st_size > 5000


def test_transition_of_another_model_draws(capsys, tmp_path):
    figure = tmp_path / "t.png"
    code, out, _ = run(capsys, "transition", "blume-capel", "--plot", str(figure))
    assert code == 0 and "D_c = 0.476265836" in out and figure.exists()


def test_user_file(capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import sympy, theory\n"
        "m, T, D = sympy.symbols('m T D', real=True)\n"
        "f = theory.FreeEnergy(m**2/2 - T*sympy.log(1 + 2*sympy.exp(-D/T)*sympy.cosh(m/T)),\n"
        "    unknowns=[m], parameters=[T, D])\n"
    )
    code, out, _ = run(capsys, "solve", f"{path}:f", "--set", "T=0.25", "--set", "D=0.3", "--json")
    assert code == 0 and json.loads(out)["status"] == "converged"
    code, _, err = run(capsys, "solve", f"{path}:f", "--set", "T=0.25")
    assert code == 2 and "needs a value for D" in err
    code, out, _ = run(capsys, "derive", f"{path}:f")
    assert code == 0 and "control parameter" in out
    path.write_text("def f():\n    raise RuntimeError('boom')\n")
    code, _, err = run(capsys, "solve", f"{path}:f")
    assert code == 2 and "fails when called" in err and "boom" in err


def test_fractions_are_numbers(capsys):
    assert parse_settings(["T=1/4", "D = -(2*10**-1)"]) == {"T": 0.25, "D": -0.2}
    for bad in ("T=1/0", "T=(-1)**0.5", "T=exp(1)", "T=1 2", "T=True", "T=9.0**9**9"):
        with pytest.raises(ParameterError, match=r"T = .* is not a number; give one"):
            parse_settings([bad])
    code, out, _ = run(capsys, "solve", "landau", "--set", "r=1/10", "--json")
    assert code == 0 and json.loads(out)["parameters"]["r"] == 0.1


def test_solve_says_whether_the_state_is_stable(capsys):
    words = ["solve", "landau", "--branch", "disordered", "--set"]
    code, out, _ = run(capsys, *words, "r=0.1")
    assert code == 0 and "stability: stable\n" in out
    code, out, _ = run(capsys, *words, "r=-0.1")
    assert code == 0 and "stability: unstable in 1 direction\n" in out
    code, out, _ = run(capsys, *words, "r=-0.1", "--json")
    assert json.loads(out)["unstable"] == 1


def test_an_accuracy_that_is_not_reached_keeps_its_values(capsys, tmp_path):
    path = tmp_path / "slow.py"
    path.write_text(
        "import sympy, theory\n"
        "m, T, z = sympy.symbols('m T z', real=True)\n"
        "mean = theory.GaussianExpectation(sympy.sqrt(z**2 + 10**-12), [z], [0], [[1]])\n"
        "f = theory.FreeEnergy(mean * m + m**2 + T * m, [m], [T])\n"
    )
    code, out, err = run(capsys, "solve", f"{path}:f", "--set", "T=1")
    assert code == 1 and err == "" and "accuracy_not_reached" in out
    assert "\nm " in out and "the values hold within their errors" in out
    line = next(line for line in out.splitlines() if line.startswith("m "))
    value, digits = line.split()[1].rstrip(")").split("(")
    error = int(digits) * 10.0 ** -len(value.partition(".")[2])
    assert abs(float(value) + (1 + (2 / math.pi) ** 0.5) / 2) < error


def test_solve_and_transition_write_files(capsys, tmp_path):
    names = {k: tmp_path / f"s.{k}" for k in ("csv", "nc", "json")}
    words = ["solve", "landau", "--branch", "ordered"]
    run(capsys, *words, "--csv", str(names["csv"]), "--out", str(names["json"]))
    assert json.loads(names["json"].read_text())["kind"] == "ordered"
    assert names["csv"].read_text().startswith("branch,r,u,v,m,m_error,energy,energy_error,status")
    code, _, _ = run(capsys, "transition", "landau", "--no-plot", "--csv", str(names["csv"]),
                     "--out", str(names["json"]))  # fmt: skip
    assert code == 0 and len(names["csv"].read_text().splitlines()) == 3
    assert json.loads(names["json"].read_text())["r_c"] == pytest.approx(0.1875)
    xarray = pytest.importorskip("xarray")
    run(capsys, *words, "--out", str(names["nc"]))
    assert "m_error" in xarray.open_dataset(names["nc"], engine="scipy")


def test_a_transition_that_is_not_there_says_what_is(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "transition", "blume-capel", "--over", "D=0.5:0.6")
    assert code == 1 and "ordered not found anywhere for D in [0.5, 0.6]" in out
    assert "between ordered and disordered" in out and "spinodal diagram blume-capel" in out


def test_the_parameter_of_a_transition_needs_no_value(capsys, tmp_path):
    path = tmp_path / "bare.py"
    path.write_text(
        "import sympy, theory\n"
        "m, r = sympy.symbols('m r', real=True)\n"
        "named = {n: theory.Ansatz(n, {}) for n in ('ordered', 'disordered')}\n"
        "named['ordered'] = theory.Ansatz('ordered', {}, nonzero=[m])\n"
        "f = theory.FreeEnergy(r*m**2/2 - m**4/4 + m**6/6, [m], [r], mirrors=[[m]],\n"
        "    branches=named, starts={'ordered': {m: 1}, 'disordered': {m: 0}})\n"
    )
    words = ["transition", f"{path}:f", "--between", "ordered", "disordered", "--no-plot"]
    code, out, _ = run(capsys, *words, "--over", "r=1/100:1/2")
    assert code == 0 and "r_c = 0.1875000" in out
    code, _, err = run(capsys, *words)
    assert code == 2 and "--over NAME=LO:HI" in err


def test_numbers_in_print():
    assert uncertain(-0.0, 2e-15) == "0.000000000000000(2)"
    assert uncertain(-0.0, 0.0) == "0" and uncertain(-0.25, 0.01) == "-0.25(1)"


def test_lines_without_content_are_left_out(capsys, tmp_path):
    path = tmp_path / "bare.py"
    path.write_text("import sympy, theory\nm = sympy.Symbol('m', real=True)\n"
                    "f = theory.FreeEnergy(m**2, [m])\n")  # fmt: skip
    code, out, _ = run(capsys, "solve", f"{path}:f")
    assert code == 0 and not any(line.startswith("at") for line in out.splitlines())
    code, _, err = run(capsys, "solve", str(path))
    assert code == 2 and "it defines: f" in err


def test_derive(capsys):
    code, out, _ = run(capsys, "derive", "landau")
    assert code == 0 and "Saddle-point equations" in out
    code, out, _ = run(capsys, "derive", "--json")
    assert code == 0 and len(json.loads(out)["equations"]) == 8


BAD = [
    (["solve", "no-such-model"], "no-such-model"),
    (["solve", "--branch", "sideways"], "sideways"),
    (["solve", "--set", "beta=1"], "beta"),
    (["solve", "--set", "omega=1.5"], "omega = 1.5"),
    (["solve", "--set", "alpha=0"], "alpha = 0"),
    (["solve", "--set", "lambda=-1"], "lambda = -1"),
    (["solve", "--set", "alpha=1", "--set", "alpha=2"], "given twice"),
    (["solve", "--set", "A11=1.2"], "A11 = 1.2"),
    (["solve", "--set", "alpha=abc"], "not a number"),
    (["solve", "--set", "alpha"], "NAME=VALUE"),
    (["solve", "--accuracy", "7"], "accuracy"),
    (["transition", "--over", "alpha=3:1"], "not below"),
    (["transition", "--between", "positional", "sideways"], "sideways"),
    (["transition", "--set", "alpha=1", "--over", "alpha=1:2"], "given twice"),
    (["transition", "ridge"], "declares no transition"),
    (["transition", "perceptron"], "spinodal diagram perceptron"),
    (["solve", "ridge", "--out", "a.xyz"], "must end in .nc or .json"),
    (["solve", "ridge", "--plot", "no/such/a.png"], "there is no folder no/such"),
    (["branch", "landau", "--over", "r=0:1", "--csv", "."], "it is a folder"),
    (["nonsense"], "nonsense"),
    (["solve", "atention"], "did you mean 'attention'?"),
    (["solve", "--branch", "semnatic"], "did you mean 'semantic'?"),
    (["solve", "--set", "alhpa=1"], "did you mean 'alpha'?"),
]


@pytest.mark.parametrize(("arguments", "named"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input(capsys, arguments, named):
    code, out, err = run(capsys, *arguments)
    assert code == 2 and out == ""
    assert named in err and len(err.strip().splitlines()) == 1 and "Traceback" not in err


def test_import_stays_light():
    probe = (
        "import sys, theory; "
        "print([m for m in ('numba', 'scipy', 'matplotlib', 'numerics') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stderr
