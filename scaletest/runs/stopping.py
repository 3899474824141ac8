"""Signals that stop a run: the first one ends it in order, the second at once."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

from scaletest.processes.wake import Wake

# Live rows clear two lines from the cursor up when they are drawn again, which must not be the line
# above; and who ends now cannot show the cursor that they hide.
BELOW_ROWS = "\n\x1b[?25h"


class StopRequest:
    """A request to end a run, which whoever measures looks at between two steps."""

    def __init__(self) -> None:
        self.reason = ""  # what asked, such as "SIGTERM"; "" as long as nothing did
        self.wake = Wake()  # for those who wait for something else meanwhile

    def asked(self) -> bool:
        """Return whether the run was asked to end."""
        return bool(self.reason)

    def __call__(self, reason: str) -> None:
        """Ask the run to end soon. Safe in a signal handler."""
        self.reason = self.reason or reason
        self.wake.set()


def _say(line: str) -> None:
    """Write past all buffers to standard error: a signal may come while one is written."""
    with suppress(OSError):
        end = BELOW_ROWS if os.isatty(2) else ""
        os.write(2, f"\n{line}\n{end}".encode())


@contextmanager
def stop_on_signals(
    stop: Callable[[str], object], *, unwind: bool, hand_on: bool = False
) -> Iterator[ExitStack]:
    """Call `stop` at a first SIGINT, SIGTERM or SIGHUP; end the process at a second one.

    Guards then end what is left. Gives the stack of what must be taken down again.

    unwind: nobody else would take it down, as on Kubernetes, so a second signal still does, and
    only a third one ends the process at once, though not while things are put back.
    hand_on: the process goes on afterwards, and is sent the first signal again when all is taken
    down.
    """
    names = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
    # nohup has let us ignore it, so that a run survives its terminal
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        del names[signal.SIGHUP]
    received: list[int] = []
    stack = ExitStack()
    closing = False

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        name = names[signal.Signals(number)]
        if len(received) == 1:
            _say(f"{name}: stopping after what is running now; press Ctrl-C again to stop at once")
            stop(name)
        elif not unwind:
            _say(f"{name} again: stopping now")
            os._exit(128 + number)
        elif not closing:
            sys.exit(128 + number)

    # Python handles signals in the main thread only, so elsewhere nothing waits for any
    is_main = threading.current_thread() is threading.main_thread()
    old_handlers = {number: signal.signal(number, handle) for number in names if is_main}
    try:
        yield stack
    finally:
        closing = True
        try:
            stack.close()
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)
            if hand_on and received:
                signal.raise_signal(received[0])
