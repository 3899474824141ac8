"""A worker's lifeline: a thread that extends leases and reaps dead workers, whatever the workload is doing.

It has a connection of its own. While Redis is away it keeps trying; the scripts move every deadline on when Redis is
back, so that an outage costs nobody a lease.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scaletest.broker import keys
from scaletest.broker.connection import Redis, transient
from scaletest.broker.reaper import reap
from scaletest.broker.scripts import script
from scaletest.model.checks import cut
from scaletest.system.waiting import Wake

logger = logging.getLogger("scaletest.broker")

DEFAULT_INTERVAL_S = 5.0
# A lease lives two intervals and reapers come twice an interval, so that a dead worker's request is back at the front
# of its queue within two and a half.
LEASE_INTERVALS = 2.0
WORKER_TTL_S = 480
MAX_ATTEMPTS = 3
UNBLOCK_EVERY_S = 0.02
RETRY_S = 0.2


@dataclass(slots=True)
class Held:
    """The request that a worker runs now.

    slow: RQ's own code runs it and keeps its registries. registered: a beat may have entered it there.
    """

    id: str
    attempt: int
    slow: bool = False
    registered: bool = False


class Lifeline:
    """Beats for one worker of one queue until closed. `hold` and `let_go` are called by the worker's main thread."""

    def __init__(
        self,
        client: Redis,
        worker: str,
        queue: str,
        *,
        interval_s: float = DEFAULT_INTERVAL_S,
        max_attempts: int = MAX_ATTEMPTS,
        details: Callable[[], Mapping[str, str | int | float]] = dict,
        renew: Callable[[], object] = bool,
    ) -> None:
        """renew: called by the beating thread after every beat, to extend what else the worker has leased."""
        self._client = client
        self._worker = worker
        self._queue = queue
        self._interval_us = int(interval_s * 1e6)
        self._tick_s = interval_s / 2
        self._max_attempts = max_attempts
        self._details = details
        self._renew = renew
        self._held: Held | None = None
        self._closing = threading.Event()
        self._wake = Wake()
        self._unblock: Callable[[], int] | None = None
        self._hang_up: Callable[[], bool] = bool
        self._thread = threading.Thread(target=self._live, name="scaletest-lifeline", daemon=True)

    def forget_dead_namesake(self) -> None:
        """Unregister a worker of our name whose deadline has passed."""
        key = keys.workers(self._queue)
        deadline = self._client.zscore(key, self._worker)
        seconds, micros = self._client.time()
        if deadline is None or float(deadline) < seconds * 1_000_000 + micros:
            self._client.delete(keys.rq_worker(self._worker))

    def start(self) -> None:
        """Beat once, so that the worker is known before its first request, then go on in the background."""
        self._beat()
        if not self._thread.is_alive():
            self._thread.start()

    def hold(self, request: str, attempt: int, *, slow: bool = False) -> None:
        """This request runs from now on."""
        self._held = Held(request, attempt, slow)

    def let_go(self) -> bool:
        """It runs no more; whether a beat may have entered it in RQ's registry of started jobs.

        First the slot is emptied, then the mark is read; the beating thread marks first and then looks at the slot.
        So whichever of the two comes first, no entry is made that nobody removes.
        """
        held, self._held = self._held, None
        return held is not None and held.registered

    def mark_suspect(self, suspect: bool) -> None:
        """Say to everybody that this worker's requests fail at once, or do no more."""
        key = keys.suspects(self._queue)
        try:
            if suspect:
                self._client.sadd(key, self._worker)
            else:
                self._client.srem(key, self._worker)
        except Exception as error:
            if not transient(error):
                raise

    def unblock(self, client_id: Callable[[], int], hang_up: Callable[[], bool]) -> None:
        """From now on end blocking moves of the connection with this id (0: none blocks). Safe in a signal handler.

        Where Redis cannot be told, `hang_up` is called instead.
        """
        self._hang_up = hang_up
        self._unblock = client_id
        self._wake.set()

    def stop(self) -> None:
        """Beat no more. Until `forget`, or until its deadline has passed, the worker counts as alive."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._wake.close()

    def forget(self) -> None:
        """Forget the worker's deadline, and with it that anybody should look what it left behind."""
        self._client.zrem(keys.workers(self._queue), self._worker)
        self._client.srem(keys.suspects(self._queue), self._worker)
        self._client.close()

    def _live(self) -> None:
        due = time.monotonic() + self._tick_s
        while not self._closing.is_set():
            left = due - time.monotonic()
            if self._unblock:
                self._closing.wait(max(0.0, min(left, UNBLOCK_EVERY_S)))
            else:
                self._wake.wait(left)
                self._wake.clear()
            try:
                self._end_blocking()
                if time.monotonic() >= due:
                    due = time.monotonic() + self._tick_s
                    self._beat()
                    self._renew()
                    self._reap()
            except Exception as error:
                due = min(due, time.monotonic() + RETRY_S)
                self._failed(error)

    def _end_blocking(self) -> None:
        """A worker that stops must not wait for a request any more. It may be just about to, so this is said again."""
        client_id = self._unblock() if self._unblock else 0
        if client_id:
            self._client.client_unblock(client_id)

    def _beat(self) -> None:
        held = self._held
        if held is not None:
            held.registered = True
            if self._held is not held:
                held = None
        details = [part for pair in self._details().items() for part in pair]
        owned = script("beat")(
            self._client,
            [
                keys.rq_worker(self._worker),
                keys.leases(self._queue),
                keys.workers(self._queue),
                keys.rq_started(self._queue),
                keys.PULSE,
                keys.RQ_WORKERS,
                keys.rq_queue_workers(self._queue),
            ],
            [
                self._worker,
                int(LEASE_INTERVALS * self._interval_us),
                held.id if held else "",
                held.attempt if held else 0,
                self._interval_us,
                WORKER_TTL_S,
                int(held is not None and held.slow),
                *details,
            ],
        )
        if not owned and held is self._held:
            logger.warning("worker %s lost its lease on request %s, finishing all the same", self._worker, held)

    def _reap(self) -> None:
        reap(self._client, self._queue, self._max_attempts, self._interval_us)

    def _failed(self, error: Exception) -> None:
        """A beat failed. Redis being away is told by the main thread; anything else is told here. Beating goes on.

        A server that hangs, or is gone without a word, would keep a worker that stops in a read of half a minute.
        """
        if self._hang_up():
            logger.warning("worker %s holds nothing and stops without Redis: %s", self._worker, cut(str(error), 200))
        if not transient(error):
            logger.error("worker %s: heartbeat failed: %s", self._worker, cut(str(error), 200))
        self._closing.wait(RETRY_S)
