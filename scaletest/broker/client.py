"""The client's side of a queue: submit requests, read replies, stay alive.

Submitting is one call for many requests, and safe to repeat: the call carries a number, and Redis
keeps the last number with its answer. Replies come on one stream a client; what was read is deleted
with the next read.

One reader serves however many requests are under way, on one connection on which a blocking read is
always under way. It waits on the socket, and may come back later to the same read. Redis's own
time-outs are too coarse: an idle server ends a blocked call up to 100 ms late, which is too late
for a load that follows a schedule.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import redis.exceptions

from scaletest.broker import jobs, keys
from scaletest.broker.accounting import Cancellation
from scaletest.broker.connection import Redis, Retrying, outage_excused, own_connection, transient
from scaletest.broker.fast_lane import call_nonce
from scaletest.broker.queues import Queues
from scaletest.broker.scripts import script
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, QueueFull, UndeclaredQueue, WaitTimeout
from scaletest.model.record import Reply, Request, unreadable
from scaletest.processes.periodic import Periodic

# A read is repeated after BLOCK_S; a server silent for longer than both together is away.
BLOCK_S = 5.0
SLACK_S = 10.0
# Replies that one read parses, about 3 ms of work, so that the calling loop is not delayed.
BATCH = 128
BEGIN = "0-0"

Entry = tuple[bytes, dict[bytes, bytes]]
# Ids of requests that Redis forgot, and up to where replies must be read before that is sure.
Lost = tuple[list[str], tuple[int, int]]


class Reader:
    """Reads a stream from its start; each read deletes what the last one returned. One thread."""

    def __init__(
        self, client: Redis, stream: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = own_connection(client, BLOCK_S + SLACK_S)
        self._stream = stream
        self._clock = clock
        self._answers = 0
        self._asked_at = 0.0
        self._position = BEGIN
        self._anew = False

    @property
    def position(self) -> str:
        """Id of the last entry that was read; BEGIN before the first."""
        return BEGIN if self._anew else self._position

    def begin_anew(self) -> None:
        """Start over with the next read, since the stream was recreated. For any thread."""
        self._anew = True

    def read(self, timeout_s: float) -> list[Entry]:
        """Entries; waits up to `timeout_s` for the first. After an error the next call restarts."""
        deadline = self._clock() + timeout_s
        if self._anew:
            self.close()
            self._position, self._anew = BEGIN, False
        try:
            if not self._answers:
                self._ask()
            while self._connection.can_read(max(0.0, deadline - self._clock())):
                row = self._connection.read_response()
                self._answers -= 1
                if not self._answers:  # the answer to XTRIM comes first
                    return self._entries(row)
            if self._clock() - self._asked_at > BLOCK_S + SLACK_S:
                raise redis.exceptions.TimeoutError("no answer to a blocking read")
            return []
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._answers = 0
        self._connection.disconnect()

    def _ask(self) -> None:
        options = ("COUNT", BATCH, "BLOCK", int(BLOCK_S * 1000))
        commands: list[tuple[Any, ...]] = [
            ("XREAD", *options, "STREAMS", self._stream, self._position)
        ]
        if self._position != BEGIN:
            milliseconds, number = order(self._position)
            commands.insert(0, ("XTRIM", self._stream, "MINID", f"{milliseconds}-{number + 1}"))
        if not self._connection.is_connected:
            self._connection.connect()
        packets = itertools.chain.from_iterable(
            itertools.starmap(self._connection.pack_command, commands)
        )
        self._connection.send_packed_command(list(packets), check_health=False)
        self._answers = len(commands)
        self._asked_at = self._clock()

    def _entries(self, rows: Any) -> list[Entry]:
        if not rows or not rows[0][1]:  # a stream that was recreated ends a read with nothing
            return []
        entries = [
            (name, dict(zip(fields[::2], fields[1::2], strict=True))) for name, fields in rows[0][1]
        ]
        self._position = entries[-1][0].decode()
        return entries


def order(entry: str) -> tuple[int, int]:
    """A stream entry's id, comparable."""
    milliseconds, number = entry.split("-")
    return int(milliseconds), int(number)


