"""The planar integrator on a hand-coded loss: known values, honesty, threads, symmetry."""

import ast
import importlib.util
import sys
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

from numerics.quadrature import lines, planar, plane

HAND = """
import math
import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def logistic(x):
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


@njit(cache=True, nogil=True, error_model="numpy")
def context(zu, zv, c, ctx):
    q, m, V, theta, sigma, omega, A11, A22 = c
    rho = sigma * sigma
    ctx[0] = (1 - omega) * logistic(zu * zu + zu * zv) + omega * A11
    ctx[1] = (1 - omega) * logistic(zu * zu - zu * zv) + omega * A22
    ctx[2], ctx[3] = rho, 1 / V
    ctx[4], ctx[5] = math.sqrt(2.0) * m + theta / rho * zu, theta / rho * zv
    ctx[6], ctx[7], ctx[8], ctx[9] = q - theta * theta / rho, zu, zv, theta / q
    ctx[10], ctx[11] = math.sqrt(2.0) * m, rho - theta * theta / q


@njit(cache=True, nogil=True, error_model="numpy")
def loss(u, v, ctx):
    return derivatives(u, v, ctx)[0]


@njit(cache=True, nogil=True, error_model="numpy")
def derivatives(u, v, ctx):
    s1, s2, r = logistic(u * u + u * v), logistic(u * u - u * v), ctx[2]
    d1, d2, p1, p2 = s1 - ctx[0], s2 - ctx[1], s1 * (1 - s1), s2 * (1 - s2)
    f1, f2 = 2 * r * d1 * p1, 2 * r * d2 * p2
    k1 = 2 * r * (p1 * p1 + d1 * p1 * (1 - 2 * s1))
    k2 = 2 * r * (p2 * p2 + d2 * p2 * (1 - 2 * s2))
    a1, a2 = 2 * u + v, 2 * u - v
    return (r * (d1 * d1 + d2 * d2), f1 * a1 + f2 * a2, (f1 - f2) * u,
            k1 * a1 * a1 + k2 * a2 * a2 + 2 * (f1 + f2),
            k1 * a1 * u - k2 * a2 * u + f1 - f2, (k1 + k2) * u * u)


@njit(cache=True, nogil=True, error_model="numpy")
def moments(a, b, u, v, ctx, out):
    ga, gb = (u - a) * ctx[3], (v - b) * ctx[3]
    value = loss(u, v, ctx)
    out[0] = 0.5 * ((u - a) * ga + (v - b) * gb) + value
    out[1] = ga * ga + gb * gb
    out[2] = (ga * (a - ctx[4]) + gb * (b - ctx[5])) / ctx[6]
    out[3] = ga
    out[4] = (ga * (ctx[7] - ctx[9] * (a - ctx[10])) + gb * (ctx[8] - ctx[9] * b)) / ctx[11]
    out[5] = value
    out[6] = 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def features(u, v, tab):
    tab[0], tab[1] = logistic(u * u + u * v), logistic(u * u - u * v)


@njit(cache=True, nogil=True, error_model="numpy")
def of_features(u, v, tab, ctx):
    s1, s2, r = tab[0], tab[1], ctx[2]
    d1, d2, p1, p2 = s1 - ctx[0], s2 - ctx[1], s1 * (1 - s1), s2 * (1 - s2)
    f1, f2 = 2 * r * d1 * p1, 2 * r * d2 * p2
    k1 = 2 * r * (p1 * p1 + d1 * p1 * (1 - 2 * s1))
    k2 = 2 * r * (p2 * p2 + d2 * p2 * (1 - 2 * s2))
    a1, a2 = 2 * u + v, 2 * u - v
    return (f1 * a1 + f2 * a2, (f1 - f2) * u, k1 * a1 * a1 + k2 * a2 * a2 + 2 * (f1 + f2),
            k1 * a1 * u - k2 * a2 * u + f1 - f2, (k1 + k2) * u * u)


@njit(cache=True, nogil=True, error_model="numpy")
def slopes_of_features(u, v, tab, ctx):
    l_u, l_v, _uu, _uv, _vv = of_features(u, v, tab, ctx)
    return l_u, l_v


@njit(cache=True, nogil=True, error_model="numpy")
def moments_of_features(a, b, u, v, tab, ctx, out):
    moments(a, b, u, v, ctx, out)
"""

