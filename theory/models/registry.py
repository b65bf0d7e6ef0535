"""Models by name, and models from a user's file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from theory.errors import ModelError, SpinodalError, near
from theory.free_energy import FreeEnergy

_BUILT_IN = {
    "attention": "theory.models.attention:attention",
    "blume-capel": "theory.models.blume_capel:blume_capel",
    "curie-weiss": "theory.models.curie_weiss:curie_weiss",
    "landau": "theory.models.landau:landau",
    "perceptron": "theory.models.perceptron:perceptron",
    "potts": "theory.models.potts:potts",
    "ridge": "theory.models.ridge:ridge",
    "van-der-waals": "theory.models.van_der_waals:van_der_waals",
}


def names() -> list[str]:
    """Names of the built-in models."""
    return sorted(_BUILT_IN)


def get(name: str) -> FreeEnergy:
    """A built-in model, or ``path/to/file.py:object`` (a `FreeEnergy` or a function making one).

    Raises
    ------
    ModelError
        If there is no such model, file or object.
    """
    if name in _BUILT_IN:
        module, attribute = _BUILT_IN[name].split(":")
        return _model(getattr(importlib.import_module(module), attribute), name)
    path, separator, attribute = name.rpartition(":")
    if name.endswith(".py"):
        found = _models_in(_imported(Path(name)))
        raise ModelError(
            f"{name} needs the object in it, {name}:OBJECT; it defines: "
            f"{', '.join(found) or 'no theory.FreeEnergy, and no function of its own'}"
        )
    if not separator or not path.endswith(".py"):
        raise ModelError(
            f"unknown model {name!r}{near(name, _BUILT_IN)}; built in are {', '.join(names())}, "
            "or give path/to/file.py:object"
        )
    return _model(_from_file(Path(path), attribute), name)


def _from_file(path: Path, attribute: str):
    module = _imported(path)
    if not hasattr(module, attribute):
        there = _models_in(module)
        raise ModelError(
            f"{path} has no object {attribute!r}{near(attribute, there)}; it defines: "
            f"{', '.join(there) or 'no model'}"
        )
    return getattr(module, attribute)


def _models_in(module: ModuleType) -> list[str]:
    """Names of free energies, and of the functions that the file itself defines."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, FreeEnergy)
        or (inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_")
    ]


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModelError(f"no file {path}; give path/to/file.py:object")
    spec = importlib.util.spec_from_file_location(f"_spinodal_model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ModelError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ModelError(f"{path} fails on import: {type(error).__name__}: {error}") from error
    return module


def _model(found: FreeEnergy | Callable[[], FreeEnergy], name: str) -> FreeEnergy:
    try:
        model = found() if callable(found) else found
    except SpinodalError:
        raise
    except Exception as error:
        raise ModelError(f"{name} fails when called: {type(error).__name__}: {error}") from error
    if not isinstance(model, FreeEnergy):
        raise ModelError(f"{name} is a {type(model).__name__}, not a theory.FreeEnergy")
    return model
