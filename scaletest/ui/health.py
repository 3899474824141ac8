"""Answers to probes of the UI."""

from __future__ import annotations

from functools import lru_cache

from flask import Response

from scaletest.broker.connection import explained, prepare
from scaletest.model.errors import Unreachable
from scaletest.pages.health import state
from scaletest.pages.site import READ
from scaletest.ui.sources import sources

# Shorter than the timeout of a probe.
ANSWER_S = 2.0
_prepared = lru_cache(prepare)


def healthz() -> Response:
    """200 as long as it serves, also while Redis is away: a new process would not help."""
    return state()


def readyz() -> Response:
    """200 when pages can be shown; 503 while the Redis that was named does not answer."""
    url = sources().redis_url
    if not url:
        return state()
    try:
        with explained(url):
            _prepared(url, socket_timeout_s=ANSWER_S).ping()
    except Unreachable as error:
        return state(error.message)
    return state()


ROUTES = (("/healthz", READ, healthz), ("/readyz", READ, readyz))
