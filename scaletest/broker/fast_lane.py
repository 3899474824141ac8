"""The fast lane: one call to Redis finishes a worker's last request and takes the next.

It works on a bare connection of redis-py, without the layers of a client, because those cost more
than Redis does. On an empty queue it sends a blocking move and the same call in one packet, so that
an idle worker holds its request, accounted for, the instant it arrives. Every call carries a
number; when the connection breaks the same number is sent again, and Redis answers what it answered
before.

Nothing is run here, and nothing is known of workloads.
"""

import socket
import time
import uuid
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

import hiredis
import redis.exceptions

from scaletest.broker import keys
from scaletest.broker.connection import Redis, own_connection
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import script
from scaletest.model.queue_counts import count_arguments

# Where lua/cycle.lua takes a request from: nowhere, the queue, or where a move has brought it.
FROM_NOWHERE = "0"
FROM_QUEUE = "1"
FROM_TAKING = "2"
# An idle worker repeats its call this often, and once an interval, to notice a dead connection.
LONGEST_BLOCK_S = 20.0
# How much longer than its block a socket waits for an answer. Then the connection is taken for
# dead, and the call is sent again on a new one.
SOCKET_SLACK_S = 10.0


class TakenRequest(NamedTuple):
    """A request that this worker took. Times are microseconds on the Redis clock."""

    id: str
    attempt: int
    started_us: int
    enqueued_us: int = 0  # may be 0 for a job that RQ's own code must run
    client: str = ""  # "" for such a job
    data: bytes = b""  # empty for such a job


class FinishedRequest(NamedTuple):
    """A finished request, whose outcome the next call delivers."""

    taken: TakenRequest
    outcome: str
    wait_s: float
    run_s: float
    reply: str
    registered: bool  # a heartbeat put it into RQ's registries


class NothingTaken(Enum):
    """Why a call brought no request, as the script says it."""

    # the queue is paused, or RQ is suspended
    PAUSED = b"paused"
    # the worker's deadline has passed, or Redis forgot it: it needs a heartbeat first
    OVERDUE = b"overdue"
    # there may be more to take: entries were skipped, or a repeated call lost its request
    AGAIN = b"again"


# None when the queue was empty.
Answer = TakenRequest | NothingTaken | None


