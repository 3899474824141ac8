"""Results that RQ keeps for requests without a reader: read with RQ's own classes, as JSON."""

from __future__ import annotations

import time
from typing import Any

from rq.exceptions import NoSuchJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.model.errors import InvalidValue, WaitTimeout
from scaletest.model.reply import Outcome, Reason, Reply, unreadable

LONGEST_BLOCK_S = 20.0


def wait_for(redis: Redis, request_id: str, timeout_s: float) -> Reply:
    """The stored reply, as soon as there is one; WaitTimeout after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return stored(redis, request_id)
        except WaitTimeout:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            redis.xread(
                {keys.rq_results(request_id): "0-0"},
                block=max(1, int(min(left, LONGEST_BLOCK_S) * 1000)),
            )


def stored(redis: Redis, request_id: str) -> Reply:
    """The stored reply. InvalidValue for an unknown request, WaitTimeout while it waits or runs."""
    try:
        job: Any = Job.fetch(request_id, connection=redis, serializer=JSONSerializer)
    except NoSuchJobError as error:
        raise InvalidValue(
            f"request {request_id} is not known",
            hint=(
                "its result may have expired (--result-ttl), or it was submitted without --no-wait"
            ),
        ) from error
    latest = job.latest_result()
    if latest is None and job.get_status().value == "failed":
        return Reply(request_id, Outcome.FAILED, Reason.POISON, error=job.exc_info or "")
    if latest is None:
        raise WaitTimeout(
            f"request {request_id} is {job.get_status().value}", hint="ask again later"
        )
    if isinstance(latest.return_value, dict):
        try:
            return Reply.from_dict(latest.return_value)
        except InvalidValue as error:
            return unreadable(request_id, error.message)
    reason = Reason.LOST if not latest.exc_string else Reason.POISON
    return Reply(
        request_id, Outcome.FAILED, reason, error=latest.exc_string or "lost by its workers"
    )
