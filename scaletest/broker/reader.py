"""Read a stream of replies: one connection on which a blocking read is always under way.

The reader waits on the socket, and may come back later to the same read. Redis's own time-outs are
too coarse: an idle server ends a blocked call up to 100 ms late, which is too late for a load that
follows a schedule.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import redis.exceptions

from scaletest.broker.connection import Redis, twin

# A read is repeated after BLOCK_S; a server silent for longer than both together is away.
BLOCK_S = 5.0
SLACK_S = 10.0
# Replies that one read parses, about 3 ms of work, so that the calling loop is not delayed.
BATCH = 128
BEGIN = "0-0"

Entry = tuple[bytes, dict[bytes, bytes]]


class Reader:
    """Reads a stream from its start; each read deletes what the last one returned. One thread."""

    def __init__(
        self, client: Redis, stream: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        pool: Any = twin(client, BLOCK_S + SLACK_S).connection_pool
        self._connection = pool.make_connection()
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
        commands: list[tuple[str | int, ...]] = []
        if self._position != BEGIN:
            commands.append(("XTRIM", self._stream, "MINID", _after(self._position)))
        block_ms = int(BLOCK_S * 1000)
        commands.append(
            ("XREAD", "COUNT", BATCH, "BLOCK", block_ms, "STREAMS", self._stream, self._position)
        )
        if not self._connection.is_connected:
            self._connection.connect()
        packets: list[bytes] = []
        for command in commands:
            packets += self._connection.pack_command(*command)
        self._connection.send_packed_command(packets, check_health=False)
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


def _after(entry: str) -> str:
    milliseconds, number = order(entry)
    return f"{milliseconds}-{number + 1}"
