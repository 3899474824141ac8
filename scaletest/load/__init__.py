"""The load generator: it keeps requests in flight, and makes records of replies.

It also keeps statistics of a load, in memory that does not grow with time. Nothing here judges a
run.
"""

from scaletest.load.closed_loop import ClosedLoop
from scaletest.load.loops import LoadLoop
from scaletest.load.open_loop import OpenLoop
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.statistics import Statistics
from scaletest.load.steering import Steering

__all__ = ["ClosedLoop", "LoadLoop", "OpenLoop", "LoadSnapshot", "Statistics", "Steering"]
