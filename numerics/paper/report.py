"""What a figure or table of the paper consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Report:
    """A table, perhaps with a figure.

    Attributes
    ----------
    columns, rows
        Texts to print.
    draw : callable, optional
        Writes the figure to a path.
    data : object
        The numbers, for JSON.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: Any
    notes: Sequence[str] = field(default_factory=list)
    draw: Callable[[Path], None] | None = None
