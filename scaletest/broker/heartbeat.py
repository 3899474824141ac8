"""A worker's heartbeat: the thread by which Redis knows that a worker is alive.

A worker takes requests out of a queue in Redis and runs them one by one. While it runs one, Redis
keeps a lease for it: a note of who has this request, with a deadline. The worker has a deadline,
too. Every few seconds the heartbeat moves both into the future. A worker that died sends no
heartbeats, so its deadlines pass, and another worker reaps: it puts the request back into the queue
(reaping.py).

One heartbeat is one call of a script that Redis runs as a whole (lua/beat.lua). Its answer tells
whether the worker still holds its lease, whether it is its turn to reap, and whether Redis has
answered the call that the worker's main thread waits for (UnansweredCall).

A heartbeat also writes what the tools of RQ read, the library of jobs that all this is built on:
that this worker lives, its details, and which job it runs.

The thread beats whatever the workload is doing, on a connection of its own. While Redis is away it
keeps trying. Deadlines are on a clock that stands still then (lua/pulse.lua), so that an outage
costs nobody a lease.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.fast_lane import FastLane, PendingCall, call_nonce
from scaletest.broker.queue_state import deadline_clock_us
from scaletest.broker.reaping import reap
from scaletest.broker.redis_errors import excuse_outage, is_transient
from scaletest.broker.samples import SamplerLease
from scaletest.broker.scripts import script
from scaletest.model.checks import cut_text
from scaletest.processes.wake import Wake

logger = logging.getLogger("scaletest.broker")

# The interval that an operator sets. Heartbeats come twice an interval.
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
# A request whose workers died so often fails as lost instead of going back to its queue.
MAX_ATTEMPTS = 3
# How often a stopping worker's wait for a request is ended.
UNBLOCK_EVERY_S = 0.02
# The pause after a heartbeat that failed.
RETRY_S = 0.2
# A heartbeat waits for an answer only until the next one is due, or a dead connection would cost
# the lease.
SHORTEST_PATIENCE_S, LONGEST_PATIENCE_S = 1.0, 5.0


@dataclass(slots=True)
class RunningRequest:
    """The request that a worker runs now."""

    id: str
    attempt: int  # how many workers took it, this one included
    slow: bool = False  # RQ's own code runs it, and keeps RQ's registries of jobs
    registered: bool = False  # a heartbeat may have entered it in RQ's registry of started jobs
    settling: bool = False  # its outcome is being delivered, which ends the lease


@dataclass(slots=True)
class UnansweredCall:
    """A call of the main thread that waited for its answer at an earlier heartbeat.

    A connection may die silently, as when a router forgets it. The main thread would then wait for
    its answer until its socket gives up. Heartbeats go over another connection, and tell sooner:
    Redis is alive, and it has answered the call already, or should have. Then the connection is
    broken off, and the main thread sends its call again. That is safe: the call gets the same
    answer, as long as the worker still holds its request.
    """

    call: str
    since: float  # time of that heartbeat, on the monotonic clock
    answered: bool  # whether Redis had answered it by the last heartbeat


def patience_s(interval_s: float) -> float:
    """Return the seconds that a heartbeat waits for an answer."""
    return max(SHORTEST_PATIENCE_S, min(interval_s / 2, LONGEST_PATIENCE_S))


class Heartbeat:
    """Beats for one worker of one queue until closed.

    The worker's main thread calls `hold` before a request and `let_go` after it. running: the
    request in between, for any thread. lane: what the main thread talks to Redis by; its answers
    are checked.
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
        """details: what tools shall see of the worker, by name. renew: called by the thread after
        every heartbeat, to extend the worker's other leases.

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
        # What Redis has as their version while it holds what was sent: another worker of this name
        # writes another, and older data of Redis have an older one.
        self._version = ""
        # whether a heartbeat gave this worker the turn to reap, which it has not taken yet
        self._reaps = False
        self.running: RunningRequest | None = None
        self._closing = threading.Event()
        # makes the thread look at once: for a signal handler, and for the sampler's thread
        self._wake = Wake()
        self._sampling = sampling
        if sampling:
            sampling.wake = self._wake.set
        # given by `unblock`, when the worker stops
        self._unblock: Callable[[], int] | None = None
        self._hang_up: Callable[[], bool] = bool
        self.lane: FastLane | None = None
        # the call whose answer was missing at the last heartbeat
        self._unanswered: UnansweredCall | None = None
        self._thread = threading.Thread(target=self._live, name="scaletest-heartbeat", daemon=True)

    # -- the life of the worker, for its main thread
    # ----------------------------------------------------------------------------------------------

    def forget_dead_namesake(self) -> None:
        """Unregister a worker of our name whose deadline has passed."""
        deadline = self._client.zscore(keys.workers(self._queue), self._worker)
        if deadline is None or float(deadline) < deadline_clock_us(self._client):
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
        """Note that the request has ended; return whether a heartbeat may have entered it in RQ's
        registry of started jobs.

        This clears `running` first and reads the mark then; the thread marks first and then reads
        `running`. So whichever comes first, every entry is removed by somebody.
        """
        running, self.running = self.running, None
        return running is not None and running.registered

    def note_settling(self) -> None:
        """Note that the outcome is being delivered, so that a missing lease is not a lost one."""
        if self.running is not None:
            self.running.settling = True

    def mark_suspect(self, suspect: bool) -> None:
        """Publish whether this worker's requests fail at once."""
        mark = self._client.sadd if suspect else self._client.srem
        with excuse_outage():
            mark(keys.suspects(self._queue), self._worker)

    def unblock(self, client_id: Callable[[], int], hang_up: Callable[[], bool]) -> None:
        """End the main thread's waits for a request from now on. Safe in a signal handler.

        client_id: Redis's number of the connection that waits, 0 while none does. hang_up: breaks
        that connection instead, when Redis cannot be reached; whether it did.
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
        """Delete the worker's deadline, so that a wait for a request that Redis still holds gets
        nothing.
        """
        self._client.hdel(keys.rq_worker(self._worker), "until")
        self._client.zrem(keys.workers(self._queue), self._worker)
        self._client.srem(keys.suspects(self._queue), self._worker)
        self._client.close()

    # -- the thread
    # ----------------------------------------------------------------------------------------------

    def _live(self) -> None:
        """Beat when a heartbeat is due, until `stop`; an error costs one heartbeat."""
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
                # A server that hangs, or vanished without closing its connections, would keep a
                # stopping worker in a read for half a minute.
                if self._hang_up():
                    logger.warning(
                        "worker %s is idle and stops without Redis: %s",
                        self._worker,
                        cut_text(str(error), 200),
                    )
                if not is_transient(error):  # the main thread logs outages
                    logger.error(
                        "worker %s: heartbeat failed: %s", self._worker, cut_text(str(error), 200)
                    )
                self._closing.wait(RETRY_S)

    def _beat(self) -> None:
        """Send one heartbeat, and act on its answer."""
        running, pending = self.running, self.lane.pending if self.lane else None
        if running is not None:
            running.registered = True
            if self.running is not running:  # it has just ended: see `let_go`
                running = None
        # When Redis does not have the details that were sent before, the heartbeat is sent again
        # with all of them.
        is_known = False
        while not is_known:
            details = dict(self._details())
            # Forgotten until the answer is here: after a heartbeat whose answer is lost, all
            # details are sent again.
            sent, self._sent_details = self._sent_details, {}
            changed = {name: text for name, text in details.items() if sent.get(name) != text}
            is_held, is_answered, has_turn, known, *sampled = self._call_beat(
                running, pending, changed
            )
            self._reaps = self._reaps or bool(has_turn)
            is_known = bool(known) or changed == details
        self._sent_details = details
        if self._sampling:
            self._sampling.take_answer(sampled)
        if not is_held and running is self.running and running is not None and not running.settling:
            logger.warning(
                "worker %s lost its lease on request %s, finishing it nevertheless",
                self._worker,
                running,
            )
        if self._break_off_unanswered(pending, bool(is_answered)):
            logger.warning(
                "worker %s: an answer of Redis was lost on its way, asking again", self._worker
            )

    def _break_off_unanswered(self, pending: PendingCall | None, answered: bool) -> bool:
        """Break off the lane's connection when the answer was missing at an earlier heartbeat as
        well; return whether that was done.

        pending: the call that waited when this heartbeat was sent. answered: whether Redis had
        answered it then.
        """
        before, now = self._unanswered, time.monotonic()
        self._unanswered = None
        if pending is None:
            return False
        if before is None or before.call != pending.call:
            self._unanswered = UnansweredCall(pending.call, now, answered)
            return False
        if not before.answered and now - before.since < pending.block_s:
            # it may still wait for a request to arrive
            self._unanswered = before
            before.answered = answered
            return False
        return self.lane is not None and self.lane.pending is pending and self.lane.break_off()

    def _call_beat(
        self,
        running: RunningRequest | None,
        pending: PendingCall | None,
        changed: Mapping[str, str | int | float],
    ) -> Any:
        """Call lua/beat.lua, whose head explains the keys, the arguments and the answer."""
        version_before = self._version
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
                self._sampling.requested_node if self._sampling else "",
                int(self._tick_s * 1e6),
                version_before,
                self._version,
                *itertools.chain.from_iterable(changed.items()),
            ],
        )

    def _reap_in_turn(self) -> float:
        """Reap if a heartbeat gave this worker the turn; return in how many seconds to come
        again.
        """
        return self._reap() if self._reaps else self._tick_s

    def _reap(self) -> float:
        """Take back requests of dead workers; return in how many seconds to check again."""
        next_s = reap(self._client, self._queue, self._max_attempts, self._interval_us).next_s
        self._reaps = False
        return self._tick_s if next_s is None else max(SOONEST_LOOK_S, next_s)
