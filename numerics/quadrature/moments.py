"""What every integrator returns, and what all of them need."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from theory.errors import DomainError


@dataclass(frozen=True)
class Moments:
    """Expectations with their errors.

    Attributes
    ----------
    values, errors : (K,) arrays
        Each error bounds the true one.
    magnitudes : (K,) array
        Expectation of the absolute value of each integrand: the scale for relative accuracy.
    points : int
        Evaluations of the integrands.
    unresolved : float
        Probability mass on which the proximal point could not be certified (part of the errors).
    """

    values: np.ndarray
    errors: np.ndarray
    magnitudes: np.ndarray
    points: int
    unresolved: float = 0.0

    @property
    @np.errstate(all="ignore")  # divergent expectations are judged by their status
    def relative_error(self) -> float:
        """Largest error in units of the magnitudes."""
        return float(np.max(self.errors / np.maximum(self.magnitudes, 1e-300), initial=0.0))


@np.errstate(all="ignore")
def honest_error(fine: np.ndarray, coarse: np.ndarray, magnitudes: np.ndarray) -> np.ndarray:
    """Error of ``fine`` from its distance to ``coarse``, guarded against accidental agreement.

    A single moment may agree by chance, so each error is at least a tenth of the largest relative
    difference among all moments, and never below rounding.
    """
    size = np.maximum(magnitudes, 1e-300)
    difference = np.abs(fine - coarse)
    typical = float(np.max(difference / size, initial=0.0))
    return np.maximum(difference, np.maximum(0.1 * typical, 1e-14) * size)


def covariance_root(covariance: np.ndarray) -> np.ndarray:
    """Lower triangular root of a positive semidefinite matrix (zero pivots allowed).

    Raises
    ------
    DomainError
        If the matrix is not positive semidefinite.
    """
    n = len(covariance)
    scale = float(np.max(np.abs(np.diag(covariance)), initial=0.0))
    root = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            entry = covariance[i, j] - root[i, :j] @ root[j, :j]
            if i != j:
                root[i, j] = entry / root[j, j] if root[j, j] > 0 else 0.0
            elif not entry >= -1e-13 * scale:
                raise DomainError(
                    f"covariance of the Gaussian fields is not positive: pivot {entry:.3g}; the "
                    "order parameters left their domain"
                )
            else:
                root[i, i] = np.sqrt(max(entry, 0.0))
    return root
