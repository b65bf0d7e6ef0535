"""Branches on disk: one JSON document, exact to the last bit, no pickle."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from numerics.continuation.branch import Branch
from numerics.continuation.event import Event
from numerics.protocol import ProblemLike
from numerics.solvers import Solution
from numerics.status import Status
from theory.errors import ParameterError

FORMAT = "spinodal branch 1"


def write(branch: Branch, path: Path) -> None:
    """Write a branch; the file is complete or not there."""
    document = {
        "format": FORMAT,
        "name": branch.name,
        "parameter": branch.parameter,
        "status": branch.status.name,
        "start_status": None if branch.start_status is None else branch.start_status.name,
        "points": [_pack(p) for p in branch.points],
        "curve": branch.curve.tolist(),
        "tangents": branch.tangents.tolist(),
        "unstable": [int(u) for u in branch.unstable],
        "events": [
            {**vars(e), "states": {k: _pack(s) for k, s in e.states.items()},
             "direction": None if e.direction is None else e.direction.tolist()}
            for e in branch.events
        ],
    }  # fmt: skip
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp", text=True)
        with os.fdopen(handle, "w") as file:
            json.dump(document, file)
        os.replace(temporary, path)
    except OSError as error:
        raise ParameterError(f"cannot write the branch to {path}: {error}") from None


def read(path: Path, problem: ProblemLike | None) -> Branch:
    """Read what `write` wrote.

    Raises
    ------
    ParameterError
        If the file is missing, is not a saved branch, or has other unknowns than the problem.
    """
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ParameterError(f"cannot read a branch from {path}: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ParameterError(f"{path} is not a saved branch (format {FORMAT!r})")
    branch = Branch(
        document["parameter"],
        [_unpack(p) for p in document["points"]],
        Status[document["status"]],
        None if document["start_status"] is None else Status[document["start_status"]],
        np.array(document["curve"]),
        np.array(document["tangents"]),
        document["unstable"],
        [_event(e) for e in document["events"]],
        problem,
        document["name"],
    )
    if problem is not None and branch.points:
        own = tuple(branch.points[0].state)
        if own != tuple(problem.unknowns):
            raise ParameterError(
                f"{path} has the unknowns {', '.join(own)}; the problem {problem.name} has "
                f"{', '.join(problem.unknowns)}"
            )
    return branch


def _event(data: dict[str, Any]) -> Event:
    direction = data.pop("direction")
    states = {k: _unpack(s) for k, s in data.pop("states").items()}
    interval = tuple(data.pop("interval"))
    array = None if direction is None else np.array(direction)
    return Event(**data, interval=interval, states=states, direction=array)


def _pack(solution: Solution) -> dict[str, Any]:
    jacobian = solution.jacobian
    return {
        **vars(solution),
        "status": solution.status.name,
        "jacobian": None if jacobian is None else jacobian.tolist(),
    }


def _unpack(data: dict[str, Any]) -> Solution:
    jacobian = None if data["jacobian"] is None else np.array(data["jacobian"])
    return Solution(**{**data, "status": Status[data["status"]], "jacobian": jacobian})
