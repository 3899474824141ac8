"""An event that a signal handler may set.

threading.Event holds a lock for a moment when it is waited for. A handler that sets it in the same
thread just then waits for that lock for ever. A pipe has no such lock.
"""

import os
import select
import time
from contextlib import suppress

CLOSED = -1
# Python runs a signal's handler between two of its steps. A signal that comes after the last step,
# and before the kernel waits, is handled when the wait is over: so each wait must be short.
LONGEST_WAIT_S = 0.25


class Wake:
    """A self-pipe: any thread or signal handler wakes all who wait for it, until `clear()`."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)

    def fileno(self) -> int:
        """Return the end to wait on."""
        return self._read

    def set(self) -> None:
        """Wake the waiters; safe in a signal handler."""
        with suppress(OSError):  # full: it is awake already; closed: no thread waits
            os.write(self._write, b"x")

    def is_set(self) -> bool:
        """Return whether it is awake."""
        return self.wait(0.0)

    def wait(self, seconds: float) -> bool:
        """Wait until woken, at most `seconds`; return whether it was."""
        return wait_first(seconds, self)

    def clear(self) -> None:
        """Reset the event."""
        with suppress(OSError):
            while os.read(self._read, 4096):
                pass

    def close(self) -> None:
        """Close both ends; waking it afterwards does nothing."""
        ends, self._read, self._write = (self._read, self._write), CLOSED, CLOSED
        for end in ends:
            with suppress(OSError):
                os.close(end)

    def __del__(self) -> None:
        self.close()


def wait_first(seconds: float, *wakes: Wake) -> bool:
    """Wait until one of these is awake, at most `seconds`; return whether one is."""
    deadline = time.monotonic() + seconds
    while True:
        left_s = deadline - time.monotonic()
        # not poll, which counts whole milliseconds
        ready, _, _ = select.select(wakes, [], [], min(LONGEST_WAIT_S, max(0.0, left_s)))
        if ready or left_s <= LONGEST_WAIT_S:
            return bool(ready)
