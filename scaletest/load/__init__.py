"""The load generator without its web page: it keeps requests in flight and turns replies into records.

Statistics of a load are kept here too, in memory that does not grow with its length. Nothing here judges a run.
"""

from scaletest.load.closed import ClosedLoop
from scaletest.load.loop import LoadLoop
from scaletest.load.open import OpenLoop
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.statistics import Statistics
from scaletest.load.steering import Steering

__all__ = ["ClosedLoop", "LoadLoop", "OpenLoop", "LoadSnapshot", "Statistics", "Steering"]
