"""Limits how many requests of pages read Redis at the same time.

When Redis hangs each read takes seconds, and other requests need threads too.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar, cast

from scaletest.model.errors import Unreachable

# Requests that may read Redis at the same time, at most.
READS = 12
# Of a server, for pages and probes that need no Redis too: they are answered while it hangs.
THREADS = READS + 4

T = TypeVar("T")


class ReadingTurns:
    """At most `number` holders at a time; each further one waits `wait_s` seconds for its turn."""

    def __init__(self, number: int = READS, wait_s: float = 0.2) -> None:
        self._free = threading.BoundedSemaphore(number)
        self._wait_s = wait_s

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold a turn. Raises Unreachable when none becomes free in time."""
        if not self._free.acquire(timeout=self._wait_s):
            raise Unreachable(
                "Redis is slow, and too many requests wait for it", hint="try again later"
            )
        try:
            yield
        finally:
            self._free.release()


class SharedCopy(Generic[T]):
    """Shares what a function returned for some seconds."""

    def __init__(
        self,
        read: Callable[[], T],
        for_s: float,
        *,
        wait_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Share what `read` returns for `for_s` seconds.

        wait_s: how long others wait while somebody reads.
        """
        self._read = read
        self._for_s = for_s
        self._clock = clock
        self._turns = ReadingTurns(1, wait_s)
        self._until = -1.0
        self._copy: T | None = None

    def get(self) -> T:
        """Return the copy, read anew when it is too old. Raises Unreachable."""
        with self._turns.take():
            if self._clock() >= self._until:
                self._copy = self._read()
                self._until = self._clock() + self._for_s
            return cast(T, self._copy)
