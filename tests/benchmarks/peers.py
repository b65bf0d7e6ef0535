"""Folds, branch points and crossings located by several tools: error, evaluations, seconds.

``python tests/benchmarks/peers.py`` prints the table. The peers (pycont-lite, jaxcont, bice) are
optional: ``pip install pycont-lite jaxcont bice``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, fsolve

from numerics import PlainProblem
from numerics.continuation import diagram, follow


@dataclass
class Case:
    """Equations F(u, p) = 0 in the notation of any array library ``xp``."""

    name: str
    function: Callable
    start: list[float]
    span: tuple[float, float]
    exact: dict[str, float]
    energy: Callable | None = None
    calls: int = 0

    def residual(self, u, p) -> np.ndarray:
        """Counted."""
        self.calls += 1
        return np.asarray(self.function(np, np.asarray(u, float), p))

    def jacobian(self, u, p, h: float = 1e-6) -> np.ndarray:
        eye = np.eye(len(u))
        return np.array([(self.residual(u + h * e, p) - self.residual(u - h * e, p)) / (2 * h)
                         for e in eye]).T  # fmt: skip


def _cells(xp, u, a):
    return xp.stack([-2 * u[0] + u[1] + a * xp.exp(u[0]), u[0] - 2 * u[1] + a * xp.exp(u[1])])


def _magnet(xp, u, D, T=0.25):
    up, down = xp.exp((u - D) / T), xp.exp((-u - D) / T)
    return u - (up - down) / (1 + up + down)


def _magnet_energy(m, D, T=0.25):
    return m**2 / 2 - T * math.log(1 + 2 * math.exp(-D / T) * math.cosh(m / T))


def cases() -> list[Case]:
    return [
        Case("cusp", lambda xp, u, mu: mu + u - u**3, [-1.4], (-1.3, 1.0),
             {"fold": 2 / 27**0.5}),
        Case("two-cell Bratu", _cells, [0.02, 0.02], (0.02, 1.0),
             {"fold": math.exp(-1), "branch point": 3 * math.exp(-3)}),
        Case("Blume-Capel", _magnet, [0.97], (0.3, 0.6),
             {"fold": 0.490265484857193, "branch point": 0.447939867307014,
              "crossing": 0.476265836632844}, _magnet_energy),
    ]  # fmt: skip


KINDS = {"pitchfork": "branch point", "first-order": "crossing"}


def events(case: Case) -> list:
    """`diagram` on plain functions without a Jacobian, all events at once."""
    energy = case.energy
    problem = PlainProblem(
        lambda u, p: case.residual(u, p["p"]), [f"u{i}" for i in range(len(case.start))],
        {"p": case.span[0]}, starts=[case.start, [0.0] * len(case.start)], form="gradient",
        energy=None if energy is None else lambda u, p: energy(u[0], p["p"]),
        mirrors=[["u0"]] if energy is not None else [],
    )  # fmt: skip
    return diagram(problem, "p", case.span).events


def ours(case: Case) -> dict[str, float]:
    return _nearest(case, [(KINDS.get(e.kind, e.kind), e.value) for e in events(case)])


def natural(case: Case, points: int = 200) -> dict[str, float]:
    """SciPy only: fsolve along a grid, bisection for the fold, brentq for the others."""
    found, u = {}, np.array(case.start)
    good, last = None, None
    for p in np.linspace(*case.span, points):
        new, _, ok, _ = fsolve(case.residual, u, args=(p,), full_output=True)
        if ok != 1 or np.max(np.abs(new - u)) > 0.3:
            last = p
            break
        u, good = new, p
    if last is not None:
        while last - good > 1e-7:
            middle = 0.5 * (good + last)
            new, _, ok, _ = fsolve(case.residual, u, args=(middle,), full_output=True)
            if ok == 1 and np.max(np.abs(new - u)) < 0.1:
                u, good = new, middle
            else:
                last = middle
        found["fold"] = good
    if "branch point" in case.exact and case.energy is not None:
        zero = np.zeros(len(u))
        found["branch point"] = brentq(
            lambda p: np.linalg.det(case.jacobian(zero, p)), *case.span, xtol=1e-12
        )
    if case.energy is not None:
        energy = case.energy

        def apart(p):
            m = fsolve(case.residual, np.array(case.start), args=(p,), xtol=1e-13)[0]
            return energy(m, p) - energy(0.0, p)

        found["crossing"] = brentq(apart, case.span[0], found["fold"] - 1e-3, xtol=1e-13)
    return found


def pycont_lite(case: Case) -> dict[str, float]:
    pycont = importlib.import_module("pycont")
    start = fsolve(case.residual, np.array(case.start), args=(case.span[0],), xtol=1e-12)
    result = pycont.arclengthContinuation(
        case.residual, start, case.span[0], 1e-6, 0.05, 0.01, 400,
        solver_parameters={"param_min": case.span[0] - 0.01, "param_max": case.span[1],
                           "analyze_stability": False,  # fails for one unknown
                           "initial_directions": "increase_p"}, verbosity="off",
    )  # fmt: skip
    return _nearest(case, [({"LP": "fold", "BP": "branch point"}.get(e.kind), e.p)
                           for e in result.events])  # fmt: skip


def jaxcont(case: Case) -> dict[str, float]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    module, jnp = importlib.import_module("jaxcont"), importlib.import_module("jax.numpy")
    start = fsolve(case.residual, np.array(case.start), args=(case.span[0],), xtol=1e-12)
    case.calls = 0
    problem = module.bif_problem(
        lambda u, p, args: case.function(jnp, u, p), jnp.array(start), case.span[0]
    )
    result = module.continuation(
        problem, p_span=case.span, events=[module.Fold()],
        settings=module.ContinuationPar(ds_max=0.05, newton_tol=1e-12),
    )  # fmt: skip
    return _nearest(case, [(e.kind, float(e.p)) for e in result.events])


def bice(case: Case) -> dict[str, float]:
    module = importlib.import_module("bice")
    start = fsolve(case.residual, np.array(case.start), args=(case.span[0],), xtol=1e-12)

    class Equation(module.Equation):
        def __init__(self):
            super().__init__()
            self.u, self.p = start.copy(), case.span[0]

        def rhs(self, u):
            self.x = np.arange(len(u))
            return case.residual(u, self.p)

    class Problem(module.Problem):
        def __init__(self):
            super().__init__()
            self.equation = Equation()
            self.add_equation(self.equation)
            self.continuation_parameter = (self.equation, "p")

        def norm(self):
            return float(np.linalg.norm(self.u))

    problem = Problem()
    problem.settings.neigs = len(start)
    problem.continuation_stepper.ds = 0.01
    with contextlib.redirect_stdout(io.StringIO()):
        problem.generate_bifurcation_diagram(
            parameter_lims=case.span, max_recursion=0, max_steps=300
        )
    # it counts eigenvalues that cross zero, and leaves open what that means
    points = [s for b in problem.bifurcation_diagram.branches for s in b.bifurcations()]
    return _nearest(
        case, [(kind, float(s.p)) for s in points for kind in case.exact if kind != "crossing"]
    )


def followed(case: Case) -> dict[str, float]:
    """`follow` alone, from a start near the branch."""
    problem = PlainProblem(
        lambda u, p: case.residual(u, p["p"]), [f"u{i}" for i in range(len(case.start))],
        {"p": case.span[0]}, form="gradient",
    )  # fmt: skip
    branch = follow(problem, case.start, "p", case.span)
    return _nearest(case, [(KINDS.get(e.kind, e.kind), e.value) for e in branch.events])


def _nearest(case: Case, events) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind, value in events:
        if kind in case.exact:
            best = found.get(kind, math.inf)
            if abs(value - case.exact[kind]) < abs(best - case.exact[kind]):
                found[kind] = value
    return found


TOOLS = {"spinodal": ours, "spinodal, one branch": followed, "scipy": natural,
         "pycont-lite": pycont_lite, "jaxcont": jaxcont, "bice": bice}  # fmt: skip


def table() -> list[tuple]:
    """Rows (problem, event, tool, error or None, evaluations for all events, seconds)."""
    rows = []
    for tool, run in TOOLS.items():
        for case in cases():
            case.calls, began = 0, time.perf_counter()
            try:
                found = run(case)
            except ImportError:
                continue
            except Exception as error:  # a peer that cannot do this case is a result, too
                print(f"{tool} on {case.name}: {type(error).__name__}: {error}")
                found = {}
            spent = time.perf_counter() - began
            for event, exact in case.exact.items():
                error = abs(found[event] - exact) if event in found else None
                rows.append((case.name, event, tool, error, case.calls or None, spent))
    return rows


if __name__ == "__main__":
    print(f"{'problem':<16}{'event':<14}{'tool':<22}{'error':>9}{'evaluations':>13}{'seconds':>9}")
    for name, event, tool, error, calls, spent in sorted(table(), key=lambda row: row[:3]):
        shown = "missed" if error is None else f"{error:.0e}"
        print(f"{name:<16}{event:<14}{tool:<22}{shown:>9}{calls or '-':>13}{spent:>9.2f}")
