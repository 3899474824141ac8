"""Open load: requests start at the times of a pace, whether or not earlier ones were answered.

Each is measured from its intended start. So a stall of workers, Redis or this client counts for
every request that should have started meanwhile, and not only for those in flight (coordinated
omission).
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scaletest.broker import Client
from scaletest.load.loops import READ_TIMEOUT_S, TURN_REQUESTS, LoadLoop, logger
from scaletest.load.pace import RatePace
from scaletest.model import Record

# Requests that are counted as overdue, since a pace may have no end.
MOST_OVERDUE = 10_000_000


class OpenLoop(LoadLoop):
    """Follows `pace`, in seconds since the load began. Late requests are submitted at once."""

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
        """Begin to follow the pace.

        maximum: requests in flight, at most; further due requests wait here, and their latency
        includes it. began: when the pace begins, on the clock; None: now. ends_s: requests due from
        this time on are not submitted, even when the loop is stopped later. settings: of LoadLoop.
        """
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
        self._upcoming = self._next_of_pace()
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
        """Due times of requests that were not submitted, MOST_OVERDUE of them at most."""
        while (
            self._stopped
            and self._next is not None
            and self._next < self._ends
            and len(self._overdue) < MOST_OVERDUE
        ):
            self._overdue.append(self._next)
            self._advance()
        return self._overdue

    def _take_due(self, now: float) -> Sequence[float]:
        if self._stopped:
            return ()
        if self._rate_changed:
            self._rate_changed = False  # first: another change may come meanwhile
            assert isinstance(self.pace, RatePace)
            self._upcoming = self._began + self.pace.due_s
        room = self._maximum - len(self._pending)
        if room <= 0:
            if not self._warned and self._next is not None and self._next <= now:
                self._warned = True
                logger.warning(
                    "%d requests are in flight, the maximum: the workers are too slow, and due"
                    " requests wait in the client",
                    self._maximum,
                )
            return ()
        begins: list[float] = []
        most = min(room, TURN_REQUESTS)
        while (
            self._next is not None
            and self._next <= now
            and self._next < self._ends
            and len(begins) < most
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
            self._upcoming = self._next_of_pace()

    def _next_of_pace(self) -> float | None:
        """Return the next start of the pace, on the clock."""
        due_s = next(self.pace, None)
        return None if due_s is None else self._began + due_s

    def _take_back(self, begins: Sequence[float]) -> None:
        if begins:
            self._refused.extendleft(reversed(begins))
        else:
            self._end_back_off()

    def _patience_s(self, now: float) -> float:
        if (
            self._stopped
            or self._next is None
            or self._next >= self._ends
            or len(self._pending) >= self._maximum
        ):
            return READ_TIMEOUT_S
        return max(0.0, self._next - now)

    def _is_finished(self) -> bool:
        return self._stopped or self._next is None

    def _note_replies(self, count: int, all_failed: bool) -> None:
        """Do nothing: replies do not change when requests are due."""
