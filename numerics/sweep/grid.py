"""Where a sweep goes: a product of ranges, or an explicit list of points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from theory.errors import ParameterError
from theory.joint import Name, joint, separate


def spaced(low: float, high: float, count: int, *, log: bool = False) -> np.ndarray:
    """``count`` values from ``low`` to ``high``, both included; (count,).

    Parameters
    ----------
    log : bool
        Equal ratios in place of equal differences.

    Raises
    ------
    ParameterError
        For a count below one, a range that is empty or reversed, or a logarithm of what is not
        positive.
    """
    if count < 1:
        raise ParameterError(f"a range of {count} values; give a count of at least 1")
    if not (low < high or (count == 1 and low == high)):
        raise ParameterError(f"the lower end {low:g} is not below {high:g}")
    if log and not low > 0:
        raise ParameterError(f"a logarithmic range needs a positive lower end, not {low:g}")
    return np.geomspace(low, high, count) if log else np.linspace(low, high, count)


class Grid:
    """The product of named ranges.

    Parameters
    ----------
    axes : mapping of str to sequence of float
        Values of each parameter; the order of the names is that of the dimensions. Several names,
        as in ``"A11,A22"`` or ``("A11", "A22")``, are one dimension: they keep one value.

    Attributes
    ----------
    dims : tuple of str
    shape : tuple of int
    parameters : tuple of str
        Single names.

    Raises
    ------
    ParameterError
        For no axes, an empty axis or a value given twice.

    Examples
    --------
    >>> grid = Grid({"T": [0.2, 0.3], "D": [0.4, 0.45, 0.5]})
    >>> grid.shape, next(iter(grid))
    ((2, 3), {'T': 0.2, 'D': 0.4})
    """

    def __init__(self, axes: Mapping[Name, Iterable[float]]):
        self.axes = {
            joint(name): tuple(_number(v, name) for v in _several(values, name))
            for name, values in axes.items()
        }
        if not self.axes:
            raise ParameterError("a grid needs at least one parameter and its values")
        for name, values in self.axes.items():
            if not values:
                raise ParameterError(f"the grid has no values of {name}")
            twice = _repeated(values)
            if twice is not None:
                raise ParameterError(f"the grid has {name} = {twice!r} twice")
        self.dims = tuple(self.axes)
        self.shape = tuple(map(len, self.axes.values()))
        self.parameters = tuple(separate(self.axes))

    def __len__(self) -> int:
        return int(np.prod(self.shape))

    def __iter__(self) -> Iterator[dict[str, float]]:
        for values in itertools.product(*self.axes.values()):
            yield separate(dict(zip(self.dims, values, strict=True)))

    def coordinates(self) -> dict[str, Any]:
        """Coordinates of an `xarray.Dataset` over the grid."""
        return {name: np.array(values) for name, values in self.axes.items()}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n}: {k}" for n, k in zip(self.dims, self.shape, strict=True))
        return f"Grid({sizes})"


class Points:
    """An explicit list of points, along one dimension named ``point``.

    Parameters
    ----------
    points : sequence of mappings
        Parameters of each point; all name the same ones.

    Raises
    ------
    ParameterError
        For no points, points with different parameters or a point given twice.
    """

    dims = ("point",)

    def __init__(self, points: Iterable[Mapping[str, float]]):
        points = list(points)
        for p in points:
            if not isinstance(p, Mapping):
                raise ParameterError(f"the point {p!r} is not a mapping of names to numbers")
        self._points = [{k: _number(v, k) for k, v in separate(p).items()} for p in points]
        if not self._points:
            raise ParameterError("a sweep needs at least one point")
        self.parameters = tuple(self._points[0])
        for point in self._points:
            if set(point) != set(self.parameters):
                raise ParameterError(
                    f"the points name different parameters: {', '.join(self.parameters)} and "
                    f"{', '.join(point)}"
                )
        twice = _repeated([tuple(p[k] for k in self.parameters) for p in self._points])
        if twice is not None:
            shown = ", ".join(f"{k} = {v!r}" for k, v in zip(self.parameters, twice, strict=True))
            raise ParameterError(f"the point {shown} is given twice")
        self.shape = (len(self._points),)

    def __len__(self) -> int:
        return len(self._points)

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(map(dict, self._points))

    def coordinates(self) -> dict[str, Any]:
        """Coordinates of an `xarray.Dataset`: every parameter along ``point``."""
        return {k: ("point", np.array([p[k] for p in self._points])) for k in self.parameters}

    def __repr__(self) -> str:
        return f"Points({len(self)} in {', '.join(self.parameters)})"


def as_grid(where: Grid | Points | Mapping | Iterable) -> Grid | Points:
    """A mapping of names to values is a grid, any other iterable a list of points."""
    if isinstance(where, Grid | Points):
        return where
    if isinstance(where, Mapping):
        return Grid(where)
    if not isinstance(where, Iterable):
        raise ParameterError(f"the grid {where!r} is neither a mapping nor a sequence of points")
    return Points(where)


def _several(values: Any, name: str) -> Iterable:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError(f"the grid needs a sequence of values of {name}, not {values!r}")
    return values


def _number(value: Any, name: str) -> float:
    try:
        return float(value) + 0.0  # no negative zero: it would be another key
    except (TypeError, ValueError):
        raise ParameterError(f"{name} = {value!r} is not a number") from None


def _repeated(values: Iterable) -> Any:
    seen = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
