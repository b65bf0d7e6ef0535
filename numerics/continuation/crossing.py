"""Where the energies of two branches cross: the first-order transition.

The slope of the difference is known at every point without differencing (envelope theorem), so
Newton in the parameter takes a few steps. States need only be good to 1e-3 for energies good to
1e-6: the search is cheap, only its end is accurate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from numerics.branches import PATIENCE, locate
from numerics.continuation.branch import Branch
from numerics.continuation.follow import follow
from numerics.continuation.meetings import apart, meetings, nearest
from numerics.continuation.tracer import Settings
from numerics.continuation.transition import Transition
from numerics.protocol import ProblemLike, check_move
from numerics.solvers import Solution, belongs, solve
from numerics.solvers.derivatives import differentiable
from numerics.status import Status
from theory.errors import ParameterError
from theory.joint import Name, joint, moved, slope, value_of, without

SEARCH, CLOSE = 4e-4, 4e-5  # accuracy and tolerance while searching
WALK = Settings(step=0.1, longest=0.4, angle=0.4, shortest=1e-3, max_points=80)


class _Pair:
    """Two branches at the same parameter value."""

    def __init__(self, problems, params, parameter, known):
        self.problems: tuple[ProblemLike, ProblemLike] = problems
        self.params, self.parameter = dict(params), parameter
        self.states: list[Solution | None] = [None, None]
        names = [p.branch or f"branch {i + 1}" for i, p in enumerate(problems)]
        twice = names[0] == names[1]
        self.names = tuple(f"{n} {i + 1}" if twice else n for i, n in enumerate(names))
        self.known: tuple[Solution | None, Solution | None] = known
        self.scanned: list[tuple[float, float]] = []
        self.slopes: list[tuple[float, float]] = []
        self.spent = 0

    def at(self, value: float, accuracy: float, *, refine=False, carry=False) -> bool:
        """Solve both; False if one of them does not exist here."""
        params = moved(self.params, self.parameter, value)
        new: list[Solution | None] = []
        for problem, last, known in zip(self.problems, self.states, self.known, strict=True):
            solution = None
            last = known if last is None else last
            if last is not None and problem.in_domain(last.x, params):
                solution = solve(
                    problem, params, last, accuracy=accuracy, tolerance=min(accuracy, CLOSE),
                    refine=refine, raise_on_failure=False,
                )  # fmt: skip
            if solution is None or not belongs(solution):
                solution = locate(problem, params, accuracy=accuracy, refine=refine, carry=carry,
                                  raise_on_failure=False)  # fmt: skip
            self.spent += solution.evaluations
            new.append(solution if belongs(solution) else None)
        found = all(s is not None for s in new)
        if found:
            self.states = new
            self.scanned.append((value, self.difference))
            self.slopes.append((value, self.slope))
        self.latest = new
        return found

    @property
    def difference(self) -> float:
        a, b = self.both
        return a.energy - b.energy

    @property
    def slope(self) -> float:
        a, b = self.both
        return slope(a.gradient, self.parameter) - slope(b.gradient, self.parameter)

    @property
    def error(self) -> float:
        a, b = self.both
        return a.energy_error + b.energy_error

    @property
    def merged(self) -> bool:
        """Whether the two states are one within their errors: equal energies mean nothing then."""
        a, b = self.both
        names = {*a.state, *b.state}
        return all(
            abs(a.state.get(k, 0.0) - b.state.get(k, 0.0))
            <= 2 * (a.errors.get(k, 0.0) + b.errors.get(k, 0.0))
            for k in names
        )

    def touching(self, here: float, noise: float) -> bool:
        """Whether the energies may touch within ``noise`` of here (a double root), not cross."""
        return any(
            abs(self.slope - slope) * noise > 0.25 * abs(self.slope) * abs(value - here)
            for value, slope in self.slopes
            if abs(value - here) > noise
        )

    @property
    def both(self) -> tuple[Solution, Solution]:
        a, b = self.states
        assert a is not None and b is not None
        return a, b


def crossing(
    a: ProblemLike | Branch,
    b: ProblemLike | Branch,
    params: Mapping[str, float] | None = None,
    parameter: Name = "alpha",
    span: tuple[float, float] = (0.3, 10.0),
    *,
    start_a: Solution | None = None,
    start_b: Solution | None = None,
    accuracy: float = 1e-7,
    guess: float | None = None,
    max_steps: int = 30,
    callback: Callable[[dict], Any] | None = None,
) -> Transition:
    """Find where the energies of two branches are equal.

    Parameters
    ----------
    a, b : two Branch or two Problem
        Two branches that have been followed (then the parameters are theirs, and the arguments up
        to ``start_b`` are not needed), or two compiled branches of one model.
    params : mapping
        The other parameters.
    parameter : str
    span : (low, high)
        Range searched; nothing outside is looked at.
    start_a, start_b : Solution, optional
        States to start from.
    accuracy : float
        Relative accuracy of the expectations at the end; the search itself is cheaper.
    guess : float, optional
        Where to start; by default the value in ``params`` or the middle.
    callback : callable, optional
        Called with a dict at each step.

    Returns
    -------
    Transition
        With status CONVERGED, or NO_CROSSING / LOWER_FROM_BIRTH / BRANCH_LOST / CRITICAL_END (the
        branches merge, and equal energies are no crossing) and a message that
        says what was found over the range. The error bar is the quadrature error of both energies
        divided by the slope difference, plus the last Newton step left undone.
    """
    if isinstance(a, Branch) or isinstance(b, Branch):
        if not (isinstance(a, Branch) and isinstance(b, Branch)):
            raise ParameterError("a crossing needs two branches or two problems, not one of each")
        return _between(a, b, accuracy, callback)
    parameter = joint(parameter)
    values = a.values(params)
    for problem in (a, b):
        check_move(problem, values, parameter, span)
    pair = _Pair((a, b), values, parameter, (start_a, start_b))
    low, high = span
    if guess is None and start_a is not None:
        guess = value_of(start_a.params, parameter)

    def tell(stage, **numbers):
        if callback is not None:
            callback({"stage": stage, **numbers})

    here = guess if guess is not None else value_of(values, parameter, math.nan)
    if not low <= here <= high:
        here = math.sqrt(low * high) if low > 0 else 0.5 * (low + high)
    found = _newton_search(pair, here, span, max_steps, tell)
    if found is None:
        found = _followed(pair, span, callback or (lambda news: None))
    if found is None:
        return _absent(pair, span)
    return _polish(pair, found, span, accuracy, tell)


def _between(a: Branch, b: Branch, accuracy: float, callback) -> Transition:
    """Crossing of two branches that have been followed; stable stretches come first."""
    if a.parameter != b.parameter or a.problem is None or b.problem is None or not (a and b):
        raise ParameterError("a crossing needs two branches in one parameter, with their problems")
    low = max(min(a.values), min(b.values))
    high = min(max(a.values), max(b.values))
    if not low < high:
        raise ParameterError(f"the branches do not overlap in {a.parameter}")
    pairs = [((a, *s), (b, *t)) for s in a.stretches() for t in b.stretches()]
    found = []
    for one, other in pairs:
        for value in meetings(one, other):
            states = nearest(one, value), nearest(other, value)
            growing = sum(br.unstable[br.points.index(s)] for (br, _, _), s in
                          zip((one, other), states, strict=True))  # fmt: skip
            found.append((growing, value, states))
    for _, value, states in sorted(found, key=lambda f: f[:2]):
        params = moved(a.params, a.parameter, value)
        answer = crossing(
            a.problem, b.problem, params, a.parameter, (low, high), start_a=states[0],
            start_b=states[1], guess=value, accuracy=accuracy, callback=callback,
        )  # fmt: skip
        if answer.status is Status.CONVERGED:
            return answer
    start = moved(a.params, a.parameter, low)
    pair = _Pair((a.problem, b.problem), start, a.parameter, (None, None))
    for one, other in pairs:
        pair.scanned += apart(one, other)
    return _absent(pair, (low, high))


def _newton_search(pair: _Pair, here, span, max_steps, tell) -> float | None:
    """Newton with limited steps at low accuracy; None if it leaves the range or loses a branch."""
    low, high = span
    longest = 0.35 * (high - low) if low <= 0 else None
    for _ in range(max_steps):
        if not pair.at(here, SEARCH, carry=not pair.scanned):
            return None
        tell("searching", **{pair.parameter: here, "energy difference": pair.difference})
        if not pair.slope:
            return None
        step = -pair.difference / pair.slope
        limit = longest if longest is not None else 0.4 * here
        step = float(np.clip(step, -limit, limit))
        if not math.isfinite(step):
            return None
        if abs(step) <= 1e-4 * max(abs(here), 0.01 * (high - low)):
            return here + step if low <= here + step <= high else None
        if here in span and (here + step - here) * (1 if here == high else -1) > 0:
            return None  # pushed out through the same end twice
        here = float(np.clip(here + step, low, high))
    return None


def _followed(pair: _Pair, span, tell) -> float | None:
    """Follow both branches as far as they exist, and see where their energies meet."""
    stretches, states = [], []
    for k in (0, 1):
        state = pair.states[k] or pair.known[k]
        known = state is not None and belongs(state)
        states.append(state if known else _anywhere(pair, k, span, tell))
    pair.latest = states
    if None in states:
        return None
    for problem, state in zip(pair.problems, states, strict=True):
        branch = follow(
            problem, state, pair.parameter, span, both=True, stability=False,
            accuracy=None if differentiable(problem) else SEARCH, settings=WALK, callback=tell,
        )  # fmt: skip
        stretches.append([(branch, *s) for s in branch.stretches()])
        pair.spent += sum(p.evaluations for p in branch.points)
    found = []
    for one, other in itertools.product(*stretches):
        pair.scanned += apart(one, other)
        found += [(v, nearest(one, v), nearest(other, v)) for v in meetings(one, other)]
    if not found:
        return None
    value, *pair.states = min(found, key=lambda f: f[0])
    return value


def _anywhere(pair: _Pair, k: int, span, tell, points: int = 16) -> Solution | None:
    """A state of one branch at some value in the range."""
    low, high = span
    grid = np.geomspace(low, high, points) if low > 0 else np.linspace(low, high, points)
    middle = np.argsort(np.abs(np.arange(points) - points // 2), kind="stable")
    for n, value in enumerate(grid[middle]):
        tell({"stage": f"looking for {pair.names[k]}", "fraction": n / points,
              pair.parameter: float(value)})  # fmt: skip
        state = solve(
            pair.problems[k], moved(pair.params, pair.parameter, float(value)), accuracy=SEARCH,
            refine=False, method="newton", max_steps=PATIENCE, raise_on_failure=False,
        )  # fmt: skip
        if belongs(state):
            return state
    return None


def _polish(pair: _Pair, here: float, span, accuracy: float, tell) -> Transition:
    """Newton at full accuracy; the step left undone is part of the error."""
    status, step, noise = Status.MAX_STEPS, math.inf, math.inf
    between = math.sqrt(CLOSE * accuracy)
    if accuracy < between and pair.at(here, between) and pair.slope:
        here = float(np.clip(here - pair.difference / pair.slope, *span))
    for _ in range(8):
        if not pair.at(here, accuracy, refine=True):
            return _result(pair, here, math.inf, Status.BRANCH_LOST,
                           "a branch was lost while polishing")  # fmt: skip
        tell("polishing", **{pair.parameter: here, "energy difference": pair.difference})
        step = -pair.difference / pair.slope if pair.slope else math.nan
        noise = pair.error / abs(pair.slope) if pair.slope else math.inf
        if not math.isfinite(step):
            status = Status.NON_FINITE
            break
        if abs(step) <= max(0.2 * noise, 1e-12 * abs(here)):
            status = Status.CRITICAL_END if pair.touching(here, noise) else Status.CONVERGED
            break
        here += step
        if not span[0] <= here <= span[1]:
            return _absent(pair, span)
    if not span[0] <= here <= span[1]:
        return _absent(pair, span)
    a, b = pair.both
    if status is Status.CONVERGED and not (a.status.success and b.status.success):
        status = Status.ACCURACY_NOT_REACHED
    error = noise + abs(step)
    if status is Status.CONVERGED and pair.merged:
        status = Status.CRITICAL_END
    elif status is Status.CONVERGED and not math.isfinite(error):
        status = Status.ACCURACY_NOT_REACHED
    return _result(pair, here, error, status, status.message())


def _result(pair: _Pair, value, error, status, message) -> Transition:
    others = without(pair.params, pair.parameter)
    states = {n: s for n, s in zip(pair.names, pair.states, strict=True) if s is not None}
    known = len(states) == 2
    return Transition(
        kind="first-order", parameter=pair.parameter, value=value, error=error,
        interval=(value - error, value + error), status=status, states=states,
        residual=pair.difference if known else math.nan,
        slope=pair.slope if known else math.nan,
        message=message, params=others, scanned=sorted(pair.scanned), evaluations=pair.spent,
        problems=pair.problems,
    )  # fmt: skip


def _absent(pair: _Pair, span) -> Transition:
    """No crossing: say what was seen."""
    a, b = pair.names
    where = f"{pair.parameter} in [{span[0]:g}, {span[1]:g}]"
    if not pair.scanned:
        latest = getattr(pair, "latest", (None, None))
        missing = [n for n, s in zip(pair.names, latest, strict=True) if s is None]
        text = f"no crossing: {' and '.join(missing or pair.names)} not found anywhere for {where}"
        return _result(pair, math.nan, math.nan, Status.BRANCH_LOST, text)
    first, last = min(pair.scanned)[0], max(pair.scanned)[0]
    lower = a if pair.scanned[-1][1] < 0 else b
    text = f"no crossing for {where}: {lower} is lower at all {len(pair.scanned)} points compared"
    status = Status.NO_CROSSING
    if first > span[0] * 1.001 + 1e-12 or last < span[1] * 0.999:
        status = Status.LOWER_FROM_BIRTH
        text += f"; both branches exist only from {first:.4g} to {last:.4g}"
    return _result(pair, math.nan, math.nan, status, text)
