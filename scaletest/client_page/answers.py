"""What the views of the client's page share: the load, the counts of queries, and JSON."""

import json
import re
from typing import Any, cast

from flask import Response, current_app

from scaletest.load import Steering
from scaletest.pages.security import HttpCounts

NUMBER = re.compile(r"\+?[0-9]+", re.ASCII)


def steering() -> Steering:
    """Return the load that this application shows and steers."""
    return cast(Steering, current_app.config["STEERING"])


def counts() -> HttpCounts:
    """Return the counts of HTTP queries of this application."""
    return cast(HttpCounts, current_app.config["COUNTS"])


def as_json(body: dict[str, Any]) -> Response:
    """Answer with JSON."""
    return Response(json.dumps(body, allow_nan=False), mimetype="application/json")


def with_http(statistics: dict[str, Any]) -> dict[str, Any]:
    """Return statistics of a load with the counts of HTTP queries."""
    http = counts()
    return {**statistics, "http_completed": http.completed, "http_rejected": http.rejected}
