"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

ModelName = Annotated[
    str, Parameter(help="Built-in name (see `spinodal models`) or path/to/file.py:object.")
]
Settings = Annotated[
    list[str] | None,
    Parameter(name="--set", negative=(), help="NAME=VALUE; repeat for several parameters."),
]
Json = Annotated[
    bool, Parameter(name="--json", negative=(), help="Machine-readable result on standard output.")
]
Plot = Annotated[Path | None, Parameter(name="--plot", help="Write a figure (png, pdf, svg).")]
Accuracy = Annotated[
    float, Parameter(name="--accuracy", help="Relative accuracy of the expectations.")
]
TraceAccuracy = Annotated[
    float | None,
    Parameter(name="--accuracy", help="Relative accuracy of the expectations; by default 1e-10 "
              "for smooth models, 1e-5 with proximal points."),
]  # fmt: skip
Over = Annotated[
    str | None, Parameter(name="--over", help="Parameter and range to follow, NAME=LO:HI.")
]
Between = Annotated[
    tuple[str, str] | None, Parameter(help="The two branches, such as positional semantic.")
]
Csv = Annotated[Path | None, Parameter(name="--csv", help="Write a table of all points.")]
Out = Annotated[
    Path | None,
    Parameter(name="--out", help="Write everything: .nc (NetCDF, needs xarray) or .json."),
]
