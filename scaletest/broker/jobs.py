"""A request as an RQ job, in JSON: what a stock `rq worker -S json` runs and what our worker reads
back.

The job's data are RQ's own: [function, instance, [arguments...], {}]. The function is always
`workers.entry.run`, and its arguments are the workload arguments and the time limit; everything
else about a request is in fields of the job hash that stock RQ ignores.
"""

from __future__ import annotations

import json
import math
from typing import Any

from scaletest.model import checks
from scaletest.model.errors import InvalidValue
from scaletest.model.request import Request

FUNCTION = "workers.entry.run"
# A stock worker kills a job at its RQ timeout. Our own limit acts first; this one only has to be
# later, and finite, because SimpleWorker treats a job without a timeout as abandoned after seven
# minutes.
NO_LIMIT_TIMEOUT_S = 7 * 86400
TIMEOUT_SLACK_S = 60


def encode(request: Request) -> bytes:
    """The `data` field of the job."""
    call: list[Any] = [FUNCTION, None, [list(request.arguments), request.time_limit_s], {}]
    return json.dumps(call, separators=(",", ":")).encode()


def rq_timeout(request: Request) -> int:
    """The job's RQ timeout in seconds, longer than any limit of ours."""
    return (
        math.ceil(request.time_limit_s) + TIMEOUT_SLACK_S
        if request.time_limit_s
        else NO_LIMIT_TIMEOUT_S
    )


def decode(data: bytes) -> tuple[tuple[str, ...], float]:
    """Arguments and time limit of one of our requests; InvalidValue for anything else."""
    try:
        function, instance, arguments, options = json.loads(data)
        if function != FUNCTION or instance is not None or options != {}:
            raise InvalidValue(f"the job calls {checks.cut(str(function), 80)}, not {FUNCTION}")
        values, limit = arguments
        if not isinstance(values, list):
            raise InvalidValue("the job's arguments are not a list")
        return checks.arguments(values), checks.seconds(limit, "time limit")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidValue(
            f"the job's data cannot be read: {checks.cut(str(error), 200)}"
        ) from error
