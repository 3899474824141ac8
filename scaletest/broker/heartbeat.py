"""A worker's heartbeat: a thread that extends leases and, when its turn comes, takes back requests
of dead workers.

It runs whatever the workload is doing, on a connection of its own. While Redis is away it keeps
trying; deadlines are on a clock that stands still then (lua/pulse.lua), so that an outage costs
nobody a lease. It also notices a fast lane whose connection died silently: when Redis answered a
call, or should have, and the lane still waits, the heartbeat breaks that connection, and the lane
sends its call again.

The workers of a queue take turns to reap it; a watcher reaps all queues. Without a watcher the
running requests of a queue whose last worker died would stay leased until another worker comes, and
an autoscaler that counts waiting requests would not see them. A watcher also drops requests of dead
clients: workers drop those that they take, but where no worker runs an autoscaler would start some
for nobody.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis, outage_excused, transient
from scaletest.broker.fast_lane import FastLane, PendingCall, call_nonce
from scaletest.broker.queues import Queues, shown_us
from scaletest.broker.samples import SamplerLease
from scaletest.broker.scripts import script
from scaletest.model.checks import cut
from scaletest.processes.wake import Wake

logger = logging.getLogger("scaletest.broker")

# Entries that one script checks, and scripts a tick that check queues, for all queues together. A
# tick of the exporter comes every 2.5 s, so it takes a few percent of Redis where very many wait,
# and minutes for a million.
PIECE = 200
MOST_PIECES = 100
# Leases, workers and clients that one call takes back: each call blocks Redis for milliseconds.
REAP_BATCH = 50


class Reaped(NamedTuple):
    """Counts of requests taken back. next_s: seconds until the next lease ends unless it is
    extended, None for none.
    """

    requeued: int
    failed: int
    next_s: float | None


def reap(redis: Redis, queue: str, max_attempts: int, interval_us: int) -> Reaped:
    """Take back requests of one queue's dead workers: how many were put back, how many lost."""
    names = [
        keys.leases(queue),
        keys.workers(queue),
        keys.rq_queue(queue),
        keys.rq_started(queue),
        keys.counters(queue),
        keys.rq_queue_workers(queue),
        keys.taking(queue),
        keys.samplers(queue),
    ]
    requeued = failed = 0
    more = True
    while more:
        back, lost, more, next_us = script("reap")(
            redis, names, [queue, max_attempts, interval_us, REAP_BATCH]
        )
        requeued, failed = requeued + back, failed + lost
    if requeued or failed:
        logger.warning(
            "queue %s: %d lost requests put back, %d failed as lost", queue, requeued, failed
        )
    return Reaped(requeued, failed, None if next_us is None else next_us / 1e6)


class Watcher:
    """Reaps every declared queue, and drops requests of dead clients from it, for a process that is
    not a worker. Call `tick` twice an interval.

    It also keeps the clock of deadlines going, which stands still without heartbeats: on a queue
    without workers and clients nobody else would.
    """

    def __init__(self, redis: Redis, interval_s: float, max_attempts: int) -> None:
        self._redis = redis
        self._interval_us = int(interval_s * 1e6)
        self._max_attempts = max_attempts
        # where the next tick continues in a queue that is too long for one tick
        self._places: dict[str, int] = {}

    def tick(self) -> tuple[int, int]:
        """How many requests were put back, and how many failed as lost. An error of one queue is
        raised at the end.
        """
        script("watch")(self._redis, [keys.DEVICES], [self._interval_us])
        requeued = failed = 0
        trouble: ResponseError | None = None
        names = Queues(self._redis).names()
        pieces = max(1, MOST_PIECES // max(1, len(names)))
        for name in names:
            try:
                back, lost, _ = reap(self._redis, name, self._max_attempts, self._interval_us)
                self._drop_abandoned(name, pieces)
            except ResponseError as error:
                if transient(error):
                    raise
                # the keys of this queue contain something else: the others are reaped nevertheless
                trouble = trouble or error
                continue
            requeued, failed = requeued + back, failed + lost
        self._places = {name: place for name, place in self._places.items() if name in names}
        if trouble is not None:
            raise trouble
        return requeued, failed

    def _drop_abandoned(self, queue: str, pieces: int) -> None:
        """Check so many pieces of a queue, from where the last tick ended, at most all once."""
        names = [keys.rq_queue(queue), keys.counters(queue)]
        place, total = self._places.get(queue, 0), 0
        for _ in range(pieces):
            place, dropped = script("desert")(self._redis, names, [place, PIECE, self._interval_us])
            total += dropped
            if place < 0:
                break
        self._places[queue] = max(0, place)
        if total:
            logger.warning(
                "queue %s: %d requests dropped, since their clients are gone", queue, total
            )


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

    running: the request that runs, for any thread. lane: the one whose answers are checked.
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
        self.running: RunningRequest | None = None
        self._closing = threading.Event()
        self._wake = Wake()
        self._sampling = sampling
        if sampling:
            sampling.wake = self._wake.set
        self._unblock: Callable[[], int] | None = None
        self._hang_up: Callable[[], bool] = bool
        self.lane: FastLane | None = None
        self._unanswered: UnansweredCall | None = None
        self._thread = threading.Thread(target=self._live, name="scaletest-heartbeat", daemon=True)

    def forget_dead_namesake(self) -> None:
        """Unregister a worker of our name whose deadline has passed."""
        deadline = self._client.zscore(keys.workers(self._queue), self._worker)
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

    def hold(self, request: str, attempt: int, *, slow: bool = False) -> None:
        """Extend the lease of this request, which runs from now on."""
        self.running = RunningRequest(request, attempt, slow)

    def let_go(self) -> bool:
        """The request has ended; whether a heartbeat may have entered it in RQ's registry of
        started jobs.

        This clears `running` first and reads the mark then; the thread marks first and then reads
        `running`. So whichever comes first, every entry is removed by somebody.
        """
        running, self.running = self.running, None
        return running is not None and running.registered

    def settling(self) -> None:
        """Note that the outcome is being delivered, so that a missing lease is not a lost one."""
        if self.running is not None:
            self.running.settling = True

    def mark_suspect(self, suspect: bool) -> None:
        """Publish whether this worker's requests fail at once."""
        mark = self._client.sadd if suspect else self._client.srem
        with outage_excused():
            mark(keys.suspects(self._queue), self._worker)

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
                # a stopping worker may be just about to wait for a request: so this is repeated
                client_id = self._unblock() if self._unblock else 0
                if client_id:
                    self._client.client_unblock(client_id)
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

    def _beat(self) -> None:
        running, pending = self.running, self.lane.pending if self.lane else None
        if running is not None:
            running.registered = True
            if self.running is not running:
                running = None
        owned, answered, sampled = self._send_beat(running, pending)
        if self._sampling:
            self._sampling.answered(sampled)
        if not owned and running is self.running and running is not None and not running.settling:
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
            if self.lane is not None and self.lane.pending is pending and self.lane.break_off():
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
