"""Content-addressed store of generated modules, safe against concurrent writers and stale code."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType

GENERATOR = "1"


def cache_directory() -> Path:
    """Where generated modules live: ``SPINODAL_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("SPINODAL_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "spinodal"


def _digest(source: str) -> str:
    import numba
    import numpy

    versions = f"{GENERATOR} {numba.__version__} {numpy.__version__} {sys.version_info[:2]}"
    return hashlib.sha256(f"{versions}\n{source}".encode()).hexdigest()[:20]


def load(source: str, *, mode: str = "numba") -> ModuleType:
    """Import ``source`` as a module.

    Parameters
    ----------
    source : str
        A self-contained module: it imports nothing but ``math``, ``numpy`` and ``numba``, so that
        its text determines its machine code.
    mode : {"numba", "python"}
        In Python mode the same text runs uncompiled.

    Notes
    -----
    The file's name is the hash of its text and of the versions of generator and compiler. It is
    written to a temporary file and renamed, so that a reader never sees half of it.
    """
    if mode == "python":
        return _interpreted(source)
    digest = _digest(source)
    name = f"spinodal_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_directory()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp", text=True)
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.replace(temporary, path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _interpreted(source: str) -> ModuleType:
    """The module with ``njit`` replaced by a decorator that does nothing."""
    plain = source.replace(
        "from numba import njit",
        "def njit(*args, **options):\n    return args[0] if args else (lambda function: function)",
    )
    module = ModuleType("spinodal_interpreted")
    exec(compile(plain, "<spinodal generated>", "exec"), module.__dict__)
    return module
