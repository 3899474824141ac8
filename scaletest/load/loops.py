"""Loops that submit requests: closed load keeps N in flight, open load follows a pace.

Every loop submits due requests, reads replies and makes records, in one thread. All requests in
flight share one connection. Requests that Redis lost in a crash are submitted again, with the same
id. Subclasses decide only when requests are due, and nothing here judges a run.

Closed load submits a new request for every reply; N may change at any time. Open load starts
requests at the times of its pace, whether or not earlier ones were answered, and measures each from
its intended start. So a stall of workers, Redis or this client counts for every request that should
have started meanwhile, and not only for those in flight (coordinated omission).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from scaletest.broker import Client
from scaletest.broker.retrying import longer
from scaletest.load.pace import RatePace
from scaletest.model import Record, Request
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError
from scaletest.processes.wake import Wake, wait_first

logger = logging.getLogger("scaletest.client")

# Also the time until a request that Redis lost is noticed, after the heartbeat saw the new server.
READ_TIMEOUT_S = 2.0
# One turn submits at most this many, so that replies are read in between.
TURN_REQUESTS = 128


class Pending(NamedTuple):
    """A request in flight. began: when it started, or should have, on the monotonic clock."""

    step: int
    repeat: int
    began: float
    request: Request


class Observer(Protocol):
    """Receives figures of the loop itself."""

    def turn(self, busy_s: float, in_flight: int) -> None:
        """Note a turn of the loop: its time without waiting, and requests in flight."""

    def late(self, seconds: float) -> None:
        """Note that a request was submitted this long after its intended start."""


class LoadLoop(ABC):
    """Submits requests of one queue; gives a record of each to `sink`, on the loop's thread."""

    def __init__(
        self,
        client: Client,
        queue: str,
        sink: Callable[[Record], None],
        *,
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        log_messages: bool = False,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._queue = queue
        self._sink = sink
        self._arguments = arguments
        self._time_limit_s = time_limit_s
        self._log_messages = log_messages
        self._observer = observer
        self._clock = clock
        self._pending: dict[str, Pending] = {}
        self._stumbled = False
        self._step = self._repeat = 0
        self._closing = False
        self._idle = Wake()
        self._idle.set()
        # for the parallel requests together with the idle event
        self._deciding = threading.Lock()
        self._failure: BaseException | None = None
        self._backoff_s = self._resume_at = 0.0
        self._turn_began: float | None = None
        # when the replies of the current records were read, on the loop's clock
        self.read_at = 0.0
        self._changed = threading.Event()
        self.duplicates = self.resubmitted = self.refused = 0
        self._thread = threading.Thread(target=self._live, name="scaletest-load", daemon=True)
        self._waker = threading.Thread(target=self._wake, name="scaletest-load-waker", daemon=True)

    @property
    def in_flight(self) -> int:
        """Requests that were submitted and have no reply yet."""
        return len(self._pending)

    @property
    def waiting_since(self) -> list[float]:
        """When each request in flight started, or should have, on the loop's clock."""
        return [pending.began for pending in list(self._pending.values())]

    @property
    def alive(self) -> bool:
        """Whether the loop still runs."""
        return self._thread.is_alive() and self._failure is None

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()
        self._waker.start()

    def wait_idle(self, timeout_s: float, *others: Wake) -> bool:
        """Wait until nothing is in flight and nothing is due; false when the time is over first, or
        one of `others` is awake first.
        """
        wait_first(timeout_s, self._idle, *others)
        self.check()
        return self._idle.is_set()

    def check(self) -> None:
        """Raise what ended the loop, if anything did."""
        if self._failure is not None:
            raise self._failure

    def close(self, *, patient: bool = True) -> None:
        """End the loop and remove waiting requests from the queue.

        patient: whether to wait for Redis when it is away.
        """
        self._closing = True
        if not patient:
            self._client.leave()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._client.cancel(self._queue, list(self._pending))
        except Exception as error:
            logger.warning(
                "waiting requests stay in the queue until this client's lease expires: %s", error
            )

    @property
    def overdue(self) -> int:
        """Requests due when the load stopped and not submitted."""
        return 0

    @abstractmethod
    def stop(self) -> None:
        """Submit nothing more."""

    @abstractmethod
    def _due(self, now: float) -> Sequence[float]:
        """Intended starts of the requests to submit in this turn, at most TURN_REQUESTS."""

    @abstractmethod
    def _returned(self, begins: Sequence[float]) -> None:
        """Take back requests that the queue refused; they are due again. The list may be empty."""

    @abstractmethod
    def _patience_s(self, now: float) -> float:
        """Seconds to wait for replies before the next request is due."""

    @abstractmethod
    def _finished(self) -> bool:
        """Whether nothing is due any more."""

    @abstractmethod
    def _replied(self, count: int, all_failed: bool) -> None:
        """Note that this many replies came."""

    def _live(self) -> None:
        """Submit and read, again and again.

        An error that the user must correct ends the loop; any other error is logged.
        """
        while not self._closing:
            try:
                self._fill()
                self._settle()
                self._read()
                if self._stumbled or self._client.shaken:
                    self._recover()
            except ScaletestError as error:
                self._failure = error
                self._idle.set()
                return
            except Exception:
                if not self._closing:
                    logger.exception("an error interrupted the load; it continues")
                self._stumbled = True
                self._back_off()
                time.sleep(self._backoff_s)

    def _settle(self) -> None:
        """Set the idle event when there is nothing left to do."""
        with self._deciding:
            if not self._pending and self._finished():
                self._idle.set()

    def _wake(self) -> None:
        """Wake the reader after a change of the load, in a thread that may wait for Redis."""
        while not self._closing or self._changed.is_set():
            self._changed.wait()
            self._changed.clear()
            try:
                self._client.wake()
            except Exception:
                return  # the loop meets the same error, and reports it

    def _fill(self) -> None:
        now = self._clock()
        if now < self._resume_at:
            return
        begins = self._due(now)
        if not begins:
            return
        requests = [
            Request(self._client.new_id(), self._queue, self._arguments, self._time_limit_s)
            for _ in begins
        ]
        for request, began in zip(requests, begins, strict=True):
            self._pending[request.id] = Pending(self._step, self._repeat, began, request)
        accepted = self._client.submit(requests)
        for request in requests[accepted:]:
            self._pending.pop(request.id, None)
        self._returned(begins[accepted:])
        if self._observer is not None:
            for began in begins[:accepted]:
                self._observer.late(now - began)
        if accepted < len(requests):
            self.refused += len(requests) - accepted
            self._back_off()
        if self._log_messages:
            logger.info("submitted %d requests from %s", accepted, requests[0].id)

    def _read(self) -> None:
        now = self._clock()
        if self._observer is not None and self._turn_began is not None:
            self._observer.turn(now - self._turn_began, len(self._pending))
        patience_s = (
            max(self._resume_at - now, 0.0) if now < self._resume_at else self._patience_s(now)
        )
        finished = self._client.replies(min(patience_s, READ_TIMEOUT_S))
        now = self._turn_began = self.read_at = self._clock()
        for _, reply in finished:
            pending = self._pending.pop(reply.id, None)
            if pending is None:
                self.duplicates += 1
                continue
            if self._log_messages:
                logger.info("reply %s", cut(reply.to_json(), 1000))
            self._sink(
                Record(
                    self._queue, pending.step, reply, max(0.0, now - pending.began), pending.repeat
                )
            )
        if finished:
            self._replied(len(finished), not any(reply.ok for _, reply in finished))

    def _recover(self) -> None:
        pending = {name: waiting.request for name, waiting in self._pending.items()}
        self.resubmitted += self._client.recover(pending, force=self._stumbled)
        self._stumbled = False

    def _back_off(self) -> None:
        """Submit later, after a full queue or replies that all failed: a broken worker must not
        keep its client busy.
        """
        self._backoff_s = longer(self._backoff_s)
        self._resume_at = self._clock() + self._backoff_s

    def _calm(self) -> None:
        self._backoff_s = self._resume_at = 0.0


# This many failures in a row slow the load down. Single failures must not: with few requests in
# flight workers would be idle, with many they would not, and throughput would seem to grow better
# than it does.
HOPELESS = 10


class ClosedLoop(LoadLoop):
    """Keeps `parallel` requests of one queue in flight.

    total: submit this many requests and no more; None for no end.
    delay_s: seconds between a reply and the request that follows it. settings: of LoadLoop.
    """

    def __init__(
        self,
        client: Client,
        queue: str,
        sink: Callable[[Record], None],
        *,
        total: int | None = None,
        delay_s: float = 0.0,
        **settings: Any,
    ) -> None:
        super().__init__(client, queue, sink, **settings)
        self._left = total
        self._delay_s = delay_s
        # when each answered request may be followed by its next; sorted, as pauses are equal
        self._pausing: deque[float] = deque()
        self._parallel = 0
        self._failed_in_a_row = 0
        self.start()

    @property
    def parallel(self) -> int:
        """Number of requests that are kept in flight."""
        return self._parallel

    def stop(self) -> None:
        """Submit nothing more."""
        self.set_parallel(0)

    def set_parallel(self, parallel: int, step: int | None = None, repeat: int = 0) -> None:
        """Keep this many in flight; `step` and `repeat` go into records. Never waits for Redis."""
        self.check()
        if step is not None:
            self._step, self._repeat = step, repeat
        with self._deciding:
            self._parallel = parallel
            if parallel:
                self._idle.clear()
        self._changed.set()

    def _wanted(self, now: float) -> int:
        while self._pausing and self._pausing[0] <= now:
            self._pausing.popleft()
        missing = self._parallel - len(self._pending) - len(self._pausing)
        return missing if self._left is None else min(missing, self._left)

    def _due(self, now: float) -> Sequence[float]:
        count = max(0, min(self._wanted(now), TURN_REQUESTS))
        if self._left is not None:
            self._left -= count
        return [now] * count

    def _returned(self, begins: Sequence[float]) -> None:
        if self._left is not None:
            self._left += len(begins)

    def _patience_s(self, now: float) -> float:
        if self._wanted(now) > 0:
            return 0.0
        if self._pausing:
            return max(0.0, self._pausing[0] - now)
        return READ_TIMEOUT_S

    def _finished(self) -> bool:
        return self._parallel == 0 or self._left == 0

    def _replied(self, count: int, all_failed: bool) -> None:
        if self._delay_s:
            self._pausing.extend([self._clock() + self._delay_s] * count)
        self._failed_in_a_row = self._failed_in_a_row + count if all_failed else 0
        if self._failed_in_a_row >= HOPELESS:
            self._back_off()
        else:
            self._calm()


MOST_OVERDUE = 10_000_000


class OpenLoop(LoadLoop):
    """Follows `pace`: seconds since the load began. Late requests are submitted at once, in order.

    maximum: requests in flight, at most; further due requests wait here, and their latency includes
    it.
    began: when the pace begins, on the clock; None: now.
    ends_s: requests due from this time on are not submitted, even when the loop is stopped later.
    settings: of LoadLoop.
    """

    def __init__(
        self,
        client: Client,
        queue: str,
        sink: Callable[[Record], None],
        pace: Iterator[float],
        *,
        maximum: int,
        began: float | None = None,
        ends_s: float = math.inf,
        **settings: Any,
    ) -> None:
        super().__init__(client, queue, sink, **settings)
        self.pace = pace  # what the load follows
        self._maximum = maximum
        self._warned = False
        self._stopped = False
        self._overdue: list[float] = []
        # intended starts that the queue refused; they are due before all others
        self._refused: deque[float] = deque()
        self._idle.clear()
        self._began = self._clock() if began is None else began
        self._ends = self._began + ends_s
        self._upcoming = self._paced()
        self._rate_changed = False
        self.start()

    def stop(self) -> None:
        """Submit nothing more."""
        self._ends = min(self._ends, self._clock())
        self._stopped = True
        self._changed.set()

    def set_rate(self, rate: float) -> None:
        """Start so many requests a second from now on, 0 for none; what was due before stays due.

        For a `RatePace`, and not for several threads at once. Never waits for Redis.
        """
        self.check()
        assert isinstance(self.pace, RatePace)
        self.pace.change(rate, self._clock() - self._began)
        self._rate_changed = True
        self._changed.set()

    @property
    def overdue_since(self) -> list[float]:
        """Due times of requests that were not submitted when the load stopped, at most
        MOST_OVERDUE.
        """
        while (
            self._stopped
            and self._next is not None
            and self._next < self._ends
            and len(self._overdue) < MOST_OVERDUE
        ):
            self._overdue.append(self._next)
            self._advance()
        return self._overdue

    @property
    def overdue(self) -> int:
        """Requests due when the load stopped and not submitted, up to MOST_OVERDUE."""
        return len(self.overdue_since)

    def _due(self, now: float) -> Sequence[float]:
        if self._stopped:
            return ()
        if self._rate_changed:
            self._rate_changed = False  # first: another change may come meanwhile
            assert isinstance(self.pace, RatePace)
            self._upcoming = self._began + self.pace.due_s
        room = self._maximum - len(self._pending)
        if room <= 0:
            self._warn(now)
            return ()
        begins: list[float] = []
        room = min(room, TURN_REQUESTS)
        while (
            self._next is not None
            and self._next <= now
            and self._next < self._ends
            and len(begins) < room
        ):
            begins.append(self._next)
            self._advance()
        return begins

    @property
    def _next(self) -> float | None:
        """When the next request is due; None when none will be."""
        return self._refused[0] if self._refused else self._upcoming

    def _advance(self) -> None:
        """Move on to the request after the next one."""
        if self._refused:
            self._refused.popleft()
        else:
            self._upcoming = self._paced()

    def _paced(self) -> float | None:
        """The next start of the pace, on the clock."""
        at = next(self.pace, None)
        return None if at is None else self._began + at

    def _returned(self, begins: Sequence[float]) -> None:
        if begins:
            self._refused.extendleft(reversed(begins))
        else:
            self._calm()

    def _warn(self, now: float) -> None:
        if not self._warned and self._next is not None and self._next <= now:
            self._warned = True
            logger.warning(
                "%d requests are in flight, the maximum: the workers are too slow, and due requests"
                " wait in the client",
                self._maximum,
            )

    def _patience_s(self, now: float) -> float:
        if (
            self._stopped
            or self._next is None
            or self._next >= self._ends
            or len(self._pending) >= self._maximum
        ):
            return READ_TIMEOUT_S
        return max(0.0, self._next - now)

    def _finished(self) -> bool:
        return self._stopped or self._next is None

    def _replied(self, count: int, all_failed: bool) -> None:
        """Do nothing: replies do not change when requests are due."""
