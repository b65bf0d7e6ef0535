"""Content-addressed store of generated modules, safe against concurrent writers and stale code."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType

from theory.errors import DomainError

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


def _place(folder: Path, name: str, text: str) -> Path:
    """Write a file if it is not there: to a temporary one and renamed, so no reader sees half."""
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp", text=True)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    return path


def remembered(key: str, write: Callable[[], str]) -> str:
    """The text that ``write`` makes, kept on disk under the hash of everything it depends on.

    Parameters
    ----------
    key : str
        All that determines the text beside the source of `theory`, which is added to it.
    write : callable
        Called where the text is not there yet.
    """
    digest = hashlib.sha256(f"{_own_source()}\n{key}".encode()).hexdigest()[:20]
    path = cache_directory() / f"text_{digest}.py"
    if path.exists():
        return path.read_text()
    text = write()
    _place(path.parent, path.name, text)
    return text


@functools.cache
def _own_source() -> str:
    """Hash of this package's source and of SymPy's version, so that stale text is never read."""
    import sympy

    digest = hashlib.sha256(sympy.__version__.encode())
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


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
    The file's name is the hash of its text and of the versions of generator and compiler.
    """
    if mode == "python":
        return _interpreted(source)
    digest = _digest(source)
    name = f"spinodal_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    path = _place(cache_directory(), f"{name}.py", source)
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
    shown = ModuleType(module.__name__)
    shown.__dict__.update({
        k: _guarded(v) if isinstance(v, FunctionType) else v for k, v in vars(module).items()
    })  # fmt: skip
    return shown


def _guarded(function: Callable) -> Callable:
    """A function that says what is wrong where compiled code gives infinity or NaN."""

    import numpy as np

    @functools.wraps(function)
    def call(*args):
        try:
            return function(*args)
        except (ArithmeticError, ValueError) as error:
            sizes = [float(np.max(np.abs(a), initial=0.0)) for a in args
                     if isinstance(a, np.ndarray) and a.dtype.kind == "f"]  # fmt: skip
            reached = f" at values up to {max(sizes[:1]):.3g}" if sizes else ""
            raise DomainError(
                f"the equations cannot be evaluated in plain Python{reached} ({error}): take "
                "smaller values, or mode='numba', where they are infinite or NaN"
            ) from error

    return call
