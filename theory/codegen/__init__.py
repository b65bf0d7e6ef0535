"""From symbolic systems to self-contained, numba-compiled, disk-cached modules."""

from theory.codegen.cache import cache_directory, load, remembered
from theory.codegen.writer import write_module

__all__ = ["cache_directory", "load", "remembered", "write_module"]
