"""A service in virtual time: replicas with slots, and a closed load that looks as a real one."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from scaletest.cluster.cadvisor import LimitPeriods
from scaletest.cluster.pods import PodState
from scaletest.load.http import HttpWork
from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.attempt import OK, Attempt
from scaletest.validation.service.replicas import PodLook


def pod_look(restarts: int, since: str, periods: float = 0.0, throttled: float = 0.0) -> PodLook:
    """A pod that is ready since then; "" when it is not."""
    state = PodState("", "node-1", "Running", bool(since), False, restarts=restarts, since=since)
    return PodLook(state, LimitPeriods(periods=periods, throttled=throttled))


@dataclass
class Service:
    """Replicas of `slots` that serve a request in `serve_s`, in turn or as `choose` says."""

    slots: int = 4
    serve_s: float = 0.4
    count: int = 1
    now: float = 0.0
    choose: Callable[[int, int], int] = lambda number, count: number % count
    slowness: Callable[[int, float], float] = lambda replica, now: 1.0
    outcome: str = OK
    # whether it refuses the request of this number, of a load with so many in flight
    refuses: Callable[[int, int], bool] = lambda number, parallel: False
    name_replicas: bool = True
    late_s: Callable[[float], float] = lambda began: 0.001  # timers of a load that began then
    buffered_s: Callable[[int], float] | None = None  # first to last token, of a replica
    tokens: Callable[[int], int] = lambda number: 8
    least_gap_s: float = 0.0  # of a router that passes on one request after the other
    asked: list[int] = field(default_factory=list)
    are_addresses_known: bool = False
    look: Callable[[int, float], PodLook] | None = None  # at a replica at a time, if it is a pod

    def scale(self, count: int) -> None:
        """As Replicas says."""
        self.asked.append(count)
        self.count = count

    def close(self) -> None:
        """Put back one replica."""
        self.asked.append(1)

    def clock(self) -> float:
        """The time."""
        return self.now

    def addresses(self) -> dict[str, str]:
        """As Replicas says."""
        known = range(self.count if self.are_addresses_known else 0)
        return {f"r{replica}": f"http://r{replica}" for replica in known}

    def pods(self) -> dict[str, PodLook]:
        """As Replicas says."""
        look = self.look
        replicas = range(self.count if look else 0)
        return {f"r{replica}": look(replica, self.now) for replica in replicas if look}

    @property
    def work(self) -> "SimulatedWork":
        """Requests to it."""
        return SimulatedWork(HttpCall("http://service"), [None], service=self)


@dataclass(frozen=True)
class SimulatedWork(HttpWork):
    """Requests to a service in virtual time."""

    service: Service = field(default_factory=Service)

    def make_load(
        self, agent: str = "", seen: Callable[[Attempt], None] | None = None
    ) -> LevelLoad:
        """A load with new connections."""
        seen = seen or (lambda attempt: None)
        return SimulatedLoad(self.service, seen, is_direct=bool(self.call.direct))


class SimulatedLoad:
    """Closed load in virtual time."""

    def __init__(
        self, service: Service, seen: Callable[[Attempt], None], *, is_direct: bool
    ) -> None:
        self._service, self._seen, self._is_direct = service, seen, is_direct

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """See LevelLoad."""
        service, chance = self._service, random.Random(1)
        began, free = service.now, [[0.0] * service.slots for _ in range(service.count)]
        routed, numbers = 0.0, itertools.count()
        flying: list[tuple[float, int, Attempt]] = []
        samples: list[Attempt] = []

        def send(at: float) -> None:
            nonlocal routed
            number = next(numbers)
            replica = service.choose(number, service.count)
            if self._is_direct:
                replica = number % service.count
            routed = max(routed, at) + service.least_gap_s
            starts = max(routed, heapq.heappop(free[replica]))
            takes = service.serve_s * service.slowness(replica, starts) * chance.uniform(0.95, 1.05)
            heapq.heappush(free[replica], starts + takes)
            ended, name = starts + takes, f"r{replica}" if service.name_replicas else ""
            first = ended - service.buffered_s(replica) if service.buffered_s else starts
            attempt = Attempt(
                number,
                at,
                at,
                at,
                ended,
                "503" if service.refuses(number, order.parallel) else service.outcome,
                pod=name,
                first_s=first,
                tokens=service.tokens(number),
                prompt_tokens=32,
            )
            heapq.heappush(flying, (ended, number, attempt))

        for _ in range(order.parallel):
            send(0.0)
        look, is_over = 0.25, False
        while flying:
            ended, _, attempt = heapq.heappop(flying)
            while not is_over and look < ended:
                service.now = began + look
                is_over = stopping()
                look += 0.25
            service.now = began + ended
            samples.append(attempt)
            self._seen(attempt)
            if not is_over and not (order.count and len(samples) >= order.count):
                send(ended)
        late_s = 0.0 if order.count else service.late_s(began)
        return LoadResult(samples, service.now - began, cpu=0.1, beat_s=late_s)

    def close(self) -> None:
        """Nothing is open."""
