"""The function of every request's RQ job, for when RQ's own code runs it.

That is in a stock worker, or in ours (rq_jobs.py). The fast lane never calls it. Under a stock
worker the workload comes from SCALETEST_WORKER_* variables, else it is sleep.

RQ stores the reply as the job's result. A failed workload raises in a job that RQ's client
enqueued, so that RQ retries it, keeps it in its failed registry, calls its callbacks and holds back
what depends on it. The reply to a request of our own clients says how it ended instead.
"""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

from rq import get_current_job

from scaletest.broker.accounting import Accounting
from scaletest.broker.fast_lane import TakenRequest
from scaletest.broker.retrying import Retrying
from scaletest.model import Outcome, Reason, checks, wire
from scaletest.model.errors import InvalidValue
from scaletest.processes.wake import Wake
from scaletest_workers.devices import NoneFree
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import Result

# How long a stock worker waits for an absent Redis.
STOCK_PATIENCE_S = 60.0


@dataclass(slots=True)
class RunningJob:
    """The job that RQ's own code runs now."""

    runtime: Runtime
    accounting: Accounting
    taken: TakenRequest
    result: Result | None = None  # of the workload, once it ended
    run_s: float = 0.0  # how long the workload took
    has_succeeded: bool = False  # RQ counted it as a success
    is_put_back: bool = False  # it waits again

    def put_back(self) -> None:
        """Put the job back into its queue."""
        self.accounting.release(self.taken)
        self.is_put_back = True


class WorkloadFailed(Exception):
    """The workload of a job failed; the text has the outcome, the reason and the error."""


current: RunningJob | None = None


def run(arguments: list[str], time_limit: float = 0.0) -> dict[str, Any]:
    """Run one request and return its reply; under a stock worker account for it as well.

    Raises WorkloadFailed in a job that RQ's client enqueued, and where RQ retries one of ours.
    """
    job = current or _job_of_stock_worker()
    run_s = 0.0
    try:
        words = checks.arguments(arguments)
        limit_s = checks.seconds(time_limit, "time limit")
    except (InvalidValue, TypeError) as error:
        result = Result(Outcome.FAILED, Reason.POISON, error=str(error))
    else:
        try:
            result, run_s = job.runtime.run(words, limit_s)
        except NoneFree as error:
            result = Result(Outcome.FAILED, Reason.NO_DEVICE, error=error.message)
    job.result = result
    job.run_s = run_s
    reply, wait_s = job.runtime.reply_json(job.taken, job.accounting.worker, result, run_s)
    ended_s = job.taken.started_us / 1e6 + run_s

    # account for it, unless it runs again
    has_failed = result.outcome is not Outcome.SUCCEEDED
    is_ours = bool(job.taken.enqueued_us)  # a client of ours enqueued it
    runs_again = (
        has_failed
        and is_ours
        and result.reason is not Reason.POISON
        and bool(getattr(get_current_job(), "retries_left", 0))
    )
    if job is current:  # accounts for it when RQ has stored what it stores
        if runs_again:
            job.accounting.expect_retry(job.taken)
    elif not runs_again:
        ended_s = job.accounting.settle(job.taken, result.outcome.value, wait_s, run_s, reply)
    if has_failed and (runs_again or not is_ours):
        raise WorkloadFailed(f"{result.outcome}, {result.reason or 'limit'}: {result.error}")
    return {**wire.load(reply, "the reply"), "ended_s": ended_s}


def _job_of_stock_worker() -> RunningJob:
    """Return the job that a stock worker runs. Raises InvalidValue outside a worker."""
    job: Any = get_current_job()
    if job is None:
        raise InvalidValue(
            "scaletest_workers.entry.run was called outside an RQ worker",
            hint="use scaletest queue submit",
        )
    retrying = Retrying(f"job {job.id}", patience_s=STOCK_PATIENCE_S)
    accounting = Accounting(job.connection, retrying, job.origin, job.worker_name or "")
    return RunningJob(_stock_runtime(), accounting, accounting.look_up(job.id))


@cache
def _stock_runtime() -> Runtime:
    """Return the workload of a stock worker, made once for all jobs of its process."""
    return Runtime(Settings.from_environment(os.environ), Wake())
