"""The load of a client, as options say it."""

import math
import random
import time
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from scaletest.broker import Client
from scaletest.load import pace
from scaletest.load.closed_loop import ClosedLoop
from scaletest.load.loops import LoadLoop
from scaletest.load.open_loop import OpenLoop
from scaletest.load.pace import RatePace
from scaletest.load.statistics import Statistics
from scaletest.load.steering import Steered, Steering
from scaletest.model.declared import Arguments, Count, Seconds
from scaletest.model.document import check_fields
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.processes.wake import Wake

# Requests in flight, at most, where no option says it.
CLOSED_MAXIMUM = 512
OPEN_MAXIMUM = 10_000
# How often a load looks whether it shall stop.
LOOK_EVERY_S = 0.25
# Options of open load.
PACES = ("rate", "poisson")
_Requests = Annotated[int, Meta(ge=1, le=1_000_000)]


@dataclass(frozen=True, slots=True)
class OfferedLoad:
    """The load of a client, as options say it: open with one of PACES, else a batch or closed."""

    queue: str
    parallel: Annotated[Count | None, Meta(title="parallel")]
    max_parallel: Annotated[_Requests | None, Meta(title="max parallel")]
    time_limit_s: Annotated[Seconds, Meta(title="time limit")]  # of a request, 0 for none
    delay_s: Annotated[Seconds, Meta(title="delay")]  # of closed load, after a reply
    rate: float | None  # requests a second, evenly
    poisson: float | None  # requests a second, by chance
    batch: Annotated[_Requests | None, Meta(title="batch")]
    duration_s: Annotated[Seconds, Meta(title="duration")]  # 0 for no end
    log_messages: bool
    arguments: Arguments  # of each request

    def __post_init__(self) -> None:
        check_fields(self)
        if self.initial_parallel > self.maximum:
            raise InvalidValue(
                f"parallel {self.initial_parallel} is more than the maximum {self.maximum}",
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
    def initial_parallel(self) -> int:
        """Requests that closed load keeps in flight at first."""
        return 1 if self.parallel is None else self.parallel

    def __str__(self) -> str:
        if self.is_open:
            return str(self.pace())
        return "closed" if self.batch is None else f"batch of {self.batch}"

    def pace(self) -> RatePace | None:
        """Return a new pace of open load; None for other load."""
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
        """Load until nothing is left, time is up or `stop` is awake; return whether all replied.

        grace_s: how long to wait for requests in flight at the end.
        """
        ends = time.monotonic() + (self.duration_s or math.inf)
        if steering.steered is Steered.PARALLEL:
            steering.set_parallel(self.maximum if self.batch else self.initial_parallel)
        while not stop.is_set() and (left_s := ends - time.monotonic()) > 0:
            left_s = min(LOOK_EVERY_S, left_s)
            if not (self.batch or self.is_open):
                stop.wait(left_s)
                steering.loop.check()
            elif steering.loop.wait_idle(left_s, stop):
                return True
        steering.loop.stop()
        return steering.loop.wait_idle(grace_s)
