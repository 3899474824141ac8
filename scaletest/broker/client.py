"""A client of queues: one identity that submits requests, and gets a reply to each.

A heartbeat of its own keeps it alive for Redis: requests of a client that is gone are dropped. The
heartbeat also notices a Redis that was restarted, and may have forgotten requests or replies;
`recover` submits again what is lost.

Submitting is one call for many requests, and safe to repeat: the call carries a number, and Redis
keeps the last number with its answer.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial

import redis.exceptions
from rq.command import send_command

from scaletest.broker import jobs, keys
from scaletest.broker.cancellation import Cancellation
from scaletest.broker.connection import Redis
from scaletest.broker.fast_lane import call_nonce
from scaletest.broker.queue_state import pairs_of, text_of
from scaletest.broker.queues import Queues
from scaletest.broker.redis_errors import excuse_outage, is_transient
from scaletest.broker.reply_reader import Reader, entry_order, parse_replies
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import script
from scaletest.model.errors import InvalidValue, QueueFull, UndeclaredQueue, WaitTimeout
from scaletest.model.record import Reply, Request, Schedule
from scaletest.processes.periodic import Periodic

logger = logging.getLogger("scaletest.broker")

# One script call blocks Redis for every other client, so large submissions are cut into pieces: so
# many requests, or as many as have so long arguments in all.
SUBMIT_BATCH = 250
SUBMIT_CHARACTERS = 250_000
# How long a queue may be undeclared that took requests of ours. A Redis that lost its data declares
# none; an exporter, or an operator, declares them again.
DECLARED_AGAIN_S = 60.0
HEARTBEAT_S = 2.5
CLIENT_TTL_S = 60.0
# After two and a half heartbeats without an answer requests cannot be submitted.
AWAY_AFTER_S = 6.0
# So often Redis is asked for all that has no reply: it may have forgotten some without a restart
# that we saw, as when its file was cut in the middle of a transaction.
ASK_EVERY_S = 60.0
# Ids that one such call asks for: it blocks Redis for every other client.
ASK_BATCH = 250
RESULT_TTL_S = 500

# Ids of requests that Redis forgot, and up to where replies must be read before that is sure.
Lost = tuple[list[str], tuple[int, int]]


class Client:
    """Submits to queues under one identity and reads its own replies.

    Close it, or use it as a context. Not for several threads at once, but `wake` may be called from
    anywhere. While Redis is away every call waits with back-off, at most `patience_s` seconds
    (None: for ever).
    """

    def __init__(
        self, redis: Redis, *, patience_s: float | None = None, name: str | None = None
    ) -> None:
        self.name = name or uuid.uuid4().hex[:16]
        self._redis = redis
        self._leaving = threading.Event()
        self._retrying = Retrying(
            f"client {self.name}", patience_s=patience_s, sleep=self._leaving.wait
        )
        self._request_numbers = itertools.count(1)
        # each submission's number is larger than those before it
        self._nonce = call_nonce()
        self._call_numbers = itertools.count(1)
        # queues that took requests of ours: since when they are not declared, None while they are
        self._undeclared_since: dict[str, float | None] = {}
        # queues that were said to have no scheduler
        self._unscheduled: set[str] = set()
        # what `recover` knows to be lost, and when it last asked
        self._lost: Lost | None = None
        self._asked_at = time.monotonic()
        self._reader = Reader(redis, keys.replies(self.name))
        # the run id of the server, and whether it may have forgotten something
        self._server = ""
        self._may_have_forgotten = False
        self._beaten_at = time.monotonic()
        self._retrying.run(self._beat)
        self._heart = Periodic("client-heart", self._beat_again, HEARTBEAT_S)
        self._heart.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_id(self) -> str:
        """Return a new request id, unique across clients."""
        return f"{self.name}-{next(self._request_numbers)}"

    def submit(
        self, requests: Sequence[Request], *, reply: bool = True, result_ttl_s: int = RESULT_TTL_S
    ) -> int:
        """Enqueue requests of one queue in order; return how many were accepted.

        They are fewer only when the queue is full, or is not declared any more and may be declared
        again. With `reply` each gets a reply here; without, an ordinary RQ result is kept for
        `result_ttl_s` seconds. Raises UndeclaredQueue.
        """
        accepted = 0
        batch: list[Request] = []
        batch_characters = 0
        for number, request in enumerate(requests, 1):
            batch.append(request)
            batch_characters += sum(map(len, request.arguments))
            is_full = len(batch) == SUBMIT_BATCH or batch_characters >= SUBMIT_CHARACTERS
            is_last = number == len(requests)
            # a call has one schedule; those that are submitted again may have several
            if is_full or is_last or requests[number].schedule is not request.schedule:
                taken = self._submit_batch(batch, reply, result_ttl_s)
                accepted += taken
                if taken < len(batch):
                    break
                batch = []
                batch_characters = 0
        return accepted

    def _submit_batch(self, batch: Sequence[Request], reply: bool, result_ttl_s: int) -> int:
        """Enqueue a batch by one call; return how many requests were accepted."""
        queue = batch[0].queue
        if any(request.queue != queue for request in batch):
            raise InvalidValue(
                "one submission holds requests of several queues",
                hint="submit each queue by itself",
            )
        names = [
            keys.QUEUES,
            keys.RQ_QUEUES,
            keys.rq_queue(queue),
            keys.counters(queue),
            keys.client(self.name),
            keys.slots(queue),
            keys.rq_scheduled(queue),
            keys.rq_scheduler_lock(queue),
        ]
        schedule = batch[0].schedule
        arguments: list[bytes | str | float] = [
            queue,
            self.name,
            f"{self._nonce}:{next(self._call_numbers):012}",
            int(CLIENT_TTL_S * 1e6),
            int(reply),
            result_ttl_s,
            schedule.delay_s,
            time.time(),
            schedule.retries,
            json.dumps(schedule.intervals_s),
        ]
        for request in batch:
            arguments += [request.id, jobs.encode(request), jobs.rq_timeout(request)]
        try:
            answer = self._retrying.run(lambda: script("submit")(self._redis, names, arguments))
        except redis.exceptions.ResponseError as error:
            if "STALECALL" not in str(error):
                raise
            # our own calls grow, so a larger one is not ours
            raise InvalidValue(
                f"another client named {self.name!r} already uses this Redis",
                hint="give every client a name of its own, or none",
            ) from error
        if answer is None:
            if self._may_be_declared_again(queue):
                return 0
            raise UndeclaredQueue(queue, Queues(self._redis).names())
        self._undeclared_since[queue] = None
        accepted = int(answer[0])
        if accepted < 0:
            Queues(self._redis).state(queue)  # raises what is wrong with its entry
            return 0
        self._warn_of_no_scheduler(queue, schedule, bool(answer[2]))
        return accepted

    def _may_be_declared_again(self, queue: str) -> bool:
        """Return whether an undeclared queue took requests of ours, a short time ago."""
        if queue not in self._undeclared_since:
            return False
        now = time.monotonic()
        since = self._undeclared_since[queue]
        if since is None:
            since = now
            self._undeclared_since[queue] = now
            logger.warning(
                "client %s: queue %s is no longer declared; waiting %g s for it to be declared"
                " again",
                self.name,
                queue,
                DECLARED_AGAIN_S,
            )
        return now - since < DECLARED_AGAIN_S

    def _warn_of_no_scheduler(self, queue: str, schedule: Schedule, has_one: bool) -> None:
        """Warn once that no scheduler enqueues a queue's delayed requests when they are due."""
        is_delayed = schedule.delay_s or any(schedule.intervals_s)
        if is_delayed and not has_one and queue not in self._unscheduled:
            self._unscheduled.add(queue)
            logger.warning(
                "queue %s: nobody enqueues delayed requests yet; start one of its workers with"
                " --with-scheduler",
                queue,
            )

    def submit_one(
        self, request: Request, *, reply: bool = True, result_ttl_s: int = RESULT_TTL_S
    ) -> None:
        """Enqueue one request; raises UndeclaredQueue or QueueFull."""
        if not self.submit([request], reply=reply, result_ttl_s=result_ttl_s):
            raise QueueFull(request.queue, Queues(self._redis).state(request.queue).maximum)

    def replies(self, timeout_s: float) -> list[Reply]:
        """Return replies; wait up to `timeout_s` for the first, less when `wake` is called."""
        return list(parse_replies(self._retrying.run(lambda: self._reader.read(timeout_s))))

    def wait_for(self, request: Request, timeout_s: float) -> Reply:
        """Return the reply to a request that this client submitted.

        When there is none in time, the request is cancelled and WaitTimeout raised.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for reply in self.replies(min(2.0, max(0.0, deadline - time.monotonic()))):
                if reply.id == request.id:
                    return reply
            self.recover({request.id: request})
        was_waiting = self.cancel(request.queue, [request.id])
        state = "was dropped" if was_waiting else "still runs"
        raise WaitTimeout(
            f"no reply came within {timeout_s:g} s; the request {state}",
            hint="see whether a worker serves the queue: scaletest queue show",
        )

    @property
    def shaken(self) -> bool:
        """Whether Redis may have forgotten something, so that `recover` has work to do."""
        is_due = time.monotonic() - self._asked_at >= ASK_EVERY_S
        return is_due or self._may_have_forgotten or self._lost is not None

    @property
    def away(self) -> bool:
        """Whether Redis has not answered for so long that requests cannot be submitted now."""
        return time.monotonic() - self._beaten_at > AWAY_AFTER_S

    def recover(self, pending: Mapping[str, Request], *, force: bool = False) -> int:
        """Submit again what Redis forgot in a crash, or without one; return how many.

        A request that Redis does not know is either answered or lost. So Redis is asked first, then
        replies are read up to the last one of that moment, and a request without a reply is
        submitted again under its old id. Call it between reads, and often: it is cheap while there
        is no reason to ask.
        """
        # ask which requests Redis does not know
        if self._lost is None and (self.shaken or force):
            self._may_have_forgotten = False
            self._asked_at = time.monotonic()
            ids = list(pending)
            missing: list[str] = []
            last_reply = (0, 0)
            for start in range(0, len(ids), ASK_BATCH):
                last, *unknown = self._retrying.run(
                    partial(
                        script("missing"),
                        self._redis,
                        [keys.replies(self.name)],
                        ids[start : start + ASK_BATCH],
                    )
                )
                missing += [request_id.decode() for request_id in unknown]
                last_reply = max(last_reply, entry_order(last.decode()))
            self._lost = missing, last_reply
        # wait until the replies of that moment are read
        if self._lost is None or entry_order(self._reader.position) < self._lost[1]:
            return 0
        # submit again what is still without a reply
        by_queue: dict[str, list[Request]] = {}
        for request_id in self._lost[0]:
            request = pending.get(request_id)
            if request is not None:
                by_queue.setdefault(request.queue, []).append(request)
        accepted = 0
        try:
            for requests in by_queue.values():
                count = self.submit(requests)
                accepted += count
                del requests[:count]
        finally:
            # a later call submits the others, as when a queue was full
            ids = [request.id for requests in by_queue.values() for request in requests]
            self._lost = (ids, (0, 0)) if ids else None
        if accepted:
            logger.warning(
                "client %s: Redis forgot %d requests; submitted them again", self.name, accepted
            )
        return accepted

    def cancel(self, queue: str, ids: Sequence[str], *, stop: bool = False) -> int:
        """Take requests that wait out of their queue, or of RQ's scheduler; return how many.

        stop: end those that run, as RQ's stop command does; otherwise they are finished. Neither is
        retried.
        """
        if not ids or (self._leaving.is_set() and self.away):
            return 0
        count = Cancellation(self._redis, self._retrying, self.name, queue, ids).run()
        names = [keys.rq_scheduled(queue), keys.leases(queue)]
        for start in range(0, len(ids) if count < len(ids) else 0, ASK_BATCH):
            batch = list(ids[start : start + ASK_BATCH])
            deleted, *running = self._retrying.run(
                partial(script("under_way"), self._redis, names, batch)
            )
            count += deleted
            for request_id, worker in pairs_of([*map(text_of, running)] if stop else []):
                send_command(self._redis, worker, "stop-job", job_id=request_id)
        return count

    def wake(self) -> None:
        """Make a waiting `replies` return now."""
        self._retrying.run(
            lambda: self._redis.xadd(keys.replies(self.name), {"w": ""}, nomkstream=True)
        )

    def leave(self) -> None:
        """Stop waiting for an absent Redis: calls of all threads end with the error they met."""
        self._leaving.set()

    def close(self) -> None:
        """Unregister.

        Requests of this client that still wait are dropped when they are older than its time to
        live.
        """
        self._heart.close()
        self._reader.close()
        if self._leaving.is_set() and self.away:
            return
        with excuse_outage():
            pipe = self._redis.pipeline()
            pipe.zrem(keys.CLIENTS, self.name)
            # not DELETE: Redis would stand still while it frees a million replies
            pipe.unlink(keys.client(self.name), keys.replies(self.name))
            pipe.execute()

    def _beat(self) -> None:
        """Keep the client alive for Redis, and notice when Redis was restarted."""
        server = self._redis.info("server")["run_id"]
        position = self._reader.position
        known, newest = script("client_beat")(
            self._redis,
            [keys.CLIENTS, keys.replies(self.name)],
            [self.name, int(CLIENT_TTL_S * 1e6), int(2 * HEARTBEAT_S * 1e6)],
        )
        if self._server and (not known or entry_order(newest.decode()) < entry_order(position)):
            # Redis, or a reaper while we were frozen, dropped our replies; ids come from a clock,
            # which may be behind
            self._reader.start_over()
            self._may_have_forgotten = True
        if self._server not in ("", server):
            # set only now: a search for lost requests must know from where to read
            self._may_have_forgotten = True
            logger.warning(
                "client %s: Redis was restarted; looking for requests that it forgot", self.name
            )
        self._server = server
        self._beaten_at = time.monotonic()

    def _beat_again(self) -> None:
        """Beat, or leave it to the next turn: the client's time to live is long."""
        try:
            self._beat()
        except Exception as error:
            if not is_transient(error):
                logger.error("client %s: heartbeat failed: %s", self.name, error)
