"""One enumeration of every outcome, each with a message that says what to do next."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Outcome of a solve, a continuation or a search for a transition."""

    CONVERGED = 0
    REACHED_BOUND = 1
    ACCURACY_NOT_REACHED = 10
    STALLED = 11
    MAX_STEPS = 12
    LEFT_DOMAIN = 13
    NON_FINITE = 14
    SINGULAR = 15
    STEP_TOO_SMALL = 20
    BRANCH_LOST = 21
    WRONG_BRANCH = 22
    CLOSED_LOOP = 23
    CRITICAL_END = 24
    SPINODAL_END = 25
    TRICRITICAL_END = 26
    MIRRORED = 27
    BICRITICAL_END = 28
    MERGED = 29
    UNFOLDED = 32
    NO_CROSSING = 30
    LOWER_FROM_BIRTH = 31
    USER_STOP = 40

    @property
    def success(self) -> bool:
        """Whether the result is what was asked for."""
        return self in (
            Status.CONVERGED, Status.REACHED_BOUND, Status.CLOSED_LOOP, Status.MIRRORED,
            Status.MERGED,
        )  # fmt: skip

    @property
    def usable(self) -> bool:
        """Whether the numbers hold within their errors, be these larger than asked or not."""
        return self.success or self is Status.ACCURACY_NOT_REACHED

    def message(self, **numbers: object) -> str:
        """The meaning of the status and the next thing to try."""
        details = ", ".join(
            f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items()
        )
        return _MESSAGES[self] + (f" ({details})" if details else "")


_MESSAGES = {
    Status.CONVERGED: "converged",
    Status.REACHED_BOUND: "reached the end of the range",
    Status.ACCURACY_NOT_REACHED: "the quadrature error is larger than the accuracy asked: the "
    "values hold within their errors; ask for a lower accuracy",
    Status.STALLED: "no step decreases the residual: start closer, or try another method",
    Status.MAX_STEPS: "the residual is still too large after the allowed steps: start closer, or "
    "raise max_steps",
    Status.LEFT_DOMAIN: "the iteration left the domain of the order parameters: start closer",
    Status.NON_FINITE: "the equations are not finite here: check the parameters and the start",
    Status.SINGULAR: "the Jacobian is singular: a fold or branch point is near; move the parameter",
    Status.STEP_TOO_SMALL: "the step fell below its floor: a fold or branch point is near",
    Status.BRANCH_LOST: "the branch cannot be found here: it may not exist at these parameters",
    Status.WRONG_BRANCH: "the solution found belongs to another branch: start closer, or "
    "look at its kind",
    Status.CLOSED_LOOP: "the branch closed on itself: every point of it is known",
    Status.CRITICAL_END: "the two branches merge: the line ends in a critical point; compare the "
    "order parameters there",
    Status.SPINODAL_END: "one of the branches ends at its spinodal: follow the other alone",
    Status.TRICRITICAL_END: "the line ends in a tricritical point, where the transition becomes "
    "continuous: follow the branch point from there",
    Status.UNFOLDED: "the second parameter breaks the symmetry behind the branch point, which "
    "exists at one value of it only; folds take its place",
    Status.MERGED: "the branch ends where it is born from another one: every point of it is known",
    Status.BICRITICAL_END: "the line ends in a bicritical point, where both branches are born from "
    "a third one: follow their branch points from there",
    Status.MIRRORED: "the branch passed a branch point onto its own mirror image: every point of "
    "it is known",
    Status.NO_CROSSING: "no crossing in the range: widen it",
    Status.LOWER_FROM_BIRTH: "no crossing: one branch is lower wherever both exist",
    Status.USER_STOP: "stopped by the user; the points computed so far are kept",
}
