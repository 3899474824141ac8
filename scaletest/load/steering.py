"""Control of a load and its statistics, for pages, signals and the command line."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

from scaletest.broker import Client
from scaletest.load import pace
from scaletest.load.loops import ClosedLoop, LoadLoop, OpenLoop
from scaletest.load.pace import RatePace
from scaletest.load.statistics import Gauges, LoadSnapshot, Statistics
from scaletest.model.declared import Arguments, Count, Seconds
from scaletest.model.document import check
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.processes.wake import Wake

logger = logging.getLogger("scaletest.client")

CLOSED_MAXIMUM = 512
OPEN_MAXIMUM = 10_000
LOOK_EVERY_S = 0.25
_Requests = Annotated[int, Meta(ge=1, le=1_000_000)]
PACES = ("rate", "poisson")


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """The load of a client, as options say it: open with one of PACES, else a batch or closed.

    rate, poisson: requests a second. Times are in seconds; 0 for no limit, and no end.
    """

    queue: str
    parallel: Annotated[Count | None, Meta(title="parallel")]
    max_parallel: Annotated[_Requests | None, Meta(title="max parallel")]
    time_limit_s: Annotated[Seconds, Meta(title="time limit")]
    delay_s: Annotated[Seconds, Meta(title="delay")]
    rate: float | None
    poisson: float | None
    batch: Annotated[_Requests | None, Meta(title="batch")]
    duration_s: Annotated[Seconds, Meta(title="duration")]
    log_messages: bool
    arguments: Arguments

    def __post_init__(self) -> None:
        check(self)
        if self.kept > self.maximum:
            raise InvalidValue(
                f"parallel {self.kept} is more than the maximum {self.maximum}",
                hint="raise <max_parallel>",
            )
        kinds = [kind for kind in (*PACES, "batch") if getattr(self, kind) is not None]
        if len(kinds) > 1:
            raise UsageError(
                f"--{kinds[0]} and --{kinds[1]} exclude each other", hint="give one kind of load"
            )
        for name, value in (("parallel", self.parallel), ("delay", self.delay_s)):
            if kinds and value:
                raise UsageError(
                    f"--{name} is for closed load, not with --{kinds[0]}",
                    hint=f"leave --{name} out",
                )

    @property
    def is_open(self) -> bool:
        """Whether requests start at times of their own."""
        return any(getattr(self, kind) is not None for kind in PACES)

    @property
    def is_finite(self) -> bool:
        """Whether the load ends by itself."""
        return bool(self.batch or self.duration_s)

    @property
    def maximum(self) -> int:
        """Most requests in flight."""
        usual = self.batch or (OPEN_MAXIMUM if self.is_open else CLOSED_MAXIMUM)
        return usual if self.max_parallel is None else self.max_parallel

    @property
    def kept(self) -> int:
        """Requests that closed load keeps in flight at first."""
        return 1 if self.parallel is None else self.parallel

    def __str__(self) -> str:
        if self.is_open:
            return str(self.pace())
        return "closed" if self.batch is None else f"batch of {self.batch}"

    def pace(self) -> RatePace | None:
        """Start times in seconds; None for load that follows none."""
        if self.rate is not None:
            return pace.constant(self.rate)
        if self.poisson is not None:
            return pace.poisson(self.poisson, random.Random())
        return None

    def begin(self, client: Client, statistics: Statistics, starts: RatePace | None) -> Steering:
        """Begin the load. starts: its pace."""
        settings: dict[str, Any] = {
            "arguments": self.arguments,
            "time_limit_s": self.time_limit_s,
            "log_messages": self.log_messages,
            "observer": statistics,
        }
        if starts is None:
            loop: LoadLoop = ClosedLoop(
                client,
                self.queue,
                statistics.add,
                total=self.batch,
                delay_s=self.delay_s,
                **settings,
            )
        else:
            loop = OpenLoop(
                client,
                self.queue,
                statistics.add,
                starts,
                maximum=self.maximum,
                ends_s=self.duration_s or math.inf,
                **settings,
            )
        return Steering(
            loop,
            statistics,
            load=str(self),
            maximum=self.maximum,
            ready=lambda: not client.away,
        )

    def run(self, steering: Steering, stop: Wake, grace_s: float) -> bool:
        """Load until nothing is left, time is up or `stop` is awake; then drain. Whether all
        replied.

        grace_s: how long to wait for requests in flight at the end.
        """
        ends = time.monotonic() + (self.duration_s or math.inf)
        if steering.steered is Steered.PARALLEL:
            steering.set_parallel(self.maximum if self.batch else self.kept)
        while not stop.is_set() and (left_s := ends - time.monotonic()) > 0:
            left_s = min(LOOK_EVERY_S, left_s)
            if not (self.batch or self.is_open):
                stop.wait(left_s)
                steering.loop.check()
            elif steering.loop.wait_idle(left_s, stop):
                return True
        steering.loop.stop()
        return steering.loop.wait_idle(grace_s)


class Steered(StrEnum):
    """What of a load can be changed while it runs."""

    PARALLEL = "parallel"
    RATE = "rate"


class NotSteerable(UsageError):
    """This cannot be changed while the load runs."""


class Steering:
    """A loop with its statistics. Methods return at once, even when Redis is away, from any thread.

    loop: makes the load. load: name of the kind of load, for people. maximum: the highest possible
    number in flight.
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
        self.loop = loop
        self._lock = threading.RLock()
        self.statistics = statistics
        self._load = load
        self.maximum = maximum
        self._ready = ready
        # of a load whose rate can be set
        self._pace: RatePace | None = None
        if isinstance(loop, OpenLoop) and isinstance(loop.pace, RatePace):
            self._pace = loop.pace
        self._resume_with = self.rate
        if self.steered is Steered.PARALLEL:
            self._resume_with = 1.0
        statistics.watch(self._gauges)
        if self.rate is not None:
            statistics.ask(self.rate)

    @property
    def steered(self) -> Steered:
        """What can be changed."""
        if isinstance(self.loop, ClosedLoop):
            return Steered.PARALLEL
        return Steered.RATE

    @property
    def load(self) -> str:
        """The kind of load, with the rate that it has now."""
        return str(self._pace or self._load)

    @property
    def parallel(self) -> int:
        """Requests that are kept in flight, at most."""
        if isinstance(self.loop, ClosedLoop):
            return self.loop.parallel
        return self.maximum

    @property
    def rate(self) -> float | None:
        """Requests that shall start in a second; None where that cannot be set."""
        return None if self._pace is None else self._pace.rate

    def set_parallel(self, parallel: int, *, reset: bool = False) -> int:
        """Keep this many requests in flight, at most the maximum; the number that applies now.

        reset: reset the statistics first.
        """
        if not isinstance(self.loop, ClosedLoop):
            raise NotSteerable(f"this client does not keep a number in flight: {self.load}")
        wanted = min(parallel, self.maximum)
        with self._lock:
            if reset:
                self.reset()
            self.loop.set_parallel(wanted)
            self._note(wanted)
        return wanted

    def set_rate(self, rate: float) -> None:
        """Start so many requests a second from now on; 0 pauses. What was due before is submitted,
        and measured from when it was due.
        """
        if not isinstance(self.loop, OpenLoop) or self.rate is None:
            raise NotSteerable(f"this client has no rate that can be set: {self.load}")
        with self._lock:
            self.loop.set_rate(rate)
            self._note(rate)

    def _note(self, wanted: float) -> None:
        self._resume_with = wanted or self._resume_with
        self.statistics.ask(wanted)

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
        """All statistics at this moment."""
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
