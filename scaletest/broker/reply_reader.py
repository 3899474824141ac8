"""Read the replies of one client from its stream in Redis.

One reader serves however many requests are under way, on one connection on which a blocking read is
always under way. It waits on the socket, and may come back later to the same read. Redis's own
time-outs are too coarse: an idle server ends a blocked call up to 100 ms late, which is too late
for a load that follows a schedule.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import redis.exceptions

from scaletest.broker.connection import Redis, own_connection
from scaletest.model import wire
from scaletest.model.errors import InvalidValue
from scaletest.model.record import Reply, unreadable_reply

logger = logging.getLogger("scaletest.broker")

# A read is repeated after BLOCK_S; a server silent for longer than both together is away.
BLOCK_S = 5.0
SLACK_S = 10.0
# Replies that one read parses, about 3 ms of work, so that the calling loop is not delayed.
ENTRIES_AT_ONCE = 128
# The position before the first entry of a stream.
BEGIN = "0-0"
# The request's id in a reply that cannot be parsed. Quotes inside a text are escaped.
_REQUEST_ID = re.compile(rb'"id": ?"([A-Za-z0-9_-]{1,128})"')

# An entry of a stream: its id, and its fields.
Entry = tuple[bytes, dict[bytes, bytes]]


class Reader:
    """Reads a stream from its start; each read deletes what the last one returned. One thread."""

    def __init__(
        self, client: Redis, stream: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = own_connection(client, BLOCK_S + SLACK_S)
        self._stream = stream
        self._clock = clock
        # how many answers are still to come, and when they were asked for
        self._awaited_answers = 0
        self._asked_at = 0.0
        self._position = BEGIN
        self._must_restart = False

    @property
    def position(self) -> str:
        """Id of the last entry that was read; BEGIN before the first."""
        return BEGIN if self._must_restart else self._position

    def start_over(self) -> None:
        """Start over with the next read, since the stream was recreated. For any thread."""
        self._must_restart = True

    def read(self, timeout_s: float) -> list[Entry]:
        """Return entries; wait up to `timeout_s` for the first.

        After an error the next call begins again where the last one ended.
        """
        deadline = self._clock() + timeout_s
        if self._must_restart:
            self.close()
            self._position = BEGIN
            self._must_restart = False
        try:
            if not self._awaited_answers:
                # delete what was read before, and wait for what comes after it
                commands: list[tuple[Any, ...]] = []
                if self._position != BEGIN:
                    milliseconds, number = entry_order(self._position)
                    commands.append(
                        ("XTRIM", self._stream, "MINID", f"{milliseconds}-{number + 1}")
                    )
                options = ("COUNT", ENTRIES_AT_ONCE, "BLOCK", int(BLOCK_S * 1000))
                commands.append(("XREAD", *options, "STREAMS", self._stream, self._position))
                if not self._connection.is_connected:
                    self._connection.connect()
                packet = self._connection.pack_commands(commands)
                self._connection.send_packed_command(packet, check_health=False)
                self._awaited_answers = len(commands)
                self._asked_at = self._clock()
            # the deadline may pass: then the next call continues to wait for the same answer
            while self._connection.can_read(max(0.0, deadline - self._clock())):
                rows = self._connection.read_response()
                self._awaited_answers -= 1
                if not self._awaited_answers:  # the answer to XTRIM comes first
                    return self._entries(rows)
            if self._clock() - self._asked_at > BLOCK_S + SLACK_S:
                raise redis.exceptions.TimeoutError("no answer to a blocking read")
            return []
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next read opens it again."""
        self._awaited_answers = 0
        self._connection.disconnect()

    def _entries(self, rows: Any) -> list[Entry]:
        """Return the entries in an answer to XREAD, and note the last one."""
        if not rows or not rows[0][1]:  # a stream that was recreated ends a read with nothing
            return []
        entries = [
            (name, dict(zip(fields[::2], fields[1::2], strict=True))) for name, fields in rows[0][1]
        ]
        self._position = entries[-1][0].decode()
        return entries


def entry_order(entry: str) -> tuple[int, int]:
    """Return a stream entry's id as numbers that can be compared."""
    milliseconds, number = entry.split("-")
    return int(milliseconds), int(number)


def parse_replies(entries: Iterable[Entry]) -> Iterable[Reply]:
    """Yield the replies in entries.

    One that cannot be read becomes a failed one, if it names its request.
    """
    for _, fields in entries:
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
            reply = unreadable_reply(request_id[1].decode(), str(error))
        yield reply
