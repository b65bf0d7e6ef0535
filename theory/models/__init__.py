"""Built-in models: one short file each."""

from theory.models.attention import attention
from theory.models.registry import get, names

__all__ = ["attention", "get", "names"]
