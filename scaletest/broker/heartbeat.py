"""A worker's heartbeat: a thread that extends leases and reaps dead workers when its turn comes.

It runs whatever the workload is doing, on a connection of its own. While Redis is away it keeps
trying; deadlines are on a clock that stands still then (lua/pulse.lua), so that an outage costs
nobody a lease. It also notices a fast lane whose connection died silently: when Redis answered a
call, or should have, and the lane still waits, the heartbeat breaks that connection, and the lane
sends its call again.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis, transient
from scaletest.broker.fast_lane import FastLane, PendingCall, call_nonce
from scaletest.broker.queues import shown_us
from scaletest.broker.reaper import reap
from scaletest.broker.samples import SamplerLease
from scaletest.broker.scripts import script
from scaletest.model.checks import cut
from scaletest.system.waiting import Wake

logger = logging.getLogger("scaletest.broker")

DEFAULT_INTERVAL_S = 5.0
# A lease lives so many intervals. Some worker of the queue reaps twice an interval and when the
# next lease ends, so that a dead worker's request starts again within two intervals: 10 s by
# default. If the worker that was about to reap dies as well, another one reaps with its next
# heartbeat, half an interval later.
LEASE_INTERVALS = 1.8
# Workers with longer intervals still beat so often, and reap for those with shorter ones.
LONGEST_TICK_S = DEFAULT_INTERVAL_S / 2
# The shortest delay until a reaper checks again for a lease that is about to end.
SOONEST_LOOK_S = 0.05
MAX_ATTEMPTS = 3
UNBLOCK_EVERY_S = 0.02
RETRY_S = 0.2
# A heartbeat waits for an answer only until the next one is due, or a dead connection would cost
# the lease.
SHORTEST_PATIENCE_S, LONGEST_PATIENCE_S = 1.0, 5.0


@dataclass(slots=True)
class RunningRequest:
    """The request that a worker runs now.

    slow: RQ's own code runs it and keeps its registries. registered: a heartbeat may have entered
    it there.
    settling: its outcome is being delivered, which ends the lease.
    """

    id: str
    attempt: int
    slow: bool = False
    registered: bool = False
    settling: bool = False


@dataclass(slots=True)
class UnansweredCall:
    """A call of the fast lane that waited for its answer at an earlier heartbeat.

    since: time of that heartbeat, on the monotonic clock. answered: Redis had answered it by then.
    """

    call: str
    since: float
    answered: bool


def patience_s(interval_s: float) -> float:
    """Seconds that a heartbeat waits for an answer."""
    return max(SHORTEST_PATIENCE_S, min(interval_s / 2, LONGEST_PATIENCE_S))


class Heartbeat:
    """Beats for one worker of one queue until closed. `hold` and `let_go` are called by the
    worker's main thread.
    """

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
        sampling: SamplerLease | None = None,
    ) -> None:
        """renew: called by the thread after every heartbeat, to extend the worker's other leases.

        sampling: the lease of the node's sampler, which heartbeats request. Without it another
        worker samples, or none.
        """
        self._client = client
        self._worker = worker
        self._queue = queue
        self._interval_us = int(interval_s * 1e6)
        self._tick_s = min(interval_s / 2, LONGEST_TICK_S)
        self._max_attempts = max_attempts
        self._details = details
        self._renew = renew
        # `details` as last sent, so that a heartbeat sends only what has changed.
        self._sent_details: dict[str, str | int | float] = {}
        # What Redis has as their version while it holds what was sent: a namesake writes another,
        # and older data of Redis have an older one.
        self._version = ""
        self._reaps = False
        self._running: RunningRequest | None = None
        self._closing = threading.Event()
        self._wake = Wake()
        self._sampling = sampling
        if sampling:
            sampling.wake = self._wake.set
        self._unblock: Callable[[], int] | None = None
        self._hang_up: Callable[[], bool] = bool
        self._lane: FastLane | None = None
        self._unanswered: UnansweredCall | None = None
        self._thread = threading.Thread(target=self._live, name="scaletest-heartbeat", daemon=True)

    def forget_dead_namesake(self) -> None:
        """Unregister a worker of our name whose deadline has passed."""
        key = keys.workers(self._queue)
        deadline = self._client.zscore(key, self._worker)
        if deadline is None or float(deadline) < shown_us(self._client):
            self._client.delete(keys.rq_worker(self._worker))

    def start(self) -> None:
        """Beat once, so that the worker is registered before it takes a request, then go on in the
        background.

        Called again for a worker that was forgotten while it was frozen.
        """
        self._beat()
        if not self._thread.is_alive():
            self._thread.start()

    def watch_lane(self, lane: FastLane) -> None:
        """Check from now on whether this lane's answers arrive."""
        self._lane = lane

    def hold(self, request: str, attempt: int, *, slow: bool = False) -> None:
        """Extend the lease of this request, which runs from now on."""
        self._running = RunningRequest(request, attempt, slow)

    def let_go(self) -> bool:
        """The request has ended; whether a heartbeat may have entered it in RQ's registry of
        started jobs.

        This clears `_running` first and reads the mark then; the thread marks first and then reads
        `_running`. So whichever comes first, every entry is removed by somebody.
        """
        running, self._running = self._running, None
        return running is not None and running.registered

    @property
    def running(self) -> RunningRequest | None:
        """The running request. For any thread."""
        return self._running

    def settling(self) -> None:
        """Note that the outcome is being delivered, so that a missing lease is not a lost one."""
        if self._running is not None:
            self._running.settling = True

    def mark_suspect(self, suspect: bool) -> None:
        """Publish whether this worker's requests fail at once."""
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
        """End blocking moves of the connection with this id (0: none blocks) from now on. Safe in a
        signal handler.

        `hang_up` is called instead when Redis cannot be reached.
        """
        self._hang_up = hang_up
        self._unblock = client_id
        self._wake.set()

    def stop(self) -> None:
        """Stop beating. The worker counts as alive until `forget`, or until its deadline has
        passed.
        """
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._wake.close()

    def forget(self) -> None:
        """Delete the worker's deadline, so that a blocking move that Redis still holds gets
        nothing.
        """
        self._client.hdel(keys.rq_worker(self._worker), "until")
        self._client.zrem(keys.workers(self._queue), self._worker)
        self._client.srem(keys.suspects(self._queue), self._worker)
        self._client.close()

    def _live(self) -> None:
        due = time.monotonic()  # requests of a dead worker must not wait for the first tick
        while not self._closing.is_set():
            left = due - time.monotonic()
            if self._unblock:
                self._closing.wait(max(0.0, min(left, UNBLOCK_EVERY_S)))
            else:
                self._wake.wait(left)
                self._wake.clear()
            try:
                self._end_blocking()
                if self._sampling:
                    self._sampling.send(self._client)
                if time.monotonic() >= due:
                    due = time.monotonic() + self._tick_s
                    self._beat()
                    try:
                        self._renew()
                    finally:  # it has the turn to reap, whatever becomes of its own leases
                        due = min(due, time.monotonic() + self._reap_in_turn())
            except Exception as error:
                due = min(due, time.monotonic() + RETRY_S)
                self._failed(error)

    def _end_blocking(self) -> None:
        """End a stopping worker's wait for a request. It may be just about to wait, so this is
        repeated.
        """
        client_id = self._unblock() if self._unblock else 0
        if client_id:
            self._client.client_unblock(client_id)

    def _beat(self) -> None:
        running, pending = self._running, self._lane.pending if self._lane else None
        if running is not None:
            running.registered = True
            if self._running is not running:
                running = None
        owned, answered, sampled = self._send_beat(running, pending)
        if self._sampling:
            self._sampling.answered(sampled)
        if not owned and running is self._running and running is not None and not running.settling:
            logger.warning(
                "worker %s lost its lease on request %s, finishing it nevertheless",
                self._worker,
                running,
            )
        self._look_for_answer(pending, answered)

    def _send_beat(
        self, running: RunningRequest | None, pending: PendingCall | None
    ) -> tuple[bool, bool, list[int]]:
        """Whether the lease is held, whether the call was answered, and the answer for the sampler.

        When Redis does not have the details that were sent before, the heartbeat is sent again with
        all of them.
        """
        details = dict(self._details())
        # Forgotten until the answer is here: after a heartbeat whose answer is lost, all details
        # are sent again.
        sent, self._sent_details = self._sent_details, {}
        changed = {name: text for name, text in details.items() if sent.get(name) != text}
        owned, answered, turn, known, *sampled = self._call_beat(running, pending, changed)
        self._reaps = self._reaps or bool(turn)
        if not known and changed != details:
            return self._send_beat(running, pending)
        self._sent_details = details
        return bool(owned), bool(answered), sampled

    def _call_beat(
        self,
        running: RunningRequest | None,
        pending: PendingCall | None,
        changed: Mapping[str, str | int | float],
    ) -> Any:
        before = self._version
        if changed:
            self._version = call_nonce()
        return script("beat")(
            self._client,
            [
                keys.rq_worker(self._worker),
                keys.leases(self._queue),
                keys.workers(self._queue),
                keys.rq_started(self._queue),
                keys.RQ_WORKERS,
                keys.rq_queue_workers(self._queue),
                keys.QUEUES,
                keys.samplers(self._queue),
                keys.counters(self._queue),
                keys.reaps(self._queue),
            ],
            [
                self._worker,
                int(LEASE_INTERVALS * self._interval_us),
                running.id if running else "",
                running.attempt if running else 0,
                self._interval_us,
                int(running is not None and running.slow),
                pending.call if pending else "",
                pending.delivers if pending else "",
                self._queue,
                self._sampling.asks if self._sampling else "",
                int(self._tick_s * 1e6),
                before,
                self._version,
                *itertools.chain.from_iterable(changed.items()),
            ],
        )

    def _look_for_answer(self, pending: PendingCall | None, answered: bool) -> None:
        """Break the lane's connection when the answer was missing at the last heartbeat as well.

        Redis is alive, since it answered this heartbeat. So the answer was lost, or the call was,
        and repeating the call is safe: it gets the same answer, as long as the worker still holds
        its request.
        """
        before, now = self._unanswered, time.monotonic()
        if pending is None:
            self._unanswered = None
        elif before is None or before.call != pending.call:
            self._unanswered = UnansweredCall(pending.call, now, answered)
        elif before.answered or now - before.since >= pending.block_s:
            self._unanswered = None
            if self._lane is not None and self._lane.pending is pending and self._lane.break_off():
                logger.warning(
                    "worker %s: an answer of Redis was lost on its way, asking again", self._worker
                )
        else:
            before.answered = answered

    def _reap_in_turn(self) -> float:
        """Reap if the last heartbeat gave this worker the turn; in how many seconds to come
        again.
        """
        return self._reap() if self._reaps else self._tick_s

    def _reap(self) -> float:
        """Take back requests of dead workers; in how many seconds to check again."""
        next_s = reap(self._client, self._queue, self._max_attempts, self._interval_us).next_s
        self._reaps = False
        return self._tick_s if next_s is None else max(SOONEST_LOOK_S, next_s)

    def _failed(self, error: Exception) -> None:
        """Handle a failed heartbeat; the thread goes on. The main thread logs outages, this one
        anything else.

        A server that hangs, or vanished without closing its connections, would keep a stopping
        worker in a read for half a minute, so the connection is closed.
        """
        if self._hang_up():
            logger.warning(
                "worker %s is idle and stops without Redis: %s", self._worker, cut(str(error), 200)
            )
        if not transient(error):
            logger.error("worker %s: heartbeat failed: %s", self._worker, cut(str(error), 200))
        self._closing.wait(RETRY_S)
