"""A compiled problem as bytes: what a process needs that has neither the model nor SymPy's help."""

from __future__ import annotations

import hashlib
import pickle
import threading
import zlib
from dataclasses import dataclass

from numerics.problem import Problem
from theory.errors import DerivationError, ModelError
from theory.free_energy import Ansatz, FreeEnergy
from theory.system import SaddlePointSystem


@dataclass(frozen=True)
class Portable:
    """A problem's generated text and declarations, packed.

    The expressions stay behind: whatever a model's file defines, nothing of it is imported or
    derived where this is unpacked, and the code is loaded from the cache of that machine.
    """

    digest: str
    data: bytes


def pack(problem: Problem) -> Portable:
    """The problem as bytes.

    Raises
    ------
    ModelError
        If the model's declarations hold objects that cannot be pickled.
    """
    model = problem.model
    declared = FreeEnergy(
        sum(model.unknowns[1:], model.unknowns[0]),  # stands for the expression
        model.unknowns,
        model.parameters,
        reductions=[_bare(a) for a in model.reductions],
        branches={name: _bare(a) for name, a in model.branches.items()},
        mirrors=model.mirrors,
        name=model.name,
    )
    try:
        data = zlib.compress(pickle.dumps((declared, problem.source, problem.branch)))
    except Exception as error:
        raise ModelError(f"{model.name} cannot be sent to other processes: {error}") from error
    return Portable(hashlib.sha256(data).hexdigest(), data)


def _bare(ansatz: Ansatz) -> Ansatz:
    return Ansatz(ansatz.name, dict(ansatz.substitution), (), dict(ansatz.requires), "",
                  tuple(ansatz.nonzero))  # fmt: skip


_loading = threading.Lock()
_own = threading.local()


def unpack(portable: Portable) -> Problem:
    """The problem, loaded once in each thread (it remembers integrals, so none is shared)."""
    known: dict[str, Problem] = _own.__dict__.setdefault("problems", {})
    if portable.digest not in known:
        declared, source, branch = pickle.loads(zlib.decompress(portable.data))
        with _loading:
            known[portable.digest] = Problem(declared, source, _no_system, branch=branch)
    return known[portable.digest]


def _no_system() -> SaddlePointSystem:
    raise DerivationError("a problem sent to a worker has its code only; derive it from the model")
