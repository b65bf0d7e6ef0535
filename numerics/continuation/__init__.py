"""Following solutions as a parameter changes, and the transitions between them."""

from numerics.continuation.branch import Branch
from numerics.continuation.crossing import crossing
from numerics.continuation.follow import follow
from numerics.continuation.root import root
from numerics.continuation.transition import Transition

__all__ = ["Branch", "Transition", "crossing", "follow", "root"]