# q, m, V, theta, sigma, omega, A11, A22
SEMANTIC = (0.08170436, 0.0, 18.304845, 0.11804349, 0.5, 0.3, 0.6, 0.6)
POSITIONAL = (0.04711876, 0.25242916, 14.894824, 0.0, 0.5, 0.3, 0.6, 0.6)
CRITICAL = 1.2515356


def _included(name):
    source = (resources.files("numerics.kernels") / f"{name}.py").read_text()
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) or node.lineno == 1:
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("planar") / "planar_by_hand.py"
    path.write_text(
        "\n".join(
            [
                HAND,
                *map(
                    _included,
                    ("minima", "envelope", "jumps", "cusps", "lens", "fold", "plane", "lines"),
                ),
            ]
        )
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    yield planar.Kernels(module, context=12, features=5, moments=7)
    del sys.modules[path.stem]


def _spec(c, mirrored=(False, False)):
    q, m, V, theta, sigma = c[:5]
    slope, sd = theta / sigma**2, np.sqrt(q - theta**2 / sigma**2)
    field = np.array([0, 0, slope, sd, np.sqrt(2) * m, slope, 0, 0, sd])
    return planar.Specification((sigma, sigma), field, np.array([V, V]), mirrored)


def _values(kernels, spec, c, rung):
    return lines.apply(kernels, spec, np.array(c), lines.LADDER[rung])[0]


def _with_error(kernels, spec, c, target):
    return lines.integrate(
        lambda k: lines.apply(kernels, spec, np.array(c), lines.LADDER[k]), target, True
    )


def _update(values, c, alpha, ridge=0.01):
    """(q, m, V, theta) and the energy from the moments (section 2 of the derivation)."""
    q, m, V, theta, sigma = c[:5]
    M, g2, response, g, source = alpha * values[:5]
    rho, Vhat, mhat = sigma**2, -response, np.sqrt(2) * g
    D = ridge + rho * Vhat
    new = (
        rho * (rho * g2 + mhat**2 + rho**2 * source**2) / D**2,
        mhat / D,
        rho / D,
        rho**2 * source / D,
    )
    energy = M + 0.5 * (g2 * V - Vhat * q) + mhat * m + source * theta
    energy -= 0.5 * (rho * g2 + mhat**2 + rho**2 * source**2) / D
    return new, energy


def test_one_update(kernels):
    c = (0.08138604, 0.0, 17.35195, 0.121052, *SEMANTIC[4:])
    new, _ = _update(_values(kernels, _spec(c), c, 2), c, 1.24)
    assert np.allclose(new, (0.08288, 0, 18.094, 0.11998), rtol=1.5e-4, atol=1e-12)


@pytest.mark.parametrize("c", [SEMANTIC, POSITIONAL])
def test_fixed_points_at_the_transition(kernels, c):
    found = _with_error(kernels, _spec(c, (False, True)), c, 3e-6)
    new, energy = _update(found.values, c, CRITICAL)
    assert np.allclose(new, c[:4], rtol=3e-6, atol=1e-12)
    assert energy == pytest.approx(0.0027232656, rel=3e-7)
    assert found.values[6] == pytest.approx(1.0, abs=1e-7)


def test_error_meets_the_target_here(kernels):
    found = _with_error(kernels, _spec(SEMANTIC), SEMANTIC, 1e-4)
    assert found.relative_error <= 1e-4
    assert found.unresolved < 1e-6


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([1e-6, 1e-5, 1e-4], 2.5e-6),  # a share of the difference before
        ([1e-6, 2e-6, 1e-5], 1e-6),  # a geometric tail
        ([1e-6, 1e-5, 2e-5], 7.5e-6),  # not converging before
        ([1e-6, 1e-5], 7.5e-6),  # not known to converge before
        ([2e-4, 1e-3], 3e-3),  # not begun
        ([1e-5], 3e-5),  # one difference only
    ],
)
def test_error_rule(steps, error):
    history = [np.array([x]) for x in np.cumsum([0.0, *steps])]
    assert lines.ladder_error(history, np.ones(1)) == pytest.approx(error)


