"""Prints what each integration rule reaches and what it costs.

``python tests/benchmarks/integration.py``. Accuracies are relative to the finest plane rule, whose
own error estimate is printed first. The last part times one Newton step for the proximal point
beside the same step written in C (``gcc -O3``).
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numba import njit

import theory
from numerics.quadrature import SobolRule, lines, planar, plane, product_of_pairs
from numerics.quadrature.nodes import NodeRule, tensor_hermite
from theory.models import attention

STATES = {
    "semantic": ([0.08170436, 18.304845, 0.0, 0.11804349], {"alpha": 1.2515356}),
    "positional": ([0.04711876, 14.894824, 0.25242916, 0.0], {"alpha": 1.2515356}),
}

C_SOURCE = r"""
#include <math.h>
static inline double logistic(double x) {
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
double steps(long n, const double *a, const double *b, const double *u, const double *v, double V,
             double r, double t1, double t2) {
    double total = 0;
    for (long i = 0; i < n; i++) {
        double s1 = logistic(u[i] * u[i] + u[i] * v[i]), s2 = logistic(u[i] * u[i] - u[i] * v[i]);
        double d1 = s1 - t1, d2 = s2 - t2, p1 = s1 * (1 - s1), p2 = s2 * (1 - s2);
        double f1 = 2 * r * d1 * p1, f2 = 2 * r * d2 * p2;
        double k1 = 2 * r * (p1 * p1 + d1 * p1 * (1 - 2 * s1));
        double k2 = 2 * r * (p2 * p2 + d2 * p2 * (1 - 2 * s2));
        double a1 = 2 * u[i] + v[i], a2 = 2 * u[i] - v[i];
        double g_u = (u[i] - a[i]) / V + f1 * a1 + f2 * a2;
        double g_v = (v[i] - b[i]) / V + (f1 - f2) * u[i];
        double h_uu = 1 / V + k1 * a1 * a1 + k2 * a2 * a2 + 2 * (f1 + f2);
        double h_uv = k1 * a1 * u[i] - k2 * a2 * u[i] + f1 - f2;
        double h_vv = 1 / V + (k1 + k2) * u[i] * u[i];
        double det = h_uu * h_vv - h_uv * h_uv;
        double du = -(h_vv * g_u - h_uv * g_v) / det, dv = -(h_uu * g_v - h_uv * g_u) / det;
        double value = r * (d1 * d1 + d2 * d2) + 0.5 * (g_u * du + g_v * dv);
        value += 0.5 * ((u[i] - a[i]) * (u[i] - a[i]) + (v[i] - b[i]) * (v[i] - b[i])) / V;
        double p_u = h_vv / (V * det), p_v = -h_uv / (V * det);
        if (h_uu > 0 && det > 0)
            total += fabs(du) + fabs(dv) + value + p_u + p_v;
    }
    return total;
}
"""


def fastest(function, rounds: int = 5):
    """Result, and the shortest time of several runs in seconds."""
    best, result = np.inf, function()
    for _ in range(rounds):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return result, best


def table(problem, name: str) -> None:
    x, params = STATES[name]
    c, group = problem.controls(x, problem.values(params)), problem.module.GROUPS[0]
    count = group["counts"][0]
    mean, covariance, response = np.zeros(4), np.zeros((4, 4)), np.zeros((2, 2))
    problem.module.measure_0(c, mean, covariance, response)
    spec = planar.specification(group, mean, covariance, response)
    kernels = planar.Kernels(problem.module, group["context"], group["features"], count, "_0")
    finest = (plane.integrate(kernels, spec, c, t, True, count) for t in (1e-10, 1e-11))
    truth = min((f for f in finest if f is not None), key=lambda f: f.relative_error)
    envelope = -1  # the moment of the energy
    for k in range(count):
        if np.isclose(truth.values[k], problem.evaluate(x, params).gradient["alpha"], rtol=1e-4):
            envelope = k
    print(f"\n{name} (reference: estimate {truth.relative_error:.0e})")
    print(f"{'rule':34s} {'moments':>9s} {'energy':>9s} {'estimate':>9s} {'points':>9s} {'ms':>9s}")

    def row(label, values, estimate, points, seconds):
        off = np.abs(values - truth.values) / truth.magnitudes
        print(f"{label:34s} {off.max():9.1e} {off[envelope]:9.1e} {estimate:>9s} {points:9d} "
              f"{1e3 * seconds:9.1f}")  # fmt: skip

    for target in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10):
        plain, seconds = fastest(
            lambda t=target: plane.integrate(kernels, spec, c, t, False, count), 3
        )
        row(f"plane, {target:.0e}", plain.values, "", plain.points, seconds)
        found, seconds = fastest(
            lambda t=target: plane.integrate(kernels, spec, c, t, True, count), 1
        )
        row(f"plane, {target:.0e}, error certified", found.values,
            f"{found.relative_error:.0e}", found.points, seconds)  # fmt: skip
    for level in range(1, 6):
        sums, seconds = fastest(lambda k=level: lines.apply(kernels, spec, c, lines.LADDER[k]), 1)
        row(f"lines, rung {level} (points: lines)", sums[0], "", sums[3], seconds)
    rules = {"144 nodes (the authors')": product_of_pairs(((0, 1), (2, 3)))}
    for n in (8, 16, 24):
        rules[f"tensor Gauss-Hermite, {n}^4"] = NodeRule(*tensor_hermite(n, 4))
    for power in (12, 16):
        rules[f"one Sobol set, 2^{power}"] = SobolRule(power, 2)
    for label, rule in rules.items():
        other = problem.with_rule(rule)

        def run(other=other):
            other.integrator.forget()
            return other.integrator.moments(c, 1e-4, estimate=False)

        moments, seconds = fastest(run, 1)
        row(label, moments.values[:count], "", moments.points, seconds)


@njit(error_model="numpy")
def _walk(newton, a, b, u, v, V, ctx):
    total = 0.0
    for i in range(len(a)):
        du, dv, value, p_u, p_v, convex = newton(a[i], b[i], u[i], v[i], V, V, ctx)
        if convex:
            total += abs(du) + abs(dv) + value + p_u + p_v
    return total


def against_c(problem) -> None:
    """One Newton step, generated and in C."""
    gcc = shutil.which("gcc")
    if gcc is None:
        print("\nno gcc here: the comparison with C is left out")
        return
    module, rng, n = problem.module, np.random.default_rng(1), 100_000
    a, b, u, v = rng.normal(size=(4, n)) * 0.4
    x, params = STATES["semantic"]
    c, ctx = problem.controls(x, problem.values(params)), np.empty(module.GROUPS[0]["context"])
    zu, zv, omega, rho, A = 0.4, 0.2, 0.3, 0.25, 0.6
    module.context_0(zu, zv, c, ctx)
    t1, t2 = ((1 - omega) / (1 + np.exp(-zu * zu - s * zu * zv)) + omega * A for s in (1.0, -1.0))
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "step.c", Path(folder) / "step.so"
        source.write_text(C_SOURCE)
        subprocess.run([gcc, "-O3", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
        steps = ctypes.CDLL(str(library)).steps
        steps.restype = ctypes.c_double
        pointers = [y.ctypes.data_as(ctypes.c_void_p) for y in (a, b, u, v)]
        numbers = [ctypes.c_double(y) for y in (x[1], rho, t1, t2)]
        theirs, slow = fastest(lambda: steps(ctypes.c_long(n), *pointers, *numbers), 20)
        ours, quick = fastest(lambda: _walk(module.newton_0, a, b, u, v, x[1], ctx), 20)
    print(f"\none Newton step: generated {1e9 * quick / n:.0f} ns, C {1e9 * slow / n:.0f} ns, "
          f"ratio {quick / slow:.2f} (sums agree to {abs(ours / theirs - 1):.0e})")  # fmt: skip


if __name__ == "__main__":
    system = theory.derive(attention())
    problem = system.compile()
    for name in STATES:
        table(problem, name)
    against_c(problem)
