"""What views answer with, and from: the load, its counts, and JSON."""

import json
import re
from typing import Any

from flask import Response, current_app

from scaletest.load import Steering
from scaletest.pages.security import HttpCounts

NUMBER = re.compile(r"\+?[0-9]+", re.ASCII)


def steering() -> Steering:
    """Return the load of this application."""
    control: Steering = current_app.config["STEERING"]
    return control


def counts() -> HttpCounts:
    """Return the counts of HTTP queries so far."""
    counted: HttpCounts = current_app.config["COUNTS"]
    return counted


def as_json(body: dict[str, Any]) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(body, allow_nan=False), mimetype="application/json")


def with_http(statistics: dict[str, Any]) -> dict[str, Any]:
    """Add the counts of HTTP queries."""
    queries = counts()
    return {**statistics, "http_completed": queries.completed, "http_rejected": queries.rejected}
