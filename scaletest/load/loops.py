"""The loop that submits requests of one queue, reads replies and makes records, in one thread.

All requests in flight share one connection. Requests that Redis lost in a crash are submitted
again, with the same id. Subclasses decide only when requests are due, and nothing here judges a
run.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from scaletest.broker import Client
from scaletest.broker.retrying import longer_delay
from scaletest.model import Record, Request
from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError
from scaletest.processes.wake import Wake, wait_first

logger = logging.getLogger("scaletest.client")

# Also the time until a request that Redis lost is noticed, after the heartbeat saw the new server.
READ_TIMEOUT_S = 2.0
# One turn submits at most this many, so that replies are read in between.
TURN_REQUESTS = 128


class Pending(NamedTuple):
    """A request in flight."""

    step: int
    repeat: int
    began: float  # when it started, or should have, on the monotonic clock
    request: Request


class Observer(Protocol):
    """Receives figures of the loop itself."""

    def note_turn(self, busy_s: float, in_flight: int) -> None:
        """Note a turn of the loop: its time without waiting, and requests in flight."""

    def note_lateness(self, seconds: float) -> None:
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
        self._pending: dict[str, Pending] = {}  # by the request's id
        self._stumbled = False  # an error may have lost requests: recover them
        self._step = self._repeat = 0  # of records
        self._closing = False
        self._idle = Wake()  # awake while nothing is in flight or due
        self._idle.set()
        # held to change what is asked for together with the idle event
        self._deciding = threading.Lock()
        self._failure: BaseException | None = None  # what ended the loop
        self._backoff_s = self._resume_at = 0.0
        self._turn_began: float | None = None
        # when the replies of the current records were read, on the loop's clock
        self.read_at = 0.0
        self._changed = threading.Event()
        self.duplicates = self.resubmitted = self.refused = 0
        self._thread = threading.Thread(target=self._run, name="scaletest-load", daemon=True)
        self._waker = threading.Thread(
            target=self._run_waker, name="scaletest-load-waker", daemon=True
        )

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
        """Wait until nothing is in flight and nothing is due.

        False when the time is over first, or one of `others` is awake first.
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
    def overdue_since(self) -> Sequence[float]:
        """Due times of requests that were not submitted when the load stopped."""
        return ()

    @property
    def overdue(self) -> int:
        """How many these are."""
        return len(self.overdue_since)

    @abstractmethod
    def stop(self) -> None:
        """Submit nothing more."""

    @abstractmethod
    def _take_due(self, now: float) -> Sequence[float]:
        """Return intended starts of the requests to submit in this turn, at most TURN_REQUESTS."""

    @abstractmethod
    def _take_back(self, begins: Sequence[float]) -> None:
        """Take back requests that the queue refused; they are due again. The list may be empty."""

    @abstractmethod
    def _patience_s(self, now: float) -> float:
        """Return the seconds to wait for replies before the next request is due."""

    @abstractmethod
    def _is_finished(self) -> bool:
        """Whether nothing is due any more."""

    @abstractmethod
    def _note_replies(self, count: int, all_failed: bool) -> None:
        """Note that this many replies came."""

    def _run(self) -> None:
        """Submit and read, again and again.

        An error that the user must correct ends the loop; any other error is logged.
        """
        while not self._closing:
            try:
                self._submit_due()
                with self._deciding:
                    if not self._pending and self._is_finished():
                        self._idle.set()
                self._read_replies()
                if self._stumbled or self._client.shaken:
                    requests = {name: waiting.request for name, waiting in self._pending.items()}
                    self.resubmitted += self._client.recover(requests, force=self._stumbled)
                    self._stumbled = False
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

    def _run_waker(self) -> None:
        """Wake the reader after a change of the load, in a thread that may wait for Redis."""
        while not self._closing or self._changed.is_set():
            self._changed.wait()
            self._changed.clear()
            try:
                self._client.wake()
            except Exception:
                return  # the loop meets the same error, and reports it

    def _submit_due(self) -> None:
        """Submit what is due, unless the load backs off."""
        now = self._clock()
        if now < self._resume_at:
            return
        begins = self._take_due(now)
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
        self._take_back(begins[accepted:])
        if self._observer is not None:
            for began in begins[:accepted]:
                self._observer.note_lateness(now - began)
        if accepted < len(requests):
            self.refused += len(requests) - accepted
            self._back_off()
        if self._log_messages:
            logger.info("submitted %d requests from %s", accepted, requests[0].id)

    def _read_replies(self) -> None:
        """Wait for replies until the next request is due, and make records of them."""
        now = self._clock()
        if self._observer is not None and self._turn_began is not None:
            self._observer.note_turn(now - self._turn_began, len(self._pending))
        patience_s = self._resume_at - now if now < self._resume_at else self._patience_s(now)
        replies = self._client.replies(min(patience_s, READ_TIMEOUT_S))
        now = self._turn_began = self.read_at = self._clock()
        for reply in replies:
            pending = self._pending.pop(reply.id, None)
            if pending is None:
                self.duplicates += 1
                continue
            if self._log_messages:
                logger.info("reply %s", cut_text(reply.to_json(), 1000))
            self._sink(
                Record(
                    self._queue, pending.step, reply, max(0.0, now - pending.began), pending.repeat
                )
            )
        if replies:
            self._note_replies(len(replies), not any(reply.ok for reply in replies))

    def _back_off(self) -> None:
        """Submit later, after a full queue or replies that all failed.

        A broken worker must not keep its client busy.
        """
        self._backoff_s = longer_delay(self._backoff_s)
        self._resume_at = self._clock() + self._backoff_s

    def _end_back_off(self) -> None:
        self._backoff_s = self._resume_at = 0.0
