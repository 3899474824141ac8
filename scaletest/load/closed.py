"""Closed load: N requests in flight, a new one for every reply. N may change at any time, also to 0.

One thread submits and reads; however many are in flight it needs one connection. It decides nothing about a run. What
Redis forgot in a crash it submits again, under the same id.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from scaletest.broker import Client
from scaletest.model import Record, Request
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError

logger = logging.getLogger("scaletest.client")

# Also how long a request that Redis forgot stays unnoticed, after the heartbeat that sees the new server.
READ_TIMEOUT_S = 2.0
# After a full queue, or replies that all failed, the next submission waits, longer each time: a broken worker must not
# make its client run hot.
FIRST_BACKOFF_S = 0.05
LONGEST_BACKOFF_S = 2.0


class Pending(NamedTuple):
    """A request in flight: its step and repeat, when it was submitted on the monotonic clock, and itself."""

    step: int
    repeat: int
    began: float
    request: Request


class ClosedLoop:
    """Keeps `parallel` requests of one queue in flight. `sink` gets every record, on the loop's own thread.

    total: submit this many requests and no more; None for no end.
    """

    def __init__(
        self,
        client: Client,
        queue: str,
        sink: Callable[[Record], None],
        *,
        arguments: tuple[str, ...] = (),
        time_limit_s: float = 0.0,
        total: int | None = None,
        log_messages: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._queue = queue
        self._sink = sink
        self._arguments = arguments
        self._time_limit_s = time_limit_s
        self._left = total
        self._log_messages = log_messages
        self._clock = clock
        self._pending: dict[str, Pending] = {}
        self._stumbled = False
        self._parallel = 0
        self._step = 0
        self._repeat = 0
        self._closing = False
        self._idle = threading.Event()
        self._idle.set()
        self._failure: BaseException | None = None
        self._backoff_s = 0.0
        self.duplicates = 0
        self.resubmitted = 0
        self._thread = threading.Thread(target=self._live, name="scaletest-load", daemon=True)
        self._thread.start()

    def set_parallel(self, parallel: int, step: int | None = None, repeat: int = 0) -> None:
        """From now on keep this many in flight, and mark their records with `step` and `repeat`."""
        self.check()
        if step is not None:
            self._step, self._repeat = step, repeat
        if parallel:
            self._idle.clear()
        self._parallel = parallel
        self._client.wake()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight (after `set_parallel(0)`, or the total); whether that came in time."""
        idle = self._idle.wait(timeout_s)
        self.check()
        return idle

    def check(self) -> None:
        """Raise what ended the loop, if anything did."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the loop; what still waits is taken out of the queue."""
        self._closing = True
        if self._thread.is_alive():
            self._client.wake()
            self._thread.join()
        self._client.cancel(self._queue, list(self._pending))

    def _live(self) -> None:
        """Fill, read, again. What the user must mend ends the loop; any other error is told, and the loop goes on."""
        while not self._closing:
            try:
                self._fill()
                if not self._pending and self._wanted() <= 0:
                    self._idle.set()
                self._read()
                self._recover()
            except ScaletestError as error:
                self._failure = error
                self._idle.set()
                return
            except Exception:
                logger.exception("the load stumbled, and goes on")
                self._stumbled = True
                self._back_off()
                time.sleep(self._backoff_s)

    def _wanted(self) -> int:
        missing = self._parallel - len(self._pending)
        return missing if self._left is None else min(missing, self._left)

    def _fill(self) -> None:
        missing = self._wanted()
        if missing <= 0:
            return
        if self._backoff_s:
            time.sleep(self._backoff_s)
        requests = [
            Request(self._client.new_id(), self._queue, self._arguments, self._time_limit_s) for _ in range(missing)
        ]
        now = self._clock()
        self._pending.update({request.id: Pending(self._step, self._repeat, now, request) for request in requests})
        accepted = self._submit(requests)
        if self._left is not None:
            self._left -= accepted
        if accepted < missing:
            self._back_off()
        if self._log_messages:
            logger.info("submitted %d requests from %s", accepted, requests[0].id)

    def _submit(self, requests: list[Request]) -> int:
        """How many the queue accepted; the others are not pending."""
        accepted = self._client.submit(requests)
        for request in requests[accepted:]:
            self._pending.pop(request.id, None)
        return accepted

    def _read(self) -> None:
        waiting = READ_TIMEOUT_S if self._wanted() <= 0 else self._backoff_s
        finished = self._client.replies(waiting)
        now = self._clock()
        for _, reply in finished:
            pending = self._pending.pop(reply.id, None)
            if pending is None:
                self.duplicates += 1
                continue
            if self._log_messages:
                logger.info("reply %s", cut(reply.to_json(), 1000))
            self._sink(Record(self._queue, pending.step, reply, now - pending.began, pending.repeat))
        if finished:
            if any(reply.ok for _, reply in finished):
                self._backoff_s = 0.0
            else:
                self._back_off()

    def _recover(self) -> None:
        pending = {name: row.request for name, row in self._pending.items()}
        self.resubmitted += self._client.recover(pending, force=self._stumbled)
        self._stumbled = False

    def _back_off(self) -> None:
        self._backoff_s = min(LONGEST_BACKOFF_S, max(FIRST_BACKOFF_S, 2 * self._backoff_s))
