"""Following solutions in a parameter, and finding where phases exchange."""

from numerics.continuation.boundary import Boundary, phase_boundary
from numerics.continuation.branch import Branch
from numerics.continuation.crossing import crossing
from numerics.continuation.curves import branch_point_curve, fold_curve, observable_curve
from numerics.continuation.diagram import Diagram, diagram
from numerics.continuation.event import Event
from numerics.continuation.follow import follow, resume
from numerics.continuation.lines import Line, lines
from numerics.continuation.root import root
from numerics.continuation.singular import SingularCurve
from numerics.continuation.survey import survey
from numerics.continuation.tracer import Settings
from numerics.continuation.transition import Transition

__all__ = [
    "Boundary",
    "Branch",
    "Diagram",
    "Event",
    "Line",
    "Settings",
    "SingularCurve",
    "Transition",
    "branch_point_curve",
    "crossing",
    "diagram",
    "fold_curve",
    "follow",
    "lines",
    "observable_curve",
    "phase_boundary",
    "resume",
    "root",
    "survey",
]
