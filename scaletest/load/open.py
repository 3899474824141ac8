"""Open load: requests start at the times of a pace, whether or not earlier ones were answered.

Each is measured from its intended start. So a stall of workers, Redis or this client counts for
every request that should have started meanwhile, and not only for those in flight (coordinated
omission).
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from scaletest.broker import Client
from scaletest.load.loop import READ_TIMEOUT_S, TURN_REQUESTS, LoadLoop, Observer
from scaletest.model import Record

logger = logging.getLogger("scaletest.client")

MOST_OVERDUE = 10_000_000


class OpenLoop(LoadLoop):
    """Follows `pace`: seconds since the load began. Late requests are submitted at once, in order.

    maximum: requests in flight, at most; further due requests wait here, and their latency includes
    it.
    began: when the pace begins, on the clock; None: now.
    ends_s: requests due from this time on are not submitted, even when the loop is stopped later.
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
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        log_messages: bool = False,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            client,
            queue,
            sink,
            arguments=arguments,
            time_limit_s=time_limit_s,
            log_messages=log_messages,
            observer=observer,
            clock=clock,
        )
        self._pace = pace
        self._maximum = maximum
        self._warned = False
        self._stopped = False
        self._overdue = 0
        self._next: float | None = None
        self._refused: deque[float] = deque()
        self._idle.clear()
        self._began = clock() if began is None else began
        self._ends = self._began + ends_s
        self._advance()
        self.start()

    def stop(self) -> None:
        """Submit nothing more."""
        self._ends = min(self._ends, self._clock())
        self._stopped = True
        self._changed.set()

    @property
    def overdue_since(self) -> list[float]:
        """Due times of requests that were not submitted when the load stopped, at most
        MOST_OVERDUE.

        They can be read once.
        """
        times: list[float] = []
        while (
            self._stopped
            and self._next is not None
            and self._next < self._ends
            and len(times) < MOST_OVERDUE
        ):
            times.append(self._next)
            self._advance()
        return times

    @property
    def overdue(self) -> int:
        """Requests due when the load stopped and not submitted, up to MOST_OVERDUE."""
        if not self._stopped:
            return 0
        while self._next is not None and self._next < self._ends and self._overdue < MOST_OVERDUE:
            self._overdue += 1
            self._advance()
        return self._overdue

    def _due(self, now: float) -> Sequence[float]:
        if self._stopped:
            return ()
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

    def _advance(self) -> None:
        """Move to the next due time: refused requests first, then the pace."""
        if self._refused:
            self._next = self._refused.popleft()
            return
        at = next(self._pace, None)
        self._next = None if at is None else self._began + at

    def _returned(self, begins: Sequence[float]) -> None:
        if not begins:
            self._calm()
            return
        if self._next is not None:
            self._refused.appendleft(self._next)
        self._refused.extendleft(reversed(begins))
        self._advance()

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
