"""A worker's heartbeat: the thread by which Redis knows that a worker is alive.

A worker takes requests out of a queue in Redis and runs them one by one. Its main thread does that.
While a request runs, Redis keeps a lease for it: a note of which worker has it, with a deadline.
The worker itself has a deadline, too. Every few seconds a heartbeat moves both deadlines into the
future. A worker that died sends no heartbeats, so its deadlines pass. Then another worker reaps: it
puts the dead worker's request back into the queue (reaping.py).

One heartbeat is one call of a script that Redis runs as a whole (lua/beat.lua). Its answer says
whether the worker still holds its lease, and whether it is this worker's turn to reap.

A heartbeat also writes what the tools of RQ read, the library of jobs that all this is built on:
that this worker lives, its details, and which job it runs.

The thread beats whatever the workload is doing, over a connection of its own. While Redis is away
it keeps trying. Deadlines are on a clock that stands still then (lua/pulse.lua), so that an outage
costs no lease.
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
from scaletest.broker.fast_lane import FastLane
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
SOONEST_REAP_S = 0.05
# A request whose workers died so often fails as lost instead of going back to its queue.
MAX_ATTEMPTS = 3
# How often a stopping worker's wait for a request is ended.
UNBLOCK_EVERY_S = 0.02
# The pause after a heartbeat that failed.
RETRY_S = 0.2
# A heartbeat waits for its answer only until the next one is due, within these bounds. If it waited
# longer on a dead connection, the lease would end.
SHORTEST_PATIENCE_S = 1.0
LONGEST_PATIENCE_S = 5.0

# What tools shall see of a worker, by name.
Details = Mapping[str, str | int | float]


@dataclass(slots=True)
class RunningRequest:
    """The request that a worker runs now."""

    id: str
    attempt: int  # how many workers took it, this one included
    by_rq: bool = False  # RQ's own code runs it, and enters it in RQ's registries
    registered: bool = False  # a heartbeat may have entered it in RQ's registry of started jobs


def patience_s(interval_s: float) -> float:
    """Return how many seconds a heartbeat waits for its answer.

    The worker limits the reads of the connection by it, which it makes for its Heartbeat.
    interval_s: the interval that an operator sets.
    """
    return max(SHORTEST_PATIENCE_S, min(interval_s / 2, LONGEST_PATIENCE_S))


class Heartbeat:
    """Beats for one worker of one queue until stopped.

    The worker's main thread calls `note_start` before a request and `note_end` after it.
    """

    def __init__(
        self,
        client: Redis,
        worker: str,
        queue: str,
        *,
        interval_s: float = DEFAULT_INTERVAL_S,
        max_attempts: int = MAX_ATTEMPTS,
        details: Callable[[], Details] = dict,
        renew: Callable[[], None] | None = None,
        sampling: SamplerLease | None = None,
    ) -> None:
        """Prepare the heartbeat of `worker` over `client`, which is used for nothing else.

        details: returns what tools shall see of the worker. renew: extends the worker's other
        leases; the thread calls it after every heartbeat.

        sampling: the right to sample the resources of this worker's node, which heartbeats request.
        Without it another worker samples, or none.
        """
        self._client = client
        self._worker = worker
        self._queue = queue
        self._interval_us = int(interval_s * 1e6)
        self._tick_s = min(interval_s / 2, LONGEST_TICK_S)
        self._max_attempts = max_attempts
        self._details = details
        self._renew = renew
        self._sampling = sampling
        # The request between `note_start` and `note_end`. Any thread may read it.
        self.running: RunningRequest | None = None
        # What the main thread talks to Redis by; it is given once there is one.
        self.lane: FastLane | None = None
        # Whether a heartbeat gave this worker the turn to reap, which it has not taken yet.
        self._has_turn = False
        # Whether the worker stops, so that its main thread must not wait for a request.
        self._ends_waits = False
        self._closing = threading.Event()
        # Wakes the thread from its sleep: used by a signal handler, and by the sampler's thread.
        self._wake = Wake()
        if sampling:
            sampling.wake = self._wake.set
        self._thread = threading.Thread(target=self._run, name="scaletest-heartbeat", daemon=True)

    # -- for the worker's main thread, in the order of its life
    # ----------------------------------------------------------------------------------------------

    def forget_dead_namesake(self) -> None:
        """Unregister a worker of our name whose deadline has passed."""
        deadline = self._client.zscore(keys.workers(self._queue), self._worker)
        if deadline is None or float(deadline) < deadline_clock_us(self._client):
            self._client.delete(keys.rq_worker(self._worker))

    def start(self) -> None:
        """Beat once, then continue in the background.

        The first heartbeat registers the worker, which must be known before it takes a request. A
        worker that was frozen until others forgot it calls this again.

        The thread beats again at once, for what is not done here: it renews the worker's other
        leases, and reaps if a heartbeat gave it the turn.
        """
        self._beat()
        if not self._thread.is_alive():
            self._thread.start()

    def note_start(self, request: str, attempt: int, *, by_rq: bool = False) -> None:
        """Note the request that runs from now on, so that heartbeats extend its lease."""
        self.running = RunningRequest(request, attempt, by_rq)

    def note_end(self) -> bool:
        """Note that the request has ended; return whether RQ's registry may have an entry of it.

        The caller removes that entry. This clears `running` first and reads the mark afterwards,
        while `_beat` sets the mark first and reads `running` afterwards. So whichever comes first,
        no entry stays behind.
        """
        running, self.running = self.running, None
        return running is not None and running.registered

    def mark_suspect(self, suspect: bool) -> None:
        """Publish whether this worker is a suspect: one whose requests fail at once, one by one.

        Tools show suspects to operators. While Redis is away nothing is published.
        """
        publish = self._client.sadd if suspect else self._client.srem
        with excuse_outage():
            publish(keys.suspects(self._queue), self._worker)

    def end_waits(self) -> None:
        """End the main thread's waits for a request, from now on. Safe in a signal handler."""
        self._ends_waits = True
        self._wake.set()

    def stop(self) -> None:
        """Stop beating. The worker counts as alive until `forget` or the end of its deadline."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._wake.close()

    def forget(self) -> None:
        """Delete the worker's deadline, and close the connection.

        Redis may still hold a call by which this worker waited for a request. Without the deadline
        that call gets none.
        """
        self._client.hdel(keys.rq_worker(self._worker), "until")
        self._client.zrem(keys.workers(self._queue), self._worker)
        self._client.srem(keys.suspects(self._queue), self._worker)
        self._client.close()

    # -- the thread
    # ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """Beat when a heartbeat is due, until `stop`; an error costs one heartbeat."""
        due = time.monotonic()  # at once: see `start`; requests of a dead worker wait for this
        while not self._closing.is_set():
            # sleep until a heartbeat is due, or something else is to be done
            left_s = due - time.monotonic()
            if self._ends_waits:
                self._closing.wait(max(0.0, min(left_s, UNBLOCK_EVERY_S)))
            else:
                self._wake.wait(left_s)
                self._wake.clear()
            try:
                # Let Redis end the main thread's wait for a request. The thread may be just about
                # to wait, so this is repeated every UNBLOCK_EVERY_S. Redis knows its connection by
                # a number, which is 0 before there is one.
                lane = self.lane
                if self._ends_waits and lane is not None and lane.idle and lane.client_id:
                    self._client.client_unblock(lane.client_id)
                if self._sampling:
                    self._sampling.send(self._client)
                if time.monotonic() >= due:
                    due = time.monotonic() + self._tick_s
                    self._beat()
                    try:
                        if self._renew is not None:
                            self._renew()
                    finally:  # it has the turn to reap, whatever becomes of its other leases
                        if self._has_turn:
                            due = min(due, time.monotonic() + self._reap())
            except Exception as error:
                due = min(due, time.monotonic() + RETRY_S)
                # A server that hangs, or vanished without closing its connections, would keep a
                # stopping worker in a read until its socket gives up.
                if self._ends_waits and self.lane is not None:
                    self.lane.hang_up()
                if not is_transient(error):  # the main thread logs outages
                    logger.error(
                        "worker %s: heartbeat failed: %s", self._worker, cut_text(str(error), 200)
                    )
                self._closing.wait(RETRY_S)

    def _beat(self) -> None:
        """Send one heartbeat, and act on its answer."""
        # In this order: a request that ends in between is found in the call that delivers it.
        running = self.running
        delivering = self.lane.delivering if self.lane else ""
        if running is not None:
            running.registered = True
            if self.running is not running:  # it has just ended: see `note_end`
                running = None
        is_held, has_turn, *node_answer = self._call_beat(running, delivering)
        self._has_turn = self._has_turn or bool(has_turn)
        if self._sampling:
            self._sampling.take_answer(node_answer)
        if not is_held and running is not None and running is self.running:
            logger.warning(
                "worker %s lost its lease on request %s, finishing it nevertheless",
                self._worker,
                running.id,
            )

    def _call_beat(self, running: RunningRequest | None, delivering: str) -> Any:
        """Call lua/beat.lua, whose head explains the keys, the arguments and the answer."""
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
                int(running is not None and running.by_rq),
                delivering,
                self._queue,
                self._sampling.requested_node if self._sampling else "",
                int(self._tick_s * 1e6),
                *itertools.chain.from_iterable(self._details().items()),
            ],
        )

    def _reap(self) -> float:
        """Take back requests of dead workers; return in how many seconds to check again."""
        next_s = reap(self._client, self._queue, self._max_attempts, self._interval_us)
        self._has_turn = False
        return self._tick_s if next_s is None else max(SOONEST_REAP_S, next_s)