def test_bits_do_not_depend_on_threads(kernels, monkeypatch):
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SPINODAL_THREADS", threads)
        results.append(_values(kernels, _spec(POSITIONAL), POSITIONAL, 0))
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


@pytest.mark.parametrize("c", [SEMANTIC, POSITIONAL])
def test_half_ranges(kernels, c):
    """zv -> -zv with b -> -b; all signs but those of (a, g_a) at theta = 0, all at m = 0."""
    full = _values(kernels, _spec(c), c, 1)
    half = _values(kernels, _spec(c, (False, True)), c, 1)
    assert np.allclose(full, half, rtol=1e-5, atol=1e-9)
    quarter = _values(kernels, _spec(c, (True, True)), c, 1)
    even = [0, 1, 2, 5, 6]  # the others are odd on one of the branches: to be symmetrised first
    assert np.allclose(full[even], quarter[even], rtol=1e-4)


# --- the plane of proximal points against the lines ---------------------------------------------


def _plane(kernels, c, target, mirrored=(False, True)):
    found = plane.integrate(kernels, _spec(c, mirrored), np.array(c), target, True, 7)
    assert found is not None
    return found


@pytest.mark.parametrize("c", [SEMANTIC, POSITIONAL])
def test_plane_at_the_transition(kernels, c):
    found = _plane(kernels, c, 1e-8)
    new, energy = _update(found.values, c, CRITICAL)
    assert np.allclose(new, c[:4], rtol=1e-6, atol=1e-10)  # the digits of the states
    assert energy == pytest.approx(0.0027232656, rel=2e-8)
    assert found.values[6] == pytest.approx(1.0, abs=1e-9)
    assert found.relative_error <= 1e-7


@pytest.mark.parametrize("c", [SEMANTIC, POSITIONAL])
@pytest.mark.parametrize("target", [1e-3, 1e-5, 1e-7])
def test_plane_error_is_honest(kernels, c, target):
    fine, found = _plane(kernels, c, 1e-9), _plane(kernels, c, target)
    assert found.relative_error <= target
    difference = np.abs(found.values - fine.values)
    assert np.all(difference <= found.errors + fine.errors)


def test_plane_and_lines_agree_at_random_places(kernels):
    """Unequal A, all cosines between student and teacher; neither bar may be too short."""
    rng = np.random.default_rng(11)
    tried = 0
    for _ in range(10):
        sigma, response = rng.uniform(0.15, 0.6), rng.uniform(0.3, 6.0)
        q = sigma**2 * rng.uniform(0.05, 0.8)
        cosine, m = rng.choice([0.0, 0.3, 0.9]), rng.choice([0.0, 0.5]) * np.sqrt(q)
        c = (q, m, response / sigma**2, cosine * np.sqrt(q) * sigma, sigma, rng.uniform(0, 0.7),
             rng.uniform(0.3, 0.9), rng.uniform(0.3, 0.9))  # fmt: skip
        spec = _spec(c)
        found = plane.integrate(kernels, spec, np.array(c), 1e-6, True, 7)
        if found is None or not found.relative_error <= 1e-5:
            continue
        tried += 1
        rule = [lines.apply(kernels, spec, np.array(c), lines.LADDER[k]) for k in range(4)]
        other = lines.integrate(lambda k, rule=rule: rule[k], 4e-5, True)
        assert np.all(np.abs(found.values - other.values) <= found.errors + other.errors)
    assert tried >= 6


def test_plane_bits_do_not_depend_on_threads(kernels, monkeypatch):
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("SPINODAL_THREADS", threads)
        results.append(_plane(kernels, POSITIONAL, 1e-4).values)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


def test_plane_declines_what_it_cannot_resolve(kernels):
    """Far too many points: the density is narrower by V sigma^2 in the proximal point."""
    c = (0.08, 0.0, 4e4, 0.1, 0.5, 0.3, 0.6, 0.6)
    assert plane.integrate(kernels, _spec(c), np.array(c), 1e-6, True, 7) is None


