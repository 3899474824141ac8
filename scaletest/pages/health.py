"""Answers to probes, which ask whether a process lives and whether it can be used."""

from __future__ import annotations

import json

from flask import Response


def state(trouble: str = "") -> Response:
    """200 without a trouble, and 503 with it."""
    body = {"status": "failed", "reason": trouble} if trouble else {"status": "ok"}
    return Response(json.dumps(body), 503 if trouble else 200, mimetype="application/json")
