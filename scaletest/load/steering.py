"""Control of a load and its statistics, for pages, signals and the command line."""

import logging
import threading
from collections.abc import Callable
from enum import StrEnum

from scaletest.load.closed_loop import ClosedLoop
from scaletest.load.loops import LoadLoop
from scaletest.load.open_loop import OpenLoop
from scaletest.load.pace import RatePace
from scaletest.load.snapshot import Gauges, LoadSnapshot
from scaletest.load.statistics import Statistics
from scaletest.model.errors import UsageError

logger = logging.getLogger("scaletest.client")


class Steered(StrEnum):
    """What of a load can be changed while it runs."""

    PARALLEL = "parallel"
    RATE = "rate"


class NotSteerable(UsageError):
    """Raised for what this load cannot change while it runs."""


class Steering:
    """A loop with its statistics. From any thread; never waits for Redis."""

    def __init__(
        self,
        loop: LoadLoop,
        statistics: Statistics,
        *,
        load: str,
        maximum: int,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """Take control of a loop.

        load: name of the kind of load, for people. maximum: the highest possible number in flight.
        ready: whether Redis answers.
        """
        self.loop = loop
        # held to change the loop and to note the change as one; reentrant, as a change may reset
        self._lock = threading.RLock()
        self.statistics = statistics
        self._load = load
        self.maximum = maximum
        self._ready = ready
        # of a load whose rate can be set; other paces are a schedule
        self._pace: RatePace | None = None
        if isinstance(loop, OpenLoop) and isinstance(loop.pace, RatePace):
            self._pace = loop.pace
        self._resume_with = 1.0 if self.steered is Steered.PARALLEL else self.rate
        statistics.read_gauges_by(self._gauges)
        if self.rate is not None:
            statistics.note_asked(self.rate)

    @property
    def steered(self) -> Steered:
        """What can be changed."""
        return Steered.PARALLEL if isinstance(self.loop, ClosedLoop) else Steered.RATE

    @property
    def load(self) -> str:
        """The kind of load, with the rate that it has now."""
        return str(self._pace or self._load)

    @property
    def parallel(self) -> int:
        """Requests that are kept in flight, at most."""
        return self.loop.parallel if isinstance(self.loop, ClosedLoop) else self.maximum

    @property
    def rate(self) -> float | None:
        """Requests that shall start in a second; None where that cannot be set."""
        return None if self._pace is None else self._pace.rate

    def set_parallel(self, parallel: int, *, reset: bool = False) -> int:
        """Keep this many requests in flight, at most the maximum; return the number that applies.

        reset: reset the statistics first.
        """
        if not isinstance(self.loop, ClosedLoop):
            raise NotSteerable(f"this client does not keep a number in flight: {self.load}")
        wanted = min(parallel, self.maximum)
        with self._lock:
            if reset:  # before the change, so that the new numbers are those of the new load
                self.reset()
            self.loop.set_parallel(wanted)
            self._note(wanted)
        return wanted

    def set_rate(self, rate: float) -> None:
        """Start so many requests a second from now on; 0 pauses.

        What was due before is submitted, and measured from when it was due.
        """
        if not isinstance(self.loop, OpenLoop) or self.rate is None:
            raise NotSteerable(f"this client's rate cannot be set: {self.load}")
        with self._lock:
            self.loop.set_rate(rate)
            self._note(rate)

    def _note(self, wanted: float) -> None:
        """Remember what is asked for; a pause is resumed with what was before."""
        self._resume_with = wanted or self._resume_with
        self.statistics.note_asked(wanted)

    def reset(self) -> None:
        """Reset the statistics."""
        with self._lock:
            old = self.statistics.snapshot()
            self.statistics.reset()
        logger.info(
            "statistics reset: %d succeeded and %d failed in %.1f s",
            old.succeeded,
            old.failed,
            old.elapsed_s,
        )

    def ready(self) -> bool:
        """Whether requests can be submitted now."""
        return self.loop.alive and self._ready()

    def snapshot(self) -> LoadSnapshot:
        """Return all statistics at this moment."""
        return self.statistics.snapshot()

    def _gauges(self) -> Gauges:
        return Gauges(
            self.load,
            self.parallel,
            self.maximum,
            self.loop.in_flight,
            self.loop.refused,
            self.loop.resubmitted,
            self.rate,
            self._resume_with,
        )
