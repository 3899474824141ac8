"""Signals of a run that takes long: the first one ends it in order, the second at once."""

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
    """Asks a run to end. reason: who asked, "" as long as nobody did; whoever measures looks.

    wake: awake once somebody asked, for whoever waits.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.wake = Wake()

    def asked(self) -> bool:
        """Tell whether somebody asked."""
        return bool(self.reason)

    def __call__(self, reason: str) -> None:
        """End soon. Safe in a signal handler."""
        self.reason = self.reason or reason
        self.wake.set()


def _say(line: str) -> None:
    """Write past all buffers to standard error: a signal may come while one is written."""
    with suppress(OSError):
        os.write(2, f"\n{line}\n{BELOW_ROWS if os.isatty(2) else ''}".encode())


@contextmanager
def stop_on_signals(
    stop: Callable[[str], object], *, unwind: bool, hand_on: bool = False
) -> Iterator[ExitStack]:
    """Drain and report at a first SIGINT, SIGTERM or SIGHUP; end now at a second one.

    Guards then end what is left. A SIGHUP that nohup has let us ignore stays ignored.

    Gives the stack of what must be taken down again. unwind: nobody else would do that, as on
    Kubernetes, so a second signal still does; a third one ends now, but not while things are put
    back. hand_on: the process goes on afterwards, and is sent the first signal again when all is
    taken down. Python handles signals in the main thread only, so elsewhere nothing waits for any.
    """
    names = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        del names[signal.SIGHUP]
    received: list[int] = []
    stack, closing = ExitStack(), False

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        name = names[signal.Signals(number)]
        if len(received) == 1:
            _say(f"{name}: what runs is finished first; a second signal ends it now")
            stop(name)
        elif not unwind:
            _say(f"{name} again: ended now")
            os._exit(128 + number)
        elif not closing:
            sys.exit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handle) for number in names if is_main}
    try:
        yield stack
    finally:
        closing = True
        try:
            stack.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if hand_on and received:
                signal.raise_signal(received[0])
