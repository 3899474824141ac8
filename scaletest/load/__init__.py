"""The load generator without its web page: it keeps requests in flight and turns replies into records."""

from scaletest.load.closed import ClosedLoop

__all__ = ["ClosedLoop"]
