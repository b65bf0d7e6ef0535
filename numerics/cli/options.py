"""Options that several commands share."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from theory.errors import ParameterError


def writable(*endings: str):
    """Check a path to write to before anything is computed."""

    def check(_, path: Path | None) -> None:
        if path is None:
            return
        if endings and path.suffix not in endings:
            raise ParameterError(
                f"{path} ends in {path.suffix or 'nothing'}; it must end in {' or '.join(endings)}"
            )
        if path.suffix == ".nc" and find_spec("xarray") is None:
            raise ParameterError("NetCDF needs xarray: pip install 'spinodal[sweep]', or give a "
                                 "file that ends in .json")  # fmt: skip
        folder = path.parent
        if path.is_dir() or not folder.is_dir():
            why = "it is a folder" if path.is_dir() else f"there is no folder {folder}"
            raise ParameterError(f"cannot write {path}: {why}")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise ParameterError(f"cannot write {path}: permission denied")

    return check


ModelName = Annotated[
    str, Parameter(help="Built-in name (see `spinodal models`) or path/to/file.py:object.")
]
Settings = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="NAME=VALUE; repeat for several parameters (NAME,NAME=VALUE sets both).",
    ),
]
Json = Annotated[
    bool, Parameter(name="--json", negative=(), help="Machine-readable result on standard output.")
]
Plot = Annotated[
    Path | None,
    Parameter(name="--plot", help="Write a figure (png, pdf, svg).",
              validator=writable(".png", ".pdf", ".svg")),
]  # fmt: skip
Accuracy = Annotated[
    float,
    Parameter(name="--accuracy", help="Relative accuracy of the expectations, and tolerance on the "
              "residual of the equations in natural units."),
]  # fmt: skip
TraceAccuracy = Annotated[
    float | None,
    Parameter(name="--accuracy", help="Relative accuracy of the expectations; by default 1e-10 "
              "for smooth models, 1e-5 with proximal points."),
]  # fmt: skip
Over = Annotated[
    str | None,
    Parameter(
        name="--over",
        help="Parameter and range to follow, NAME=LO:HI (NAME,NAME=LO:HI moves both).",
    ),
]
Between = Annotated[
    tuple[str, str] | None, Parameter(help="The two branches, such as positional semantic.")
]
Csv = Annotated[
    Path | None,
    Parameter(name="--csv", help="Write a table of all points.", validator=writable()),
]
Out = Annotated[
    Path | None,
    Parameter(name="--out", help="Write everything: .nc (NetCDF, needs xarray) or .json.",
              validator=writable(".nc", ".json")),
]  # fmt: skip
