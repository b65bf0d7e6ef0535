"""Names of figures and tables, and the functions that make them."""

from __future__ import annotations

from numerics.paper import figures, phases, slices, tables
from numerics.paper.options import Maker

FIGURES: dict[str, Maker] = {
    "energies": figures.energies,
    "overlaps": figures.overlaps,
    "test-error": figures.test_error,
    "slice-omega": slices.omega,
    "slice-sigma": slices.sigma,
    "slice-lambda": slices.ridge,
    "table-alpha-c": tables.alpha_c,
    "table-alpha-l": tables.alpha_l,
    "table-data": tables.data,
    "phase-energy": phases.energy,
    "phase-error": phases.error,
}
