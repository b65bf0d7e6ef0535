"""Free energy of a low-rank layer trained with ridge regularisation: the generic skeleton.

Any loss of the fields ``H_l = Q^T(x_l + p_l)/sqrt(d)`` of the student and ``Z_l`` of the teacher
leads to the same energetic (Moreau) and entropic parts; see docs/notation.md for normalisations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import sympy as sp

from theory.nodes import GaussianExpectation, Moreau
from theory.nodes.moreau import at_proximal


class OrderParameters:
    """Symbols per token: q, V (r x r, symmetric), m (r), theta (r x t), conjugates and fields."""

    kinds = ("q", "V", "m", "theta")

    def __init__(self, tokens: int, rank: int, teacher_rank: int):
        self.tokens, self.rank, self.teacher_rank = tokens, rank, teacher_rank
        shapes = {
            "q": (rank, rank),
            "V": (rank, rank),
            "m": (rank, 1),
            "theta": (rank, teacher_rank),
        }
        self.matrices = {
            kind + hat: [self._matrix(kind, hat, shapes[kind], str(k + 1)) for k in range(tokens)]
            for kind in self.kinds
            for hat in ("", "hat")
        }
        self.H = [self._vector("H", k, rank) for k in range(tokens)]
        self.W = [self._vector("W", k, rank) for k in range(tokens)]
        self.Z = [self._vector("Z", k, teacher_rank) for k in range(tokens)]
        self.minimisers, self.fields, self.sources = (
            [x for vector in group for x in vector] for group in (self.H, self.W, self.Z)
        )

    def _matrix(self, kind, hat, shape, token):
        """Entries named q_1 (one entry), or q_1_12 (a matrix), or q / q_12 without a token."""
        symmetric = kind in ("q", "V")
        rows, columns = shape

        def entry(i, j):
            i, j = (min(i, j), max(i, j)) if symmetric else (i, j)
            where = (
                "" if rows == columns == 1 else f"{i + 1}" if columns == 1 else f"{i + 1}{j + 1}"
            )
            suffix = "".join(f"_{s}" for s in (token, where) if s)
            positive = symmetric and i == j and not hat
            name = f"{kind}{hat}{suffix}"
            return sp.Symbol(name, positive=True) if positive else sp.Symbol(name, real=True)

        return sp.Matrix(rows, columns, entry)

    def _vector(self, kind, token, size):
        names = [f"{kind}{token + 1}" if size == 1 else f"{kind}{token + 1}{i + 1}"
                 for i in range(size)]  # fmt: skip
        return sp.Matrix([sp.Symbol(n, real=True) for n in names])

    def shared(self, kind: str, hat: str = "") -> sp.Matrix:
        """The same matrix without a token index."""
        return self._matrix(kind, hat, self.matrices[kind][0].shape, "")

    def every(self, kind: str, hats: bool = True) -> list[sp.Symbol]:
        """All symbols of a kind: per token and shared, with their conjugates on request."""
        found = []
        for hat in ("", "hat") if hats else ("",):
            for matrix in [*self.matrices[kind + hat], self.shared(kind, hat)]:
                found += list(matrix)
        return list(dict.fromkeys(found))

    @property
    def orders(self) -> list[sp.Symbol]:
        return self._flat("")

    @property
    def conjugates(self) -> list[sp.Symbol]:
        return self._flat("hat")

    def _flat(self, hat):
        symbols = [x for kind in self.kinds for m in self.matrices[kind + hat] for x in m]
        return list(dict.fromkeys(symbols))

    def orientation(self, x: sp.Symbol) -> int:
        """-1 for a component whose sign is opposite to that of the first token (the m's)."""
        return -1 if x in self.matrices["m"][-1] and self.tokens == 2 else 1

    def tied(self, *, hats: bool, antipodal: bool) -> dict[sp.Symbol, sp.Expr]:
        """Substitution that makes the tokens share their order parameters (or conjugates)."""
        image, hat = {}, "hat" if hats else ""
        for kind in self.kinds:
            if kind == "m" and not antipodal:
                continue
            for matrix in self.matrices[kind + hat]:
                for x, y in zip(matrix, self.shared(kind, hat), strict=True):
                    image[x] = y * (self.orientation(x) if not hats else self._hat_sign(x))
        return image

    def _hat_sign(self, x):
        return -1 if x in self.matrices["mhat"][-1] else 1


class LowRankLayer:
    """Replica-symmetric free energy at zero temperature.

    Parameters
    ----------
    op : OrderParameters
    loss : Expr
        Function of ``op.H`` and ``op.Z``.
    gamma : sequence of Expr
        Variance of the entries of each token (isotropic covariances).
    gram : Matrix
        ``p_k . p_l``.
    alpha, ridge : Symbol
        n/d and the ridge penalty lambda.
    """

    def __init__(self, op, loss, gamma: Sequence[sp.Expr], gram: sp.Matrix, alpha, ridge):
        self.op, self.loss, self.gamma, self.gram = op, loss, gamma, gram
        self.alpha, self.ridge = alpha, ridge
        response = sp.diag(*op.matrices["V"])
        self.moreau = Moreau(loss, op.minimisers, op.fields, response)
        self.measure = self._measure()
        self.free_energy = self.alpha * self.measure(self.moreau) + self._trace() + self._entropic()

    def _measure(self) -> Callable[[sp.Expr], sp.Expr]:
        """Fields W and Z: mean (m, 0), covariance [[q, theta], [theta^T, rho]] token by token."""
        op = self.op
        r, t = op.rank, op.teacher_rank
        q, theta = op.matrices["q"], op.matrices["theta"]
        cov = sp.diag(
            sp.diag(*q), *(self.gamma[k] * sp.eye(t) for k in range(op.tokens))
        ).as_mutable()
        for k in range(op.tokens):
            w, z = k * r, op.tokens * r + k * t
            cov[w : w + r, z : z + t] = theta[k]
            cov[z : z + t, w : w + r] = theta[k].T
        mean = [x for m in op.matrices["m"] for x in m] + [0] * (op.tokens * t)
        variables = [*op.fields, *op.sources]
        return lambda f: GaussianExpectation(f, variables, mean, cov)

    def source_measure(self) -> Callable[[sp.Expr], sp.Expr]:
        """The teacher's fields alone."""
        op, t = self.op, self.op.teacher_rank
        cov = sp.diag(*(g * sp.eye(t) for g in self.gamma))
        return lambda f: GaussianExpectation(f, op.sources, [0] * len(op.sources), cov)

    def _trace(self):
        M = self.op.matrices
        return sum(
            ((M["qhat"][k] * M["V"][k] - M["Vhat"][k] * M["q"][k]).trace()) / 2
            + (M["mhat"][k].T * M["m"][k])[0]
            + (M["thetahat"][k] * M["theta"][k].T).trace()
            for k in range(self.op.tokens)
        )

    def _entropic(self):
        """Average over the joint law of spectrum, positions and teacher (isotropic case)."""
        op, M, g, P = self.op, self.op.matrices, self.gamma, self.gram
        n = range(op.tokens)
        resolvent = self.ridge * sp.eye(op.rank) + sum(
            (g[k] * M["Vhat"][k] for k in n), sp.zeros(op.rank)
        )
        inverse = resolvent.adjugate() / resolvent.det()
        source = sum((g[k] * M["qhat"][k] for k in n), sp.zeros(op.rank))
        for k, j in itertools.product(n, repeat=2):
            source += P[k, j] * M["mhat"][k] * M["mhat"][j].T
            source += g[k] * g[j] * M["thetahat"][k] * M["thetahat"][j].T
        return -(inverse * source).trace() / 2

    def domain(self) -> list[sp.Expr]:
        """V > 0 and positive definite covariance of (W, Z), token by token."""
        positive = []
        for k in range(self.op.tokens):
            q, V, theta = (self.op.matrices[kind][k] for kind in ("q", "V", "theta"))
            schur = q - theta * theta.T / self.gamma[k]
            for matrix in (V, schur):
                positive += [matrix[:j, :j].det() for j in range(1, self.op.rank + 1)]
        return positive

    def scales(self) -> dict[sp.Symbol, sp.Expr]:
        """Natural magnitudes: fields of the size of the teacher's."""
        M, scales = self.op.matrices, {}
        for k in range(self.op.tokens):
            size = {"q": self.gamma[k] / 10, "V": sp.Integer(1), "m": sp.Rational(1, 10),
                    "theta": self.gamma[k] / 10}  # fmt: skip
            scales |= {x: size[kind] for kind in self.op.kinds for x in M[kind][k]}
        return scales

    def diagnostics(self) -> dict[str, sp.Expr]:
        """Replicon, and how much of the response the jumps of the proximal point carry.

        The smooth part of the stability condition of replica symmetry is replicon < 1; it is
        formally violated where the jumps take back a part of Vhat, the share `jump_measure` of its
        smooth part. For rank one and at most three tokens.
        """
        op, n = self.op, range(self.op.tokens)
        if op.rank != 1 or op.tokens > 3:
            return {}
        V, hats = [op.matrices["V"][k][0] for k in n], op.matrices["Vhat"]
        square = sum(V[i] * V[j] * self.moreau.slope(i, j) ** 2 for i in n for j in n)
        smooth = sum(g * self.moreau.slope(k, k) for k, g in enumerate(self.gamma))
        total = sum(g * hat[0] for g, hat in zip(self.gamma, hats, strict=True))
        return {
            "replicon": self.alpha * self.measure(square),
            "jump_measure": 1 + total / (self.alpha * self.measure(smooth)),
        }

    def observables(self) -> dict[str, sp.Expr]:
        """Parts of the training energy, and the test error (loss at the bare field)."""
        bare = dict(zip(self.op.minimisers, self.op.fields, strict=True))
        norm = 2 * self._entropic().diff(self.ridge)
        return {
            "test_error": self.measure(self.loss.xreplace(bare)),
            "training_loss": self.alpha * self.measure(at_proximal(self.loss, self.moreau)),
            "regulariser": self.ridge * norm / 2,
            "norm": norm,
        }
