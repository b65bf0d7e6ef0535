"""What a figure is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numerics.paper.report import Report


@dataclass(frozen=True)
class Options:
    """What a figure is asked for.

    Attributes
    ----------
    data : path, optional
        Means of the authors' gradient descent.
    quick : bool
        Fewer points, or a lower accuracy.
    progress : callable, optional
    store : path, optional
        Of the sweep behind a map, by default ``attention_sweep.db``; resumes.
    """

    data: Path | None = None
    quick: bool = False
    progress: Callable[[dict], Any] | None = None
    store: Path | None = None

    def tell(self, stage: str, **numbers) -> None:
        if self.progress is not None:
            self.progress({"stage": stage, **numbers})


Maker = Callable[[Options], Report]
