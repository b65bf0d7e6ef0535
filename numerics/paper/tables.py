"""Values of the transitions beside the paper's, and the comparison with gradient descent."""

from __future__ import annotations

import statistics

from numerics.branches import compiled
from numerics.continuation import root
from numerics.continuation.root import difference_of
from numerics.first_order import find_transition
from numerics.paper.data import QUANTITIES, compare, read_measured
from numerics.paper.options import Options
from numerics.paper.report import Report
from theory.errors import DataError
from theory.models import get

# as printed in the paper
ALPHA_C = {0.0: 0.548, 0.1: 0.707, 0.15: 0.818, 0.2: 0.928, 0.25: 1.06, 0.3: 1.241, 0.35: 1.454,
           0.4: 1.751, 0.425: 1.939}  # fmt: skip
ALPHA_L = {0.0: 0.722, 0.05: 0.765, 0.1: 0.851, 0.2: 1.071, 0.3: 1.451, 0.35: 1.750,
           0.38: 1.993}  # fmt: skip


def alpha_c(options: Options) -> Report:
    """Where the energies of the positional and the semantic branch cross."""

    def find(omega):
        return find_transition(get("attention"), {"omega": omega}, accuracy=_accuracy(options),
                               callback=options.progress)  # fmt: skip

    return _transitions("alpha_c", ALPHA_C, find, options)


def alpha_l(options: Options) -> Report:
    """Where the semantic branch's test error falls below that of the best linear map."""
    semantic = compiled(get("attention"), "semantic")

    def find(omega):
        return root(semantic, difference_of("test_error", "baseline_error"), {"omega": omega},
                    "alpha", (0.5, 3.0), accuracy=_accuracy(options),
                    callback=options.progress)  # fmt: skip

    return _transitions("alpha_l", ALPHA_L, find, options)


def _accuracy(options: Options) -> float:
    return 1e-4 if options.quick else 1e-6


def _transitions(name: str, paper: dict[float, float], find, options: Options) -> Report:
    rows, data = [], []
    for omega, theirs in paper.items():
        if options.quick and omega not in (0.3, 0.35):
            continue
        found = find(omega)
        kinds = " / ".join(s.kind for s in found.states.values())
        share = theirs / found.value - 1
        rows.append([f"{omega:g}", f"{found.value:.6f}", f"{found.error:.1e}", f"{theirs:g}",
                     f"{100 * share:+.1f} %", kinds, found.status.name.lower()])  # fmt: skip
        data.append({"omega": omega, name: found.value, "error": found.error, "paper": theirs,
                     "status": found.status.name.lower()})  # fmt: skip
    columns = ("omega", name, "error", "paper", "paper - ours", "states", "status")
    return Report(f"{name} beside the paper's", columns, rows, data)


def data(options: Options) -> Report:
    """z-scores of the theory against gradient descent: median and largest of |z| by quantity."""
    if options.data is None:
        raise DataError("this table needs the authors' means: --data NAME_mean.csv")
    kept = [r for r in read_measured(options.data) if r.params["alpha"] >= 1.25]
    if options.quick:
        kept = kept[::5]
    groups: dict[tuple[float, str], list] = {}
    options.tell("comparing")
    for found in compare(kept):
        groups.setdefault((found[0].params["omega"], found[0].branch), []).append(found)
    rows, numbers = [], []
    for (omega, branch), found in sorted(groups.items()):
        cells, record = [], {"omega": omega, "branch": branch, "rows": len(found)}
        for name in QUANTITIES:
            scores = [z[name] for _, _, z in found if name in z]
            if not scores:
                cells.append("-")
                continue
            sizes = [abs(z) for z in scores]
            middle, most = statistics.median(sizes), max(sizes)
            record[name] = {"mean": statistics.fmean(scores), "median": middle, "max": most}
            cells.append(f"{middle:.1f} / {most:.1f}")
        rows.append([f"{omega:g}", branch, str(len(found)), *cells])
        numbers.append(record)
    columns = ("omega", "branch", "rows", *QUANTITIES)
    return Report("median / largest |z| for alpha >= 1.25", columns, rows, numbers)