# --- the lens: jumps of the proximal point -------------------------------------------------------


def _jumps(kernels, c, zu, zv, far, lines=18):
    """The module's lens at one pair of sources: where it ends, and a row for each jump."""
    context, response = np.empty(kernels.context), _spec(c).response
    kernels.fill_context(zu, zv, np.array(c), context)
    rows = np.zeros((4 * lines + 1, 13))
    edge, count = kernels.lens(far, far, lines, np.zeros(5), *response, context, rows)
    return edge, rows[:count], context


def _heights(kernels, c, a, b, u, v, context):
    V, loss = c[2], np.vectorize(lambda x, y: kernels.loss(x, y, context))
    return ((u - a) ** 2 + (v - b) ** 2) / (2 * V) + loss(u, v)


@pytest.mark.parametrize(
    ("c", "zu", "zv"),
    [
        (SEMANTIC, 0.9, 0.3),  # closes in a cusp
        (POSITIONAL, 0.8, 0.2),
        # three minima nearly equal: lines close to a branch point
        (POSITIONAL, 1.825058, 0.157028),
        (POSITIONAL, 1.860278, 0.355672),
        (POSITIONAL, 1.902416, 0.329938),
    ],
)
@pytest.mark.parametrize("lines", [18, 62, 78])
def test_jumps_of_the_lens_are_equal_global_minima(kernels, c, zu, zv, lines):
    far = 1.62
    edge, jumps, context = _jumps(kernels, c, zu, zv, far, lines)
    assert len(jumps) >= lines
    assert np.all(np.diff(jumps[:, 0]) > 0) and jumps[-1, 0] <= abs(edge) <= far
    u, v = np.meshgrid(np.linspace(-3, 3, 121), np.linspace(-3, 3, 121))
    for b, a, left, v_left, right, v_right in jumps[:, :6]:
        assert left < right
        low = _heights(kernels, c, a, b, left, v_left, context)
        assert _heights(kernels, c, a, b, right, v_right, context) == pytest.approx(low, abs=1e-12)
        assert _heights(kernels, c, a, b, u, v, context).min() > low - 1e-12
    if edge < 0:  # the lines' own rule integrates functions of b
        moment = jumps[:, 11] @ np.cos(jumps[:, 0])
        assert moment == pytest.approx(np.sin(-edge), rel=1e-5)


@pytest.mark.parametrize("c", [SEMANTIC, POSITIONAL])
@pytest.mark.parametrize("target", [1e-6, 1e-8, 1e-10])
def test_a_lens_of_jumps_has_no_mass(kernels, c, target):
    """Its sides have equal fields; so have the ends of a cap, where it is not followed further."""
    part = plane.fold(kernels, _spec(c), np.array(c), plane.rule_for(target))
    assert part.missing < 0.4 * target + 1e-10
    assert part.lost < 0.3 * target
    assert part.points > 1000


def test_what_is_beyond_the_end_of_a_lens_is_counted(kernels):
    rule, spec, c = plane.rule_for(1e-6), _spec(POSITIONAL), np.array(POSITIONAL)
    whole = plane.fold(kernels, spec, c, rule)
    part = plane.fold(kernels, spec, c, replace(rule, lens=0.6 * rule.lens))
    magnitudes = _plane(kernels, POSITIONAL, 1e-6).magnitudes
    assert whole.lost < 1e-8 < part.lost
    assert np.all(np.abs(part.values - whole.values) <= plane.TAIL * part.lost * magnitudes)


@pytest.mark.parametrize("n", [4, 8, 20])
def test_clenshaw_curtis(n):
    x, w, half = plane.clenshaw_curtis(n)
    for k in range(n + 1):
        assert w @ x**k == pytest.approx(1 / (k + 1), rel=1e-13)
    for k in range(n // 2 + 1):
        assert half @ x**k == pytest.approx(1 / (k + 1), rel=1e-13)
    assert abs(half @ x ** (n + 2) - 1 / (n + 3)) > 1e-12