logger = logging.getLogger("scaletest.broker")

HEARTBEAT_S = 2.5
CLIENT_TTL_S = 60.0
# After two and a half heartbeats without an answer requests cannot be submitted.
SILENT_S = 6.0
# So often Redis is asked for all that has no reply: it may have forgotten some without a restart
# that we saw, as when its file was cut in the middle of a transaction.
ASK_S = 60.0
# How long a queue may be undeclared that took requests of ours. A Redis that lost its data declares
# none; an exporter, or whoever manages the queues, declares them again.
DECLARED_AGAIN_S = 60.0
RESULT_TTL_S = 500
# One script call blocks Redis for every other client, so large submissions are cut into pieces: so
# many requests, or as many as have so long arguments in all.
SUBMIT_BATCH = 250
SUBMIT_CHARACTERS = 250_000
# The request's id in a reply that cannot be parsed. Quotes inside a text are escaped.
_REQUEST_ID = re.compile(rb'"id": ?"([A-Za-z0-9_-]{1,128})"')


class Finished(NamedTuple):
    """A reply with the stream entry that carried it."""

    entry: str
    reply: Reply


class Client:
    """Submits to queues under one identity and reads its own replies. Close it, or use it as a
    context.

    Not for several threads at once, but `wake` may be called from anywhere. While Redis is away
    every call waits with back-off, at most `patience_s` seconds (None: for ever).
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
        self._numbers = itertools.count(1)
        self._nonce = call_nonce()
        self._calls = itertools.count(1)
        self._lost: Lost | None = None
        self._asked_at = time.monotonic()
        # queues that took requests of ours: since when they are not declared, None while they are
        self._undeclared_since: dict[str, float | None] = {}
        self._reader = Reader(redis, keys.replies(self.name))
        self._server = ""
        self._changed = False
        self._beaten_at = time.monotonic()
        self._retrying.run(self._beat)
        self._heart = Periodic("client-heart", self._beat_again, HEARTBEAT_S)
        self._heart.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def new_id(self) -> str:
        """A new request id, unique across clients."""
        return f"{self.name}-{next(self._numbers)}"

    def submit(
        self, requests: Sequence[Request], *, reply: bool = True, result_ttl_s: int = RESULT_TTL_S
    ) -> int:
        """Enqueue requests of one queue in order; how many were accepted, fewer only when the queue
        is full, or is not declared any more and may be declared again.

        With `reply` each gets a reply here; without, an ordinary RQ result is kept for
        `result_ttl_s` seconds. Raises UndeclaredQueue.
        """
        accepted = 0
        for batch in _batches(requests):
            taken = self._submit_batch(batch, reply, result_ttl_s)
            accepted += taken
            if taken < len(batch):
                break
        return accepted

    def submit_one(
        self, request: Request, *, reply: bool = True, result_ttl_s: int = RESULT_TTL_S
    ) -> None:
        """Enqueue one request; raises UndeclaredQueue or QueueFull."""
        if not self.submit([request], reply=reply, result_ttl_s=result_ttl_s):
            raise QueueFull(request.queue, Queues(self._redis).state(request.queue).maximum)

    def replies(self, timeout_s: float) -> list[Finished]:
        """Replies; waits up to `timeout_s` for the first, less when `wake` is called."""
        return list(_parse(self._retrying.run(lambda: self._reader.read(timeout_s))))

    def wait_for(self, request: Request, timeout_s: float) -> Reply:
        """The reply to a request that this client submitted; WaitTimeout when there is none, after
        the request was cancelled.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for _, reply in self.replies(min(2.0, max(0.0, deadline - time.monotonic()))):
                if reply.id == request.id:
                    return reply
            self.recover({request.id: request})
        was_waiting = self.cancel(request.queue, [request.id])
        raise WaitTimeout(
            f"no reply came within {timeout_s:g} s; the request"
            f" {'was dropped' if was_waiting else 'still runs'}",
            hint="see whether a worker serves the queue: scaletest queue show",
        )

    @property
    def shaken(self) -> bool:
        """Whether Redis may have forgotten something, so that `recover` has work to do."""
        is_due = time.monotonic() - self._asked_at >= ASK_S
        return self._changed or self._lost is not None or is_due

    @property
    def silent_s(self) -> float:
        """Seconds since Redis last answered a heartbeat."""
        return time.monotonic() - self._beaten_at

    @property
    def away(self) -> bool:
        """Whether Redis has not answered for so long that requests cannot be submitted now."""
        return self.silent_s > SILENT_S

    def recover(self, pending: Mapping[str, Request], *, force: bool = False) -> int:
        """Submit again what Redis forgot in a crash, or without one; how many. Cheap while there is
        no reason to ask: call it often.

        A request that Redis does not know is either answered or lost. So Redis is asked first, then
        replies are read up to the last one of that moment, and a request without a reply is
        submitted again under its old id. Call it between reads.
        """
        if self._lost is None and (self.shaken or force):
            self._changed, self._asked_at = False, time.monotonic()
            self._lost = self._missing(list(pending))
        if self._lost is None or order(self._reader.position) < self._lost[1]:
            return 0
        lost = [pending[name] for name in self._lost[0] if name in pending]
        accepted: set[str] = set()
        self._lost = _left(lost, accepted)
        for queue in dict.fromkeys(request.queue for request in lost):
            requests = [request for request in lost if request.queue == queue]
            count = self.submit(requests)
            accepted.update(request.id for request in requests[:count])
            self._lost = _left(lost, accepted)
        if accepted:
            logger.warning(
                "client %s: Redis forgot %d requests; submitted them again",
                self.name,
                len(accepted),
            )
        return len(accepted)

    def cancel(self, queue: str, ids: Sequence[str]) -> int:
        """Take waiting requests out of their queue; how many. Running ones are finished."""
        if not ids or (self._leaving.is_set() and self.away):
            return 0
        return Cancellation(self._redis, self._retrying, self.name, queue, ids).run()

    def _missing(self, ids: list[str]) -> Lost:
        missing: list[str] = []
        upto = (0, 0)
        for start in range(0, len(ids), SUBMIT_BATCH):
            last, *unknown = self._retrying.run(
                partial(
                    script("missing"),
                    self._redis,
                    [keys.replies(self.name)],
                    ids[start : start + SUBMIT_BATCH],
                )
            )
            missing += [name.decode() for name in unknown]
            upto = max(upto, order(last.decode()))
        return missing, upto

    def wake(self) -> None:
        """Make a waiting `replies` return now."""
        self._retrying.run(
            lambda: self._redis.xadd(keys.replies(self.name), {"w": ""}, nomkstream=True)
        )

    def leave(self) -> None:
        """Stop waiting for an absent Redis: calls of all threads end with the error they met."""
        self._leaving.set()

    def close(self) -> None:
        """Unregister. Requests of this client that still wait are dropped when they are older than
        its time to live.
        """
        self._heart.close()
        self._reader.close()
        if self._leaving.is_set() and self.away:
            return
        with outage_excused():
            pipe = self._redis.pipeline()
            pipe.zrem(keys.CLIENTS, self.name)
            # not DELETE: Redis would stand still while it frees a million replies that nobody read
            pipe.unlink(keys.client(self.name), keys.replies(self.name))
            pipe.execute()

    def _submit_batch(self, batch: Sequence[Request], reply: bool, result_ttl_s: int) -> int:
        queue = batch[0].queue
        if any(request.queue != queue for request in batch):
            raise InvalidValue(
                "one submission holds requests of several queues",
                hint="submit each queue by itself",
            )
        arguments: list[bytes | str | int] = [
            queue,
            self.name,
            f"{self._nonce}:{next(self._calls):012}",
            int(CLIENT_TTL_S * 1e6),
            int(reply),
            result_ttl_s,
        ]
        for request in batch:
            arguments += [request.id, jobs.encode(request), jobs.rq_timeout(request)]
        names = [
            keys.QUEUES,
            keys.RQ_QUEUES,
            keys.rq_queue(queue),
            keys.counters(queue),
            keys.client(self.name),
            keys.slots(queue),
        ]
        try:
            answer = self._retrying.run(lambda: script("submit")(self._redis, names, arguments))
        except redis.exceptions.ResponseError as error:
            if "STALECALL" not in str(error):
                raise
            # our own calls grow, so a larger one is not ours
            raise InvalidValue(
                f"another client named {self.name!r} submits to this Redis",
                hint="give every client a name of its own, or none",
            ) from error
        if answer is None:
            if self._may_come_back(queue):
                return 0
            raise UndeclaredQueue(queue, Queues(self._redis).names())
        self._undeclared_since[queue] = None
        if answer[0] < 0:
            Queues(self._redis).state(queue)  # says what is wrong with its entry
        return max(0, int(answer[0]))

    def _may_come_back(self, queue: str) -> bool:
        """Whether a queue that is not declared may be declared again, since it was before."""
        if queue not in self._undeclared_since:
            return False
        now = time.monotonic()
        since = self._undeclared_since[queue]
        if since is None:
            since = self._undeclared_since[queue] = now
            logger.warning(
                "client %s: queue %s is not declared any more; waiting %g s for it to be declared"
                " again",
                self.name,
                queue,
                DECLARED_AGAIN_S,
            )
        return now - since < DECLARED_AGAIN_S

    def _beat(self) -> None:
        server = self._redis.info("server")["run_id"]
        position = self._reader.position
        known, newest = script("client_beat")(
            self._redis,
            [keys.CLIENTS, keys.replies(self.name)],
            [self.name, int(CLIENT_TTL_S * 1e6), int(2 * HEARTBEAT_S * 1e6)],
        )
        if self._server and (not known or order(newest.decode()) < order(position)):
            # Redis, or a reaper while we were frozen, dropped our replies; ids come from a clock,
            # which may be behind
            self._reader.begin_anew()
            self._changed = True
        if self._server not in ("", server):
            # set only now: whoever looks for lost requests must know from where to read
            self._changed = True
            logger.warning(
                "client %s: Redis was restarted; looking for requests that it forgot", self.name
            )
        self._server = server
        self._beaten_at = time.monotonic()

    def _beat_again(self) -> None:
        """Beat. One that fails is tried again at the next turn: the client's time to live is
        long.
        """
        try:
            self._beat()
        except Exception as error:
            if not transient(error):
                logger.error("client %s: heartbeat failed: %s", self.name, error)


def _left(lost: Sequence[Request], accepted: Container[str]) -> Lost | None:
    """What a later call of `recover` submits, as when a queue was full; None when nothing is."""
    ids = [request.id for request in lost if request.id not in accepted]
    return (ids, (0, 0)) if ids else None


def _batches(requests: Iterable[Request]) -> Iterator[list[Request]]:
    batch: list[Request] = []
    size = 0
    for request in requests:
        batch.append(request)
        size += sum(map(len, request.arguments))
        if len(batch) == SUBMIT_BATCH or size >= SUBMIT_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _parse(entries: Iterable[Entry]) -> Iterable[Finished]:
    for entry, fields in entries:
        if b"r" not in fields:
            continue  # a wake-up
        try:
            row = wire.load(fields[b"r"], "the reply")
            row["ended_s"] = int(fields[b"e"]) / 1e6
            reply = Reply.from_dict(row)
        except (InvalidValue, KeyError, ValueError) as error:
            request_id = _REQUEST_ID.search(fields[b"r"])
            if request_id is None:
                logger.error(
                    "a reply was dropped, it cannot be read and names no request: %s", error
                )
                continue
            reply = unreadable(request_id[1].decode(), str(error))
        yield Finished(entry.decode(), reply)
