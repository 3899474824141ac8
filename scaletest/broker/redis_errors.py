"""Tell errors of Redis that pass from those that stay, and word them for people.

Error codes stand in the middle of a text when a pipeline or a script passes the error on, so texts
are searched as well as types.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions

from scaletest.model.errors import Unreachable
from scaletest.model.masking import mask_passwords

# What is said of a full server, and what to do about it.
FULL = "Redis refuses writes: its memory is full"
REMEDY = (
    "start more workers, drop what waits (scaletest queue purge NAME), or raise maxmemory (the"
    " chart: redis.resources)"
)
_FULL = re.compile(r"\bOOM\b")
# Errors of a broken, restarting, full or read-only server: they pass, so the call may be repeated.
TRANSIENT = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.BusyLoadingError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.TryAgainError,
    exceptions.MasterDownError,
    OSError,
)
REDIS_ERRORS = (exceptions.RedisError,)
# Refusals that waiting does not end. They are ConnectionErrors in redis-py, hence checked first.
LOGIN_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError)
REFUSED = (*LOGIN_REFUSED, exceptions.NoPermissionError)
# What to do about a command that the server refuses, by a part of its answer in small letters.
_USER_HINT = "give this user of Redis the rights that the users of the chart have (redis.users)"
_HINTS = {
    "db index": "correct the database, the number at the end of the Redis URL",
    "permission": _USER_HINT,
    "acl failure": _USER_HINT,
    "unknown command": (
        "correct the Redis URL: it names a server of another type, such as Redis instead of"
        " Sentinel"
    ),
}
_PASSING = re.compile(
    r"\b(BUSY|LOADING|OOM|READONLY|MASTERDOWN|TRYAGAIN|UNKILLABLE|MISCONF|NOREPLICAS|UNBLOCKED)\b"
)


def is_full(error: BaseException) -> bool:
    """Return whether the server rejected a command, without any effect, as its memory is full."""
    return isinstance(error, exceptions.OutOfMemoryError) or (
        isinstance(error, exceptions.ResponseError) and bool(_FULL.search(str(error)))
    )


def is_transient(error: BaseException) -> bool:
    """Return whether it is right to wait and try the same again."""
    if isinstance(error, REFUSED):
        return False
    return isinstance(error, TRANSIENT) or (
        isinstance(error, exceptions.ResponseError) and bool(_PASSING.search(str(error)))
    )


@contextmanager
def excuse_outage(excused: bool = True) -> Iterator[None]:
    """Drop transient errors, where they are excused."""
    try:
        yield
    except Exception as error:
        if not (excused and is_transient(error)):
            raise


@contextmanager
def explain_redis_errors(url: str) -> Iterator[None]:
    """Turn redis-py's connection errors into one line that names the server and what to do."""
    try:
        yield
    except LOGIN_REFUSED as error:
        raise Unreachable(
            f"Redis at {mask_passwords(url)} rejects the login: {error}",
            hint="check user and password in the Redis URL",
        ) from error
    except (exceptions.RedisError, OSError) as error:
        if is_full(error):
            raise Unreachable(f"{FULL}: {mask_passwords(url)}", hint=REMEDY) from error
        if isinstance(error, exceptions.ResponseError) and not is_transient(error):
            # the server answers, but refuses the command
            message = str(error)
            hints = [hint for part, hint in _HINTS.items() if part in message.lower()]
            raise Unreachable(
                f"Redis at {mask_passwords(url)} answers with an error: {message}",
                hint=hints[0] if hints else "look at what its keys hold",
            ) from error
        raise Unreachable(
            f"Redis at {mask_passwords(url)} cannot be reached: {error}",
            hint="start it, or correct <redis_url> (SCALETEST_REDIS_URL)",
        ) from error
