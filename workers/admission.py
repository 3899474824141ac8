"""Which functions a worker may execute: its own, and those that the operator allowed by prefix
(none by default).

A queue is an open door: whoever can write to Redis can name any function. So everything that RQ
would import and call for a job is checked, callbacks and methods included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rq.job import Job

from scaletest.broker.jobs import FUNCTION
from scaletest.model.checks import cut

VARIABLE = "SCALETEST_WORKER_ALLOW_FUNCTION"


def prefixes(options: Sequence[str] | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The allowed prefixes: from the options, else the words of the environment variable."""
    names = environment.get(VARIABLE, "").replace(",", " ").split() if options is None else options
    return tuple(name.strip().rstrip(".") for name in names if name.strip())


def refusal(job: Job, allowed: Sequence[str]) -> str:
    """Why this job must not be executed; "" when it may. RQ's errors for unreadable data."""
    called: list[Any] = [job.func_name]
    if job.instance is not None:
        return "it calls a method of an object, which this worker never does"
    if job.func_name == FUNCTION and job.webhooks:
        job.webhooks = []  # requests of ours have none: somebody else wrote them
    for name in ("_success_callback_name", "_failure_callback_name", "_stopped_callback_name"):
        callback = getattr(job, name, None)
        if callback:
            called.append(callback)
    for name in called:
        if name != FUNCTION and not _is_allowed(name, allowed):
            return (
                f"function {cut(str(name), 100)!r} is not allowed here (allow it with"
                f" --allow-function or {VARIABLE})"
            )
    call: tuple[Any, Any] = (job.args, job.kwargs)
    if not isinstance(call[0], list | tuple) or not isinstance(call[1], dict):
        return "its arguments are not a list, or its keyword arguments not an object"
    return ""


def _is_allowed(name: Any, allowed: Sequence[str]) -> bool:
    return isinstance(name, str) and any(
        name == prefix or name.startswith(prefix + ".") for prefix in allowed
    )
