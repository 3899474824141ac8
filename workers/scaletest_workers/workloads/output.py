"""The output of a process: passed on while it comes, bounded, and its end kept."""

import contextlib
import os
import threading
from typing import IO

from scaletest.processes.wake import Wake

# How much of it is kept, to be parsed for figures or for an error.
OUTPUT_BYTES = 262_144


class OutputTail:
    """Forwards the output of a process and keeps its end. Its thread ends with the pipe."""

    def __init__(
        self,
        stream: IO[bytes] | None,
        echo: IO[str] | None,
        *,
        most_bytes: float = float("inf"),
        full: Wake | None = None,
    ) -> None:
        """full: set when there are more than most_bytes since `begin`."""
        self._stream = stream
        self._echo = echo
        self._end = b""
        self._most_bytes = self._left = most_bytes
        self._full = full
        self._thread = threading.Thread(target=self._read, name="scaletest-output", daemon=True)
        if stream is not None:
            self._thread.start()

    def begin(self) -> None:
        """Count, and keep, from now on."""
        self._end, self._left = b"", self._most_bytes

    def close(self) -> str:
        """Return the end of the output. The process group is dead, so the pipe is at its end.

        A process that left the group may still hold it open; it is not waited for.
        """
        if self._stream is None:
            return ""
        self._thread.join(timeout=0.2)
        if not self._thread.is_alive():
            self._stream.close()
        return self._end.decode(errors="replace")

    def _read(self) -> None:
        assert self._stream is not None
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 65536):
                self._left -= len(chunk)
                if self._left < 0 and self._full is not None:
                    self._full.set()
                    continue
                if self._echo is not None:
                    try:
                        self._echo.buffer.write(chunk)  # type: ignore[attr-defined]
                        self._echo.buffer.flush()  # type: ignore[attr-defined]
                    except Exception:  # a full disk, or no reader: not the program's concern
                        self._echo = None
                self._end = (self._end + chunk)[-OUTPUT_BYTES:]
