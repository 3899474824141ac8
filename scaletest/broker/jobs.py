"""A request as an RQ job, in JSON, and the results that RQ keeps for requests without a reader.

The job is what a stock `rq worker -S json` runs and what our worker reads back. Its data are RQ's
own: [function, instance, [arguments...], {}]. The function is always `scaletest_workers.entry.run`,
and its arguments are the workload arguments and the time limit; everything else about a request is
in fields of the job hash that stock RQ ignores. Results are read with RQ's own classes, as JSON.
"""

import json
import math
import time
from contextlib import suppress
from typing import Any

from rq.exceptions import NoSuchJobError
from rq.job import Job
from rq.job import Retry as Retry
from rq.serializers import JSONSerializer

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.model import checks, wire
from scaletest.model.errors import InvalidValue, WaitTimeout
from scaletest.model.record import Outcome, Reason, Reply, Request, Schedule, unreadable_reply

FUNCTION = "scaletest_workers.entry.run"
# What stands before the outcome in RQ's text of an exception of that function.
FAILURE = "scaletest_workers.entry.WorkloadFailed: "
# A stock worker kills a job at its RQ timeout. Our own limit acts first; this one only has to be
# later, and finite, because SimpleWorker treats a job without a timeout as abandoned after seven
# minutes.
NO_LIMIT_TIMEOUT_S = 7 * 86400
TIMEOUT_SLACK_S = 60
# Bytes of the data of a request that a worker reads (lua/cycle.lua).
MOST_DATA_BYTES = 1024 * 1024
# How long one call waits for a result; then it is repeated, to notice a dead connection.
LONGEST_BLOCK_S = 20.0


def make_schedule(retry: Retry | None, delay_s: float) -> Schedule:
    """Return when a request runs, with RQ's retries; InvalidValue for a wrong delay."""
    delay_s = checks.seconds(delay_s, "delay")
    if retry is None:
        return Schedule(delay_s)
    if not isinstance(retry, Retry):
        raise InvalidValue(
            "retry is no rq.Retry", hint="give e.g. rq.Retry(3, interval=[1, 5, 30])"
        )
    return Schedule(delay_s, retry.max, tuple(retry.intervals))


def encode(request: Request) -> bytes:
    """Return the `data` field of the job."""
    call: list[Any] = [FUNCTION, None, [list(request.arguments), request.time_limit_s], {}]
    return json.dumps(call, separators=(",", ":")).encode()


def rq_timeout(request: Request) -> int:
    """Return the job's RQ timeout in seconds, longer than any limit of ours."""
    limit_s = request.time_limit_s
    return math.ceil(limit_s) + TIMEOUT_SLACK_S if limit_s else NO_LIMIT_TIMEOUT_S


def decode(data: bytes) -> tuple[tuple[str, ...], float]:
    """Return arguments and time limit of one of our requests; InvalidValue for anything else."""
    try:
        if data[:1] != b"[":  # RQ's scheduler compresses what it enqueues
            data = wire.decompress(data, MOST_DATA_BYTES, "its data")
        function, instance, arguments, options = json.loads(data)
        if function != FUNCTION or instance is not None or options != {}:
            raise InvalidValue(
                f"the job calls {checks.cut_text(str(function), 80)}, not {FUNCTION}"
            )
        words, limit_s = arguments
        if not isinstance(words, list):
            raise InvalidValue("the job's arguments are not a list")
        return checks.arguments(words), checks.seconds(limit_s, "time limit")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidValue(
            f"the job's data cannot be read: {checks.cut_text(str(error), 200)}"
        ) from error


def wait_for_stored_reply(redis: Redis, request_id: str, timeout_s: float) -> Reply:
    """Return the stored reply, as soon as there is one; WaitTimeout after `timeout_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return read_stored_reply(redis, request_id)
        except WaitTimeout:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
            redis.xread(
                {keys.rq_results(request_id): "0-0"},
                block=max(1, int(min(left, LONGEST_BLOCK_S) * 1000)),
            )


def read_stored_reply(redis: Redis, request_id: str) -> Reply:
    """Return the stored reply.

    InvalidValue for an unknown request, WaitTimeout while it waits or runs.
    """
    try:
        job: Any = Job.fetch(request_id, connection=redis, serializer=JSONSerializer)
    except NoSuchJobError as error:
        raise InvalidValue(
            f"request {request_id} is not known",
            hint="its result may have expired, or it was submitted without <keep>",
        ) from error
    latest = job.latest_result()
    if latest is None:  # no worker finished it
        status = job.get_status().value
        if status == "failed":
            return Reply(request_id, Outcome.FAILED, Reason.POISON, error=job.exc_info or "")
        raise WaitTimeout(f"request {request_id} is {status}", hint="ask again later")
    if isinstance(latest.return_value, dict):  # our function returned a reply (entry.py)
        try:
            return Reply.from_dict(latest.return_value)
        except InvalidValue as error:
            return unreadable_reply(request_id, error.message)
    _, is_ours, text = (latest.exc_string or "").rpartition(FAILURE)
    if is_ours:  # it was enqueued by RQ's client: its failure is RQ's, and no reply
        ending, _, why = text.strip().partition(": ")
        outcome_name, _, reason_name = ending.partition(", ")
        outcome = Outcome.FAILED
        reason = Reason.EXIT
        with suppress(ValueError):  # anybody may have written it
            outcome = Outcome(outcome_name)
            reason = Reason.NONE if outcome is not Outcome.FAILED else Reason(reason_name)
        return Reply(request_id, outcome, reason, error=checks.cut_text(why))
    reason = Reason.POISON if latest.exc_string else Reason.LOST
    if job.get_status(refresh=False) == "stopped":
        reason = Reason.STOPPED
    return Reply(
        request_id,
        Outcome.FAILED,
        reason,
        error=latest.exc_string or "lost by its workers",
    )
