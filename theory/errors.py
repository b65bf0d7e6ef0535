"""The exceptions of spinodal: few, and each message names the thing, its value and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpinodalError(Exception):
    """Base class; catch it to catch everything this project raises on purpose."""


class ModelError(SpinodalError, ValueError):
    """A model that cannot be what was meant.

    Usual causes: a free symbol that is neither an unknown nor a parameter, an unknown model or
    branch name, a positional vector of the wrong length.
    """


class ParameterError(SpinodalError, ValueError):
    """A parameter that is unknown, missing, given twice or outside its domain."""


class DerivationError(SpinodalError):
    """The symbolic layer cannot do what was asked.

    Usual causes: differentiating through a jump of the proximal point instead of moving the
    derivative onto the Gaussian density; a conjugate that does not enter linearly.
    """


class AnsatzError(DerivationError):
    """A symmetry ansatz that is not consistent: an eliminated equation does not vanish."""


class DomainError(SpinodalError, ValueError):
    """An order parameter left its domain (for example V <= 0 or q sigma^2 <= theta^2)."""


class ConvergenceError(SpinodalError):
    """An iteration ended without a solution; the partial result is in ``.result``.

    Usual causes: a start too far from any branch, a branch that does not exist at these
    parameters, an accuracy below what the quadrature can deliver.
    """

    def __init__(self, message: str, result: object = None):
        super().__init__(message)
        self.result = result


def near(name: object, known: Iterable[object]) -> str:
    """`` (did you mean ...?)`` for a name that is nearly one of the known ones, else nothing."""
    there = {str(k).lower(): str(k) for k in known}
    close = difflib.get_close_matches(str(name).lower(), there, n=1)
    return f" (did you mean {there[close[0]]!r}?)" if close else ""


class DataError(SpinodalError, ValueError):
    """A data file that is missing or is not what was expected.

    Usual causes: the file of standard deviations is not beside that of the means; a column is
    missing; a number is not one.
    """
