"""Answers to probes of the UI."""

from __future__ import annotations

from flask import Response

from scaletest.model.errors import Unreachable
from scaletest.pages.site import READ, state
from scaletest.ui.reading import reader


def healthz() -> Response:
    """200 as long as it serves, also while Redis is away: a new process would not help."""
    return state()


def readyz() -> Response:
    """200 when pages can be shown; 503 while the Redis that was named cannot be read."""
    if reader() is not None:
        try:
            reader().read()
        except Unreachable as error:
            return state(error.message)
    return state()


ROUTES = (("/healthz", READ, healthz), ("/readyz", READ, readyz))
