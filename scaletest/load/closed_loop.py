"""Closed load: a new request for every reply keeps a number in flight, which may change."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from scaletest.broker import Client
from scaletest.load.loops import READ_TIMEOUT_S, TURN_REQUESTS, LoadLoop
from scaletest.model import Record

# This many failures in a row slow the load down. Single failures must not: with few requests in
# flight workers would be idle, with many they would not, and throughput would seem to grow better
# than it does.
FAILURES_TO_BACK_OFF = 10


class ClosedLoop(LoadLoop):
    """Keeps `parallel` requests of one queue in flight."""

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
        """Begin with nothing in flight.

        total: submit this many requests and no more; None for no end. delay_s: seconds between a
        reply and the request that follows it. settings: of LoadLoop.
        """
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

    def _missing_count(self, now: float) -> int:
        while self._pausing and self._pausing[0] <= now:
            self._pausing.popleft()
        missing = self._parallel - len(self._pending) - len(self._pausing)
        return missing if self._left is None else min(missing, self._left)

    def _take_due(self, now: float) -> Sequence[float]:
        count = max(0, min(self._missing_count(now), TURN_REQUESTS))
        if self._left is not None:
            self._left -= count
        return [now] * count

    def _take_back(self, begins: Sequence[float]) -> None:
        if self._left is not None:
            self._left += len(begins)

    def _patience_s(self, now: float) -> float:
        if self._missing_count(now) > 0:
            return 0.0
        if self._pausing:
            return max(0.0, self._pausing[0] - now)
        return READ_TIMEOUT_S

    def _is_finished(self) -> bool:
        return self._parallel == 0 or self._left == 0

    def _note_replies(self, count: int, all_failed: bool) -> None:
        if self._delay_s:
            self._pausing.extend([self._clock() + self._delay_s] * count)
        self._failed_in_a_row = self._failed_in_a_row + count if all_failed else 0
        if self._failed_in_a_row >= FAILURES_TO_BACK_OFF:
            self._back_off()
        else:
            self._end_back_off()
