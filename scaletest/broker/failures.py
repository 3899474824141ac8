"""The last failures of a queue: requests that failed or timed out.

They are kept although their clients have the replies. The scripts write them when something failed,
and never otherwise (lua/failure.lua). Any client may write to Redis, so what is not a failure is
left out, and long texts are cut.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.queue_state import text_of
from scaletest.broker.redis_errors import REFUSED, is_transient
from scaletest.broker.scripts import LONGEST_FAILURE, MOST_FAILURES
from scaletest.model import Outcome, checks
from scaletest.model.error_pattern import pattern_of
from scaletest.stats.failures import FailureGroup, group_failures

OUTCOMES = frozenset({Outcome.FAILED.value, Outcome.TIMED_OUT.value})


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that failed or timed out. Reason, exit code and error are as in its reply."""

    at_s: float  # when it ended, on the Redis clock
    id: str
    node: str = ""
    device: str = ""
    pod: str = ""
    outcome: str = Outcome.FAILED.value
    reason: str = ""
    exit_code: int | None = None
    attempt: int = 1
    error: str = ""

    @property
    def pattern(self) -> str:
        """The error without what differs between equal failures."""
        return pattern_of(self.error)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "pattern": self.pattern}


def last_failures(redis: Redis, queue: str) -> list[FailedRequest]:
    """Return the last failures of a queue, newest first, at most MOST_FAILURES.

    A queue that is not declared, or whose key holds something else, has none.
    """
    try:
        rows: Any = redis.xrevrange(keys.failures(checks.queue_name(queue)), count=MOST_FAILURES)
    except ResponseError as error:
        if is_transient(error) or isinstance(error, REFUSED):
            raise
        return []
    return [failure for _, fields in rows if (failure := _read_failure(fields))]


def recent_failure_groups(failures: Sequence[FailedRequest]) -> list[FailureGroup]:
    """Group these failures, which come newest first; the most frequent group comes first."""
    return group_failures((failure, failure.at_s) for failure in reversed(failures))


def _read_failure(fields: Mapping[bytes, bytes] | None) -> FailedRequest | None:
    """Read an entry of the stream; None when scaletest did not write it."""
    texts = {
        text_of(name): text_of(value[:LONGEST_FAILURE]) for name, value in (fields or {}).items()
    }
    outcome = texts.get("outcome", "")
    if outcome not in OUTCOMES or not checks.REQUEST_ID.fullmatch(texts.get("id", "")):
        return None
    try:
        at_s = int(texts["at_us"]) / 1e6
        exit_code = int(texts["exit_code"]) if texts.get("exit_code") else None
        attempt = int(texts.get("attempts") or 1)
    except (KeyError, ValueError, OverflowError):
        return None
    return FailedRequest(
        at_s=at_s,
        id=texts["id"],
        node=texts.get("node", ""),
        device=texts.get("device", ""),
        pod=texts.get("pod", ""),
        outcome=outcome,
        reason=texts.get("reason", ""),
        exit_code=exit_code,
        attempt=attempt,
        error=texts.get("error", ""),
    )
