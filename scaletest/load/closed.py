"""Closed load: N requests in flight, a new one for every reply. N may change at any time, also to 0.

One thread submits and reads; however many are in flight it needs one connection. It decides nothing about a run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from scaletest.broker import Client
from scaletest.model import Record, Request
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError

logger = logging.getLogger("scaletest.client")

READ_TIMEOUT_S = 10.0
# After a full queue, or replies that all failed, the next submission waits, longer each time: a broken worker must not
# make its client run hot.
FIRST_BACKOFF_S = 0.05
LONGEST_BACKOFF_S = 2.0


class ClosedLoop:
    """Keeps `parallel` requests of one queue in flight. `sink` gets every record, on the loop's own thread."""

    def __init__(
        self,
        client: Client,
        queue: str,
        sink: Callable[[Record], None],
        *,
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        log_messages: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._queue = queue
        self._sink = sink
        self._arguments = arguments
        self._time_limit_s = time_limit_s
        self._log_messages = log_messages
        self._clock = clock
        self._pending: dict[str, tuple[int, float]] = {}
        self._parallel = 0
        self._step = 0
        self._closing = False
        self._idle = threading.Event()
        self._idle.set()
        self._failure: BaseException | None = None
        self._backoff_s = 0.0
        self.duplicates = 0
        self._thread = threading.Thread(target=self._live, name="scaletest-load", daemon=True)
        self._thread.start()

    @property
    def in_flight(self) -> int:
        """Requests submitted and not yet answered."""
        return len(self._pending)

    def set_parallel(self, parallel: int, step: int | None = None) -> None:
        """From now on keep this many in flight, and mark their records with `step`."""
        self.check()
        if step is not None:
            self._step = step
        if parallel:
            self._idle.clear()
        self._parallel = parallel
        self._client.wake()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight (after `set_parallel(0)`); whether that came in time."""
        idle = self._idle.wait(timeout_s)
        self.check()
        return idle

    def check(self) -> None:
        """Raise what ended the loop, if anything did."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the loop; what is in flight is given up."""
        self._closing = True
        if self._thread.is_alive():
            self._client.wake()
            self._thread.join()

    def _live(self) -> None:
        try:
            while not self._closing:
                self._fill()
                if not self._pending and not self._parallel:
                    self._idle.set()
                self._read()
        except BaseException as error:
            self._failure = error
            self._idle.set()
            if not isinstance(error, ScaletestError):
                logger.exception("the load ended")

    def _fill(self) -> None:
        missing = self._parallel - len(self._pending)
        if missing <= 0:
            return
        if self._backoff_s:
            time.sleep(self._backoff_s)
        requests = [
            Request(self._client.new_id(), self._queue, self._arguments, self._time_limit_s) for _ in range(missing)
        ]
        now = self._clock()
        for request in requests:
            self._pending[request.id] = (self._step, now)
        accepted = self._client.submit(requests)
        for request in requests[accepted:]:
            del self._pending[request.id]
        if accepted < missing:
            self._back_off()
        if self._log_messages:
            logger.info("submitted %d requests from %s", accepted, requests[0].id)

    def _read(self) -> None:
        waiting = READ_TIMEOUT_S if len(self._pending) >= self._parallel else self._backoff_s
        finished = self._client.replies(waiting)
        now = self._clock()
        for _, reply in finished:
            pending = self._pending.pop(reply.id, None)
            if pending is None:
                self.duplicates += 1
                continue
            step, began = pending
            if self._log_messages:
                logger.info("reply %s", cut(reply.to_json(), 1000))
            self._sink(Record(self._queue, step, reply, now - began))
        if finished:
            if any(reply.ok for _, reply in finished):
                self._backoff_s = 0.0
            else:
                self._back_off()

    def _back_off(self) -> None:
        self._backoff_s = min(LONGEST_BACKOFF_S, max(FIRST_BACKOFF_S, 2 * self._backoff_s))
