"""Signals of a run that takes long: the first one ends it in order, the second at once."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType


@contextmanager
def stopping(stop: Callable[[str], None], *, unwind: bool) -> Iterator[ExitStack]:
    """First SIGINT, SIGTERM or SIGHUP: drain and report. Second: end now; guards then end what is
    left.

    Gives the stack of what must be taken down again. unwind: nobody else would do that, as on
    Kubernetes, so a second signal still does; a third one ends now, but not while things are put
    back.
    """
    names = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
    received: list[int] = []
    stack, closing = ExitStack(), False

    def handle(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            stop(names[signal.Signals(number)])
        elif not unwind:
            os._exit(128 + number)
        elif not closing:
            sys.exit(128 + number)

    before = {number: signal.signal(number, handle) for number in names}
    try:
        yield stack
    finally:
        closing = True
        try:
            stack.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