class FastLane:
    """One worker's lane to one queue. Not thread-safe: only the worker's main thread uses it."""

    def __init__(
        self, client: Redis, worker: str, queue: str, interval_s: float, retrying: Retrying
    ) -> None:
        self._script = script("cycle")
        self._retrying = retrying
        self._queue = queue
        self._worker = worker
        self._interval_us = str(int(interval_s * 1e6))
        self._longest_block_s = min(LONGEST_BLOCK_S, interval_s)
        self._nonce = call_nonce()
        self._number = 0
        # what names the present call, so that Redis knows a repeated one
        self._call = ""
        # The worker's deadline in Redis's last answer; heartbeats only extend it.
        self._deadline: bytes = b""
        # The lease of the request whose result is on its way, or "". Heartbeats extend it.
        self.delivering = ""
        # Whether a call is under way that delivers nothing, so that nothing is lost when its
        # connection is broken.
        self.idle = False
        self._waiting_key = keys.rq_queue(queue)
        self._taking_key = keys.taking(queue)
        self._started_key = keys.rq_started(queue)
        names = (
            keys.rq_worker(worker),
            keys.leases(queue),
            self._waiting_key,
            keys.counters(queue),
            keys.ended(queue),
            keys.slots(queue),
            keys.paused(queue),
            keys.RQ_SUSPENDED,
            self._taking_key,
            keys.PULSE,
            keys.STANDSTILL,
        )
        # the words of every call that are the same: the script, and its keys
        self._head = ("EVALSHA", self._script.digest, len(names), *names)
        self._connection = own_connection(client, self._longest_block_s + SOCKET_SLACK_S)
        # Redis's number of the connection, by which a heartbeat ends a blocking move.
        self.client_id = 0

    def cycle(
        self, done: FinishedRequest | None, *, take: bool = True, block_s: float = 0.0
    ) -> Answer:
        """Finish `done` and take the next request; None when none came within `block_s`."""
        self.idle = done is None
        try:
            answer = self._call_script(done, FROM_QUEUE if take else FROM_NOWHERE)
            self.idle = True  # from here on there is nothing to deliver
            while answer is NothingTaken.AGAIN:
                answer = self._call_script(None, FROM_QUEUE)
            if answer is None and take and block_s > 0:
                answer = self._blocking_take(min(block_s, self._longest_block_s))
            return None if answer is NothingTaken.AGAIN else answer
        finally:
            self.idle = False

    def hang_up(self) -> None:
        """Break an idle lane's connection, so that its call ends. For any thread."""
        connection = self._connection._sock
        if self.idle and connection is not None:
            with suppress(OSError):
                # not TLSSocket.shutdown: that destroys the session, which the other thread uses
                socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection. What was taken and not finished stays leased."""
        self._connection.disconnect()

    def _next_call(self) -> None:
        """Name the next call. Names of one worker grow, so that Redis can refuse a late one."""
        self._number += 1
        self._call = f"{self._nonce}:{self._number:012}"

    def _call_script(self, done: FinishedRequest | None, source: str) -> Answer:
        """Call lua/cycle.lua. source: where it takes from."""
        self._next_call()
        command = self._command(done, source)
        if done is not None:
            self.delivering = f"{done.taken.id}:{done.taken.attempt}:{self._worker}"
        try:
            self._send(command)
            return self._parse(self._connection.read_response())
        except Exception as error:
            return self._repeat(command, error)
        finally:
            self.delivering = ""

    def _blocking_take(self, block_s: float) -> Answer:
        """Send one packet: wait for a request to arrive, then take it.

        The second half may still be lost. The moved request is then in a list that every reaper
        empties.
        """
        self._next_call()
        command = self._command(None, FROM_TAKING)
        move = ("BLMOVE", self._waiting_key, self._taking_key, "LEFT", "RIGHT", block_s)
        try:
            self._send(move, command)
            self._connection.read_response()
            return self._parse(self._connection.read_response())
        except Exception as error:
            return self._repeat(command, error)

    def _repeat(self, command: tuple[Any, ...], error: Exception) -> Answer:
        """Send the same call again, without the blocking move, until Redis answers.

        The answer to the first half of a packet may still be on its way, so the connection is
        reopened.
        """

        def call_again() -> Answer:
            self._connection.disconnect()
            self._send(("SCRIPT", "LOAD", self._script.text), command)
            self._connection.read_response()
            return self._parse(self._connection.read_response())

        if isinstance(error, redis.exceptions.NoScriptError):
            return self._retrying.run(call_again)
        if not is_transient(error):
            raise error
        return self._retrying.run_after(error, call_again)

    def _command(self, done: FinishedRequest | None, source: str) -> tuple[Any, ...]:
        """Return the words of a call: the head, the arguments, and the outcome to deliver."""
        command = (*self._head, self._call, source, self._interval_us, self._worker, self._queue)
        if done is None:
            return command
        taken = done.taken
        return (
            *command,
            taken.id,
            taken.attempt,
            taken.client,
            done.reply,
            self._started_key if done.registered else "",
            self._deadline,
            *count_arguments(done.outcome, done.wait_s, done.run_s),
            *(() if done.outcome == "succeeded" else (time.time(),)),  # for a retry
        )

    def _parse(self, row: Any) -> Answer:
        """Read the script's answer."""
        if row is None:
            return None
        if len(row) == 1:
            return NothingTaken(row[0])
        name, attempt, started, enqueued, client, data, deadline = row
        self._deadline = deadline or self._deadline
        return TakenRequest(
            name.decode(), int(attempt), int(started), int(enqueued or 0), client.decode(), data
        )

    def _send(self, *commands: tuple[Any, ...]) -> None:
        """Send commands in one packet; first connect, where that is necessary."""
        connection = self._connection
        if not connection.is_connected:
            connection.connect()
            connection.send_command("CLIENT", "ID")
            self.client_id = int(connection.read_response())
        # packed here and joined: redis-py looks at every argument first, which costs 4 us, and
        # would send every command by itself
        connection.send_packed_command(
            [b"".join(map(hiredis.pack_command, commands))], check_health=False
        )


def call_nonce() -> str:
    """Return a prefix by which a process's calls are larger than those of an earlier namesake."""
    return f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}"
