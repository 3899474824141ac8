"""The client's side of a queue: submit requests, read replies, stay alive. One reader however many
are in flight.

Submitting is one call for many requests, and safe to repeat: the call carries a number, and Redis
keeps the last number with its answer. Replies come on one stream a client; what was read is deleted
with the next read.
"""

from __future__ import annotations

import itertools
import logging
import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from redis.exceptions import ResponseError

from scaletest.broker import jobs, keys
from scaletest.broker.cancelling import Cancellation
from scaletest.broker.connection import Redis
from scaletest.broker.fast_lane import call_nonce
from scaletest.broker.queues import Queues
from scaletest.broker.reader import Entry, Reader, order
from scaletest.broker.retry import Retrying
from scaletest.broker.scripts import script
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, QueueFull, UndeclaredQueue
from scaletest.model.reply import Reply, unreadable
from scaletest.model.request import Request

logger = logging.getLogger("scaletest.broker")

HEARTBEAT_S = 2.5
CLIENT_TTL_S = 60.0
# After two and a half heartbeats without an answer requests cannot be submitted.
SILENT_S = 6.0
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
        self._lost: tuple[list[str], tuple[int, int]] | None = None
        self._reader = Reader(redis, keys.replies(self.name))
        self._server = ""
        self._changed = False
        self._closing = threading.Event()
        self._beaten_at = time.monotonic()
        self._retrying.run(self._beat)
        self._heart = threading.Thread(
            target=self._live, name="scaletest-client-heart", daemon=True
        )
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
        is full.

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
            entry = self._redis.hget(keys.QUEUES, request.queue) or b"{}"
            raise QueueFull(
                request.queue, int(wire.load(entry, "the queue's entry").get("maximum", 0))
            )

    def replies(self, timeout_s: float) -> list[Finished]:
        """Replies; waits up to `timeout_s` for the first, less when `wake` is called."""
        return list(_parse(self._retrying.run(lambda: self._reader.read(timeout_s))))

    @property
    def shaken(self) -> bool:
        """Whether Redis may have forgotten something, so that `recover` has work to do."""
        return self._changed or self._lost is not None

    @property
    def silent_s(self) -> float:
        """Seconds since Redis last answered a heartbeat."""
        return time.monotonic() - self._beaten_at

    @property
    def away(self) -> bool:
        """Whether Redis has not answered for so long that requests cannot be submitted now."""
        return self.silent_s > SILENT_S

    def recover(self, pending: Mapping[str, Request], *, force: bool = False) -> int:
        """After a crash of Redis submit again what it forgot; how many. Cheap when there was none:
        call it often.

        A request that Redis does not know is either answered or lost. So Redis is asked first, then
        replies are read up to the last one of that moment, and a request without a reply is
        submitted again under its old id. Call it between reads.
        """
        if self._lost is None and (self._changed or force):
            self._changed = False
            self._lost = self._missing(list(pending))
        if self._lost is None or order(self._reader.position) < self._lost[1]:
            return 0
        lost = [pending[name] for name in self._lost[0] if name in pending]
        if lost:
            logger.warning(
                "client %s: Redis forgot %d requests, submitting them again", self.name, len(lost)
            )
        accepted = self.submit(lost)
        # a full queue takes the rest at a later call
        rest = [request.id for request in lost[accepted:]]
        self._lost = (rest, (0, 0)) if rest else None
        return accepted

    def cancel(self, queue: str, ids: Sequence[str]) -> int:
        """Take waiting requests out of their queue; how many. Running ones are finished."""
        if not ids or (self._leaving.is_set() and self.away):
            return 0
        return Cancellation(self._redis, self._retrying, self.name, queue, ids).run()

    def _missing(self, ids: Sequence[str]) -> tuple[list[str], tuple[int, int]]:
        missing: list[str] = []
        upto = (0, 0)
        for start in range(0, len(ids), SUBMIT_BATCH):
            batch = list(ids[start : start + SUBMIT_BATCH])
            ask = partial(script("missing"), self._redis, [keys.replies(self.name)], batch)
            last, *unknown = self._retrying.run(ask)
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
        self._closing.set()
        self._heart.join()
        self._reader.close()
        if self._leaving.is_set() and self.away:
            return
        try:
            pipe = self._redis.pipeline()
            pipe.zrem(keys.CLIENTS, self.name)
            # not DELETE: Redis would stand still while it frees a million replies that nobody read
            pipe.unlink(keys.client(self.name), keys.replies(self.name))
            pipe.execute()
        except Exception as error:
            if not self._retrying.transient(error):
                raise

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
        except ResponseError as error:
            if "STALECALL" not in str(error):
                raise
            # our own calls grow, so a larger one is not ours
            raise InvalidValue(
                f"another client named {self.name!r} submits to this Redis",
                hint="give every client a name of its own, or none",
            ) from error
        if answer is None:
            raise UndeclaredQueue(queue, Queues(self._redis).names())
        if answer[0] < 0:
            Queues(self._redis).state(queue)  # says what is wrong with its entry
        return max(0, int(answer[0]))

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

    def _live(self) -> None:
        """Beat until closed. A beat that fails is tried again at the next turn: the client's time
        to live is long.
        """
        while not self._closing.wait(HEARTBEAT_S):
            try:
                self._beat()
            except Exception as error:
                if not self._retrying.transient(error):
                    logger.error("client %s: heartbeat failed: %s", self.name, error)


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
