r"""Tied low-rank dot-product attention with positional encodings (arXiv:2402.03902).

Student :math:`f_Q(x) = S[H](x+p)`, :math:`H = (x+p)Q/\sqrt d`, :math:`S` the row-wise softmax of
:math:`H H^T`; target :math:`y = T[Z]x`, :math:`Z = xQ_\star/\sqrt d`,
:math:`T = (1-\omega)\,\mathrm{softmax}(ZZ^T) + \omega A`. Empirical risk with ridge penalty
:math:`\lambda/2`, :math:`n = \alpha d` samples, proportional limit.

Everything below the declaration (loss, free energy, observables) is assembled for any number of
tokens L, student rank r and teacher rank t.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import sympy as sp

from theory.errors import ModelError
from theory.free_energy import Ansatz, FreeEnergy, Parameter
from theory.models.low_rank import LowRankLayer, OrderParameters
from theory.nodes import Logistic, Softmax
from theory.plan import PlanarPlan, SamplePlan
from theory.symmetry import Symmetry

REFERENCE = "arXiv:2402.03902 (Cui, Behrens, Krzakala, Zdeborova)"

PARAMETERS = {
    p.name: p
    for p in (
        Parameter(sp.Symbol("alpha", positive=True), 1.5, 0.0, low_open=True,
                  description="sample complexity n/d"),
        Parameter(sp.Symbol("omega", real=True), 0.3, 0.0, 1.0,
                  description="weight of the positional part of the target"),
        Parameter(sp.Symbol("sigma", positive=True), 0.5, 0.0, low_open=True,
                  description="standard deviation of a token's entries"),
        Parameter(sp.Symbol("lambda", nonnegative=True), 0.01, 0.0,
                  description="ridge penalty"),
        Parameter(sp.Symbol("A11", real=True), 0.6, 0.0, 1.0,
                  description="diagonal entry of A (rows sum to one)"),
        Parameter(sp.Symbol("A22", real=True), 0.6, 0.0, 1.0,
                  description="diagonal entry of A (rows sum to one)"),
    )
}  # fmt: skip

# replica symmetry is formally violated beyond; jumps that carry less are not told from none
LIMITS = {"replicon": 1.0, "jump_measure": 1e-3}


def softmax_rows(fields: Sequence[sp.Matrix]) -> sp.Matrix:
    """Row-wise softmax of the Gram matrix of ``fields`` (one vector per token)."""
    n = len(fields)
    logits = [[(fields[i].T * fields[j])[0] for j in range(n)] for i in range(n)]
    if n == 2:
        first = [Logistic(logits[i][i] - logits[i][1 - i]) for i in range(2)]
        return sp.Matrix([[first[0], 1 - first[0]], [1 - first[1], first[1]]])
    return sp.Matrix(n, n, lambda i, j: Softmax(sp.Integer(j), *logits[i]))


def attention(
    *,
    tokens: int = 2,
    rank: int = 1,
    teacher_rank: int = 1,
    A: Any = None,
    positions: Any = None,
    covariances: Sequence[Any] | None = None,
    **values: Any,
) -> FreeEnergy:
    """The solvable model of tied low-rank dot-product attention.

    Parameters
    ----------
    tokens, rank, teacher_rank : int
        L, r and t.
    A : L x L matrix, optional
        Positional part of the target; rows sum to one. By default its diagonal entries are
        parameters (A11 and A22 for two tokens, A11 for all otherwise) and the rest of a row is
        spread evenly.
    positions : L x L matrix, optional
        Gram matrix of the positional vectors, ``p_k . p_l``. By default unit vectors that sum to
        zero (``p_1 = -p_2`` for two tokens).
    covariances : L expressions, optional
        Variance of the entries of each token; by default ``sigma**2`` for all.
    **values
        Numbers or expressions to put in place of parameters: alpha, omega, sigma, lambda (written
        ``lambda_``), A11, A22.

    Returns
    -------
    FreeEnergy
        Normalised as the minimal empirical risk per dimension, regulariser included.
    """
    for what, number in (("tokens", tokens), ("rank", rank), ("teacher_rank", teacher_rank)):
        if not (isinstance(number, int) and number >= (2 if what == "tokens" else 1)):
            raise ModelError(f"attention: {what} = {number!r} must be a positive integer"
                             f"{' of at least 2' if what == 'tokens' else ''}")  # fmt: skip
    symbol = {name: p.symbol for name, p in PARAMETERS.items()}
    alpha, omega, sigma, ridge = (symbol[k] for k in ("alpha", "omega", "sigma", "lambda"))

    gamma = [sp.sympify(c) for c in covariances] if covariances else [sigma**2] * tokens
    mixing = _mixing(tokens, A, symbol)
    gram = _gram(tokens, positions)
    if len(gamma) != tokens:
        raise ModelError(f"attention: {len(gamma)} covariances for {tokens} tokens")

    op = OrderParameters(tokens, rank, teacher_rank)
    student = softmax_rows(op.H)
    target = (1 - omega) * softmax_rows(op.Z) + omega * mixing
    half = sp.Rational(1, 2)
    loss = half * sum(
        gamma[j] * _square(student[i, j] - target[i, j])
        for i, j in itertools.product(range(tokens), repeat=2)
    )
    layer = LowRankLayer(op, loss, gamma, gram, alpha, ridge)
    source = layer.source_measure()
    baseline, baseline_error = _linear_baseline(target, gamma, source)
    observables = {
        **layer.observables(),
        "baseline_error": baseline_error,
        "baseline_B11": baseline[0, 0],
    }
    used = (layer.free_energy.free_symbols | baseline_error.free_symbols) & set(symbol.values())
    fixed = _fixed_values(values, symbol)

    def put(e):
        return sp.sympify(e).subs(fixed)

    diagnostics = {k: put(v) for k, v in layer.diagnostics().items()}
    equal = len(set(gamma)) == 1
    antipodal = tokens == 2 and gram == sp.Matrix([[1, -1], [-1, 1]])
    reductions = [r for r in (_exchange(op, symbol), _isotropic(op, antipodal)) if equal and r]
    if not (antipodal and rank == teacher_rank == 1):
        reductions = [r for r in reductions if r.name != "exchange"]
    shared = {x for r in reductions for e in r.substitution.values() for x in e.free_symbols}

    def spoken(values):
        return {k: put(v) for k, v in values.items() if k in shared or k in op.orders}

    return FreeEnergy(
        put(layer.free_energy),
        unknowns=op.orders,
        conjugates=op.conjugates,
        parameters=[p for p in PARAMETERS.values() if p.symbol in used and p.symbol not in fixed],
        domain=[put(c) for c in layer.domain()],
        observables={k: put(v) for k, v in observables.items()},
        diagnostics=diagnostics,
        comparisons={"l": ("test_error", "baseline_error")},
        limits={k: v for k, v in LIMITS.items() if k in diagnostics},
        reductions=[_with_fixed(r, fixed) for r in reductions if _allowed(r, fixed)],
        branches=_branches(op),
        scales=spoken(layer.scales()),
        starts={b: spoken(s) for b, s in _starts(op, gram, sigma, ridge).items()},
        mirrors=[list(spoken(dict.fromkeys(op.every(k, hats=False), 1))) for k in ("m", "theta")],
        plan=_plan(op, equal),
        transition={
            "between": ("positional", "semantic"),
            "parameter": "alpha",
            "span": (0.3, 10.0),
        },
        name="attention",
        title="Tied low-rank dot-product attention: positional against semantic learning",
        reference=REFERENCE,
        notes={
            "normalisation": "The energy is the minimal empirical risk divided by d, regulariser "
            "included; alpha = n/d; the test error is half of the `mse` of the authors' files.",
        },
    )


def _square(difference: sp.Expr) -> sp.Expr:
    expanded = sp.expand(difference)
    return (-expanded if expanded.could_extract_minus_sign() else expanded) ** 2


def _mixing(tokens: int, A: Any, symbol) -> sp.Matrix:
    if A is None:
        diagonal = [symbol["A11"], symbol["A22"]] if tokens == 2 else [symbol["A11"]] * tokens
        return sp.Matrix(
            tokens, tokens,
            lambda i, j: diagonal[i] if i == j else (1 - diagonal[i]) / (tokens - 1),
        )  # fmt: skip
    matrix = sp.Matrix(A)
    if matrix.shape != (tokens, tokens):
        raise ModelError(f"attention: A is {matrix.shape}, expected {(tokens, tokens)}")
    for i in range(tokens):
        total = sp.nsimplify(sum(matrix.row(i)), tolerance=1e-12)
        if total.is_number and total != 1:
            raise ModelError(f"attention: row {i + 1} of A sums to {total}, not to one")
        for entry in matrix.row(i):
            if entry.is_number and not 0 <= entry <= 1:
                raise ModelError(f"attention: entry {entry} in row {i + 1} of A is outside [0, 1]")
    return matrix


def _gram(tokens: int, positions: Any) -> sp.Matrix:
    if positions is None:
        off = sp.Rational(-1, tokens - 1)
        return sp.Matrix(tokens, tokens, lambda i, j: 1 if i == j else off)
    gram = sp.Matrix(positions)
    if gram.shape != (tokens, tokens) or gram != gram.T:
        raise ModelError(
            f"attention: positions must be the symmetric {tokens} x {tokens} Gram matrix of the "
            f"positional vectors, not a matrix of shape {gram.shape}"
        )
    return gram


def _fixed_values(values, symbol) -> dict[sp.Symbol, sp.Expr]:
    fixed = {}
    for name, value in values.items():
        key = name.rstrip("_")
        if key not in symbol:
            raise ModelError(f"attention has no parameter {name!r}; it has: {', '.join(symbol)}")
        number = sp.nsimplify(value, rational=True) if isinstance(value, float) else value
        number = sp.sympify(number)
        if number == symbol[key]:
            continue
        if number.is_number:
            p = PARAMETERS[key]
            if not (p.low <= number <= p.high) or (p.low_open and number == p.low):
                raise ModelError(f"attention: {key} = {value} is outside [{p.low}, {p.high}]")
        fixed[symbol[key]] = number
    return fixed


def _linear_baseline(target, gamma, source):
    """The best linear map f(x) = B x that may depend on the position, and its error."""
    n = target.shape[0]
    B = sp.Matrix(n, n, lambda i, j: sp.Symbol(f"B{i + 1}{j + 1}"))
    error = sum(
        gamma[j] / 2 * (source(target[i, j] ** 2) - 2 * B[i, j] * source(target[i, j])
                        + B[i, j] ** 2)
        for i, j in itertools.product(range(n), repeat=2)
    )  # fmt: skip
    # the error is quadratic in each entry, so its slope is linear
    best = {b: -error.diff(b).xreplace({b: sp.S.Zero}) / error.diff(b, 2) for b in B.free_symbols}
    return B.xreplace(best), error.xreplace(best)


def _allowed(ansatz: Ansatz, fixed) -> bool:
    return all(fixed.get(a, a) == fixed.get(b, b) or not ({a, b} & set(fixed))
               for a, b in ansatz.requires.items())  # fmt: skip


def _with_fixed(ansatz: Ansatz, fixed) -> Ansatz:
    kept = {a: b for a, b in ansatz.requires.items() if a not in fixed}
    return Ansatz(ansatz.name, ansatz.substitution, ansatz.symmetries, kept, ansatz.description)


def _exchange(op: OrderParameters, symbol) -> Ansatz | None:
    """Both tokens alike up to the sign of their positional vector."""
    if op.tokens != 2 or op.rank != 1 or op.teacher_rank != 1:
        return None
    pairs = [(v[0], v[1]) for v in (op.fields, op.minimisers, op.sources)]
    swap = {x: -y for a, b in pairs for x, y in ((a, b), (b, a))}
    return Ansatz(
        "exchange",
        {**op.tied(hats=False, antipodal=True), **op.tied(hats=True, antipodal=True)},
        [Symmetry("token exchange", swap)],
        {symbol["A22"]: symbol["A11"]},
        "the tokens are exchangeable, since p_1 = -p_2 and the rows of A are mirror images",
    )


def _isotropic(op: OrderParameters, antipodal: bool) -> Ansatz:
    """Equal covariances: Q^T Q / d is one matrix, whatever the token. No symmetry is needed."""
    return Ansatz(
        "isotropic",
        op.tied(hats=False, antipodal=antipodal),
        description="the tokens have one covariance, so that their order parameters coincide "
        "(their conjugates do not)",
    )


def _branches(op: OrderParameters) -> dict[str, Ansatz]:
    """Families told apart by the reflections that leave them.

    A rotation of the student's columns (and of the teacher's) changes nothing, so that each family
    is an orbit: a state of it has the positions in one column, and the teacher's directions in one
    column each.
    """
    r, t = op.rank, op.teacher_rank
    every = range(max(r, t))
    m, theta = op.every("m", hats=False), op.every("theta", hats=False)
    teacher = [_flip(op, (), [j]) for j in range(t)]
    both = [_flip(op, [i], [i]) for i in every]
    rest = [_flip(op, [i], ()) for i in range(1, r)]
    found = {
        "positional": Ansatz("positional", _odd(op, [*teacher, *rest]), [*teacher, *rest],
                             description="overlap with the positions only", nonzero=m),
        "semantic": Ansatz("semantic", _odd(op, both), both,
                           description="overlap with the teacher only", nonzero=theta),
        "agnostic": Ansatz("agnostic", _odd(op, [*teacher, *both]), [*teacher, *both],
                           description="no overlap"),
        "mixed": Ansatz("mixed", _odd(op, both[1:]), both[1:],
                        description="both overlaps, the positions in the first column",
                        nonzero=(*m, *theta)),
    }  # fmt: skip
    if r > t:
        apart = [*both[: r - 1], *both[r:]]
        found["separate"] = Ansatz(
            "separate", _odd(op, apart), apart,
            description="the positions in the last column, the teacher in others",
            nonzero=(*m, *theta),
        )  # fmt: skip
    return {k: _alive(a) for k, a in found.items()}


def _alive(ansatz: Ansatz) -> Ansatz:
    """Without those among the characteristic order parameters that vanish."""
    nonzero = [x for x in ansatz.nonzero if x not in ansatz.substitution]
    return dataclasses.replace(ansatz, nonzero=nonzero)


def _flip(op: OrderParameters, columns: Sequence[int], directions: Sequence[int]) -> Symmetry:
    """Sign change of columns of the student and of directions of the teacher."""
    r, t = op.rank, op.teacher_rank
    student = [v[k * r + i] for v in (op.fields, op.minimisers) for k in range(op.tokens)
               for i in columns if i < r]  # fmt: skip
    source = [op.sources[k * t + j] for k in range(op.tokens) for j in directions if j < t]
    words = ["student"] * bool(student) + ["teacher"] * bool(source)
    where = f" {(*columns, *directions)[0] + 1}" if max(r, t) > 1 else ""
    return Symmetry(f"sign of {' and '.join(words)}{where}", {x: -x for x in (*student, *source)})


def _odd(op: OrderParameters, flips: Sequence[Symmetry]) -> dict[sp.Symbol, sp.Expr]:
    """Order parameters (and conjugates) that change sign under one of ``flips``."""
    vanish = {}
    for flip in flips:
        sign = [[-1 if x in flip.mapping else 1 for x in v[:n]]
                for v, n in ((op.fields, op.rank), (op.sources, op.teacher_rank))]  # fmt: skip
        pairs = {"q": (0, 0), "V": (0, 0), "theta": (0, 1)}
        for kind, hat in itertools.product(op.kinds, ("", "hat")):
            for matrix in [*op.matrices[kind + hat], op.shared(kind, hat)]:
                for i, j in itertools.product(*map(range, matrix.shape)):
                    a, b = pairs.get(kind, (0, None))
                    if sign[a][i] * (1 if b is None else sign[b][j]) < 0:
                        vanish[matrix[i, j]] = sp.S.Zero
    return vanish


def _starts(op: OrderParameters, gram, sigma, ridge) -> dict[str, dict[sp.Symbol, sp.Expr]]:
    """Typical magnitudes on each branch, scaled with sigma."""
    size = {"q": sigma**2 / 4, "V": 12 + 0 * ridge, "m": sp.Rational(1, 4), "theta": sigma**2 / 2}
    size["semantic q"] = 2 * sigma**2 / 5
    r, t = op.rank, op.teacher_rank
    # overlap of each token's position with the difference of the first two
    along = [(gram[k, 0] - gram[k, 1]) / 2 for k in range(op.tokens)]

    def start(column: int | None, theta: int):
        values = {}
        for kind in ("q", "V", "m", "theta"):
            value = size["semantic q"] if kind == "q" and theta else size[kind]
            for k, matrix in [*enumerate(op.matrices[kind]), (0, op.shared(kind))]:
                for i, j in itertools.product(*map(range, matrix.shape)):
                    factor = {"m": along[k] if i == column else 0,
                              "theta": theta * (i == j)}.get(kind, int(i == j))  # fmt: skip
                    values[matrix[i, j]] = factor * value
        return values

    found = {"positional": start(0, 0), "semantic": start(None, 1), "agnostic": start(None, 0),
             "mixed": start(0, 1)}  # fmt: skip
    return found | ({"separate": start(r - 1, 1)} if r > t else {})


def _plan(op: OrderParameters, equal: bool):
    if equal and (op.tokens, op.rank, op.teacher_rank) == (2, 1, 1):
        s = 1 / sp.sqrt(2)
        pair = {k: (v[0], v[1]) for k, v in
                {"W": op.fields, "H": op.minimisers, "Z": op.sources}.items()}  # fmt: skip
        return PlanarPlan(pair["W"], pair["H"], pair["Z"], sp.Matrix([[s, -s], [s, s]]))
    mirrored = []
    if op.rank == op.teacher_rank:
        mirrored = [list(op.sources), [-z for z in op.sources]]
    return SamplePlan([[-w for w in op.fields], *mirrored])
