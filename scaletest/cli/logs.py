"""Logging of every command: to standard error, one line an event."""

from __future__ import annotations

import logging
import sys


def set_up(verbose: bool) -> None:
    """Warnings by default; with -v everything of ours, and RQ's information."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
    root = logging.getLogger("scaletest")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)


def messages() -> None:
    """Also show single requests and replies (--log-messages)."""
    for name in ("scaletest.worker", "scaletest.client"):
        logging.getLogger(name).setLevel(logging.INFO)
