"""Logging of every command: to standard error, one line an event."""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

from scaletest.model.checks import printable

# RQ colours its own messages, nobody else does.
_COLOURS = re.compile(r"(\x1b\[[0-9;]*m)")


class _Formatter(logging.Formatter):
    """Lines that no terminal obeys, whatever foreign text is in them."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """One line: a name with a line's end in it cannot pretend to be another event."""
        return printable(super().formatMessage(record), keep="\t")

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """A traceback has lines of its own."""
        return printable(super().formatException(ei), keep="\n\t")


def _harmless(record: logging.LogRecord) -> bool:
    """A filter for RQ's own handlers: nothing but its colours and line ends passes as a command."""
    parts = []
    for part in _COLOURS.split(record.getMessage()):
        is_colour = _COLOURS.fullmatch(part)
        parts.append(part if is_colour else printable(part, keep="\n\t"))
    record.msg = "".join(parts)
    record.args = ()
    return True


def set_up(verbose: bool) -> None:
    """Warnings by default; with -v everything of ours, and RQ's information."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    root = logging.getLogger("scaletest")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    for name in ("rq.worker", "rq.queue", "rq.job", "rq.registry"):
        logging.getLogger(name).addFilter(_harmless)


def is_verbose() -> bool:
    """Whether the program was called with -v."""
    return logging.getLogger("scaletest").level == logging.DEBUG


def messages() -> None:
    """Also show single requests and replies (--log-messages)."""
    for name in ("scaletest.worker", "scaletest.client"):
        logging.getLogger(name).setLevel(logging.INFO)
