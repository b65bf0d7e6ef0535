"""Figures and tables of arXiv:2402.03902 from our equations, beside the authors' data."""

from numerics.paper.data import Measured, compare, read_measured, theory_at, z_scores
from numerics.paper.options import Options
from numerics.paper.registry import FIGURES
from numerics.paper.report import Report

__all__ = [
    "FIGURES",
    "Measured",
    "Options",
    "Report",
    "compare",
    "read_measured",
    "theory_at",
    "z_scores",
]
