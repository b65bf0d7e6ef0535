"""Many points of a model, solved side by side and kept on disk."""

from numerics.sweep.grid import Grid, Points, spaced
from numerics.sweep.outcome import Outcome
from numerics.sweep.result import Sweep
from numerics.sweep.run import sweep
from numerics.sweep.store import Key, Store

__all__ = ["Grid", "Key", "Outcome", "Points", "Store", "Sweep", "spaced", "sweep"]
