"""Following solutions in a parameter, and finding where phases exchange."""

from numerics.continuation.branch import Branch
from numerics.continuation.crossing import crossing
from numerics.continuation.diagram import Diagram, diagram
from numerics.continuation.event import Event
from numerics.continuation.follow import follow
from numerics.continuation.root import root
from numerics.continuation.tracer import Settings
from numerics.continuation.transition import Transition

__all__ = [
    "Branch",
    "Diagram",
    "Event",
    "Settings",
    "Transition",
    "crossing",
    "diagram",
    "follow",
    "root",
]
