"""Errors for what the API server refuses, and how long to wait before the next call."""

import json
from collections.abc import Mapping

from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError, Unreachable

# A server's Retry-After is obeyed, but no longer than this in all.
LONGEST_OBEYED_S = 3600.0
# Statuses of client errors that pass with time: timeout, conflict, the pages of a list have
# expired, too early, too many requests.
_PASSING = (408, 409, 410, 425, 429)


class Missing(ScaletestError):
    """The object does not exist."""

    exit_code = 2


class Refused(ScaletestError):
    """The API server refuses the call for good: trying again does not help."""

    exit_code = 2


class Busy(Unreachable):
    """The API server is busy or unreachable (409, 429, 5xx, or a timeout): try again."""

    after_s = 0.0  # seconds until then, where the server names them


class Conflict(Busy):
    """The object exists already, or was changed since it was read (409)."""


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds after which the API server takes the call again; 0 when it names none."""
    after = headers.get("retry-after", "")
    return float(after) if after.isdigit() else 0.0


def status_error(
    status: int, reason: str, action: str, right: str = "", headers: Mapping[str, str] | None = None
) -> ScaletestError:
    """Return the error for an HTTP status of the API server; action and right as in `ApiCalls`."""
    if status == 404:
        return Missing(f"cannot {action}: not found", hint="check its name and the namespace")
    if status in (401, 403):
        return Unreachable(
            f"not allowed to {action}: {reason}",
            hint=f"give the service account the right to {right or action} in this namespace",
        )
    if 400 <= status < 500 and status not in _PASSING:
        return Refused(
            f"cannot {action}: {status} {reason}",
            hint="correct the object; trying again does not help",
        )
    if status == 409:
        return Conflict(
            f"cannot {action}: {reason}", hint="it was changed meanwhile; read it again"
        )
    hint = "the API server is overloaded or broken; try again"
    if status == 410:
        hint = "the pages of the list have expired; list again"
    busy = Busy(f"cannot {action}: {status} {reason}", hint=hint)
    busy.after_s = retry_after_s(headers or {})
    return busy


def read_message(body: bytes) -> str:
    """Read the message of a Status object, else the beginning of the body."""
    try:
        return cut_text(str(json.loads(body)["message"]), 200)
    except (ValueError, KeyError, TypeError):
        return cut_text(body.decode("utf-8", "replace"), 200)
