"""Control of a load and its statistics, for pages, signals and the command line."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from scaletest.load.closed import ClosedLoop
from scaletest.load.loop import LoadLoop
from scaletest.load.open import OpenLoop
from scaletest.load.snapshot import LoadSnapshot
from scaletest.load.statistics import Gauges, Statistics
from scaletest.model.errors import UsageError

logger = logging.getLogger("scaletest.client")


class NotSteerable(UsageError):
    """An open load follows its schedule; its parallelism cannot be set."""


class Steering:
    """A loop with its statistics. Methods return at once, even when Redis is away, from any thread.

    load: name of the kind of load, for people. maximum: the highest possible number in flight.
    ready: whether Redis answers.
    """

    def __init__(
        self,
        loop: LoadLoop,
        statistics: Statistics,
        *,
        load: str,
        maximum: int,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self.statistics = statistics
        self.load = load
        self.maximum = maximum
        self._ready = ready
        statistics.watch(self._gauges)

    @property
    def steerable(self) -> bool:
        """Whether the parallelism can be set."""
        return isinstance(self._loop, ClosedLoop)

    @property
    def parallel(self) -> int:
        """Requests that are kept in flight, at most."""
        if isinstance(self._loop, ClosedLoop):
            return self._loop.parallel
        return self.maximum

    def set_parallel(self, parallel: int, *, reset: bool = False) -> int:
        """Keep this many requests in flight, at most the maximum; the number that applies now.

        reset: reset the statistics first.
        """
        if not isinstance(self._loop, ClosedLoop):
            raise NotSteerable
        wanted = min(parallel, self.maximum)
        with self._lock:
            if reset:
                self._reset()
            self._loop.set_parallel(wanted)
        return wanted

    def reset(self) -> None:
        """Reset the statistics."""
        with self._lock:
            self._reset()

    def _reset(self) -> None:
        old = self.statistics.snapshot()
        self.statistics.reset()
        logger.info(
            "statistics reset: %d succeeded and %d failed in %.1f s",
            old.succeeded,
            old.failed,
            old.elapsed_s,
        )

    def stop(self) -> None:
        """Submit nothing more; requests in flight may still end."""
        if isinstance(self._loop, ClosedLoop):
            self._loop.set_parallel(0)
        elif isinstance(self._loop, OpenLoop):
            self._loop.stop()

    @property
    def overdue(self) -> int:
        """Requests due when an open load stopped and never submitted; in no statistic."""
        if isinstance(self._loop, OpenLoop):
            return self._loop.overdue
        return 0

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight and nothing is due; false when the time is over first."""
        return self._loop.wait_idle(timeout_s)

    def check(self) -> None:
        """Raise what ended the loop, if anything did."""
        self._loop.check()

    def alive(self) -> bool:
        """Whether the loop still runs."""
        return self._loop.alive

    def ready(self) -> bool:
        """Whether requests can be submitted now."""
        return self.alive() and self._ready()

    def snapshot(self) -> LoadSnapshot:
        """All statistics at this moment."""
        return self.statistics.snapshot()

    def _gauges(self) -> Gauges:
        loop = self._loop
        return Gauges(
            self.load, self.parallel, self.maximum, loop.in_flight, loop.refused, loop.resubmitted
        )
