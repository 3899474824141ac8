"""Jobs that RQ's own code must run, which of them a worker may execute, and what RQ's tools show.

The fast lane takes these jobs and holds them under the same lease; RQ then leaves in Redis what RQ
leaves. A job is fetched here, refused when its function is not allowed, and counted when RQ is
done. Nothing is ever unpickled.

A worker may execute its own functions, and those that the operator allowed by prefix (none by
default). A queue is an open door: all who can write to Redis can name any function. So everything
that RQ would import and call for a job is checked, callbacks and methods included.

RQ's tools show of a worker the fields that its heartbeat writes into RQ's hash of the worker.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from rq import SimpleWorker
from rq.job import Job

from scaletest.broker.accounting import Accounting
from scaletest.broker.fast_lane import TakenRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.jobs import FUNCTION
from scaletest.broker.redis_errors import is_transient
from scaletest.model import Outcome
from scaletest.model.checks import cut_text
from scaletest_workers import entry
from scaletest_workers.runtime import Runtime
from scaletest_workers.stopping import StopState
from scaletest_workers.tally import WorkTally
from scaletest_workers.workloads.base import SUCCEEDED, Result

logger = logging.getLogger("scaletest.worker")

# Prefixes of functions that a stock worker may execute beside ours.
ALLOWED_VARIABLE = "SCALETEST_WORKER_ALLOW_FUNCTION"
# Attributes of RQ's job that name functions, too.
_CALLBACKS = ("_success_callback_name", "_failure_callback_name", "_stopped_callback_name")
# The first byte of every pickle of today's protocols, and why a worker refuses one.
_PICKLED = b"\x80"
PICKLED = (
    "its data are a pickle, which a worker never loads (enqueue it with serializer=JSONSerializer,"
    " or -S json on RQ's command line; for rq cron see docs/how-to/rq.md)"
)
# The error of a job whose function failed, beside its traceback, which RQ keeps.
RAISED = "its function failed; RQ's failed registry has the traceback"


def worker_details(
    worker: SimpleWorker, runtime: Runtime, tally: WorkTally
) -> dict[str, str | int | float]:
    """Return fields of the hash by name, as RQ writes them; node, pod and device are ours."""
    return {
        "successful_job_count": tally.succeeded,
        "failed_job_count": tally.failed,
        "total_working_time": round(tally.run_s, 6),
        "hostname": worker.hostname or "",
        "queues": worker.queues[0].name,
        "pid": worker.pid or 0,
        "birth": f"{worker.birth_date:%Y-%m-%dT%H:%M:%S.%fZ}" if worker.birth_date else "",
        "version": worker.version,
        "python_version": worker.python_version,
        "ip_address": worker.ip_address,
        "node": runtime.node,
        "pod": runtime.pod,
        "device": runtime.devices.current,
    }


def reason_to_refuse(job: Job, allowed: Sequence[str]) -> str:
    """Return why this job must not be executed; "" when it may. RQ's errors for unreadable data."""
    if job.data.startswith(_PICKLED):
        return PICKLED
    if job.instance is not None:
        return "it calls a method of an object, which this worker never does"
    if job.func_name == FUNCTION and job.webhooks:
        job.webhooks = []  # requests of ours have none: they were written by others
    callbacks = (getattr(job, name, None) for name in _CALLBACKS)
    for name in (job.func_name, *filter(None, callbacks)):
        is_allowed = isinstance(name, str) and any(
            name == prefix or name.startswith(prefix + ".") for prefix in allowed
        )
        if name != FUNCTION and not is_allowed:
            return (
                f"function {cut_text(str(name), 100)!r} is not allowed here (allow it with"
                f" --allow-function or {ALLOWED_VARIABLE})"
            )
    values, options = cast(tuple[Any, Any], (job.args, job.kwargs))
    if not isinstance(values, list | tuple) or not isinstance(options, dict):
        return "its arguments are not a list, or its keyword arguments not an object"
    return ""


class RqJobRunner:
    """Runs one worker's RQ jobs, one at a time, under our lease."""

    def __init__(
        self,
        worker: SimpleWorker,
        runtime: Runtime,
        accounting: Accounting,
        heartbeat: Heartbeat,
        allowed: Sequence[str],
        *,
        stopping: StopState,
        tally: WorkTally,
    ) -> None:
        """Run jobs for `worker`. allowed: prefixes of functions that may be executed."""
        self._worker = worker
        self._runtime = runtime
        self._accounting = accounting
        self._heartbeat = heartbeat
        self._allowed = [prefix.strip().rstrip(".") for prefix in allowed if prefix.strip()]
        self._stopping = stopping
        self._tally = tally
        # the job between `fetch` and the end of `run`
        self.running: entry.RunningJob | None = None
        self.fetched = 0  # jobs

    def fetch(self, taken: TakenRequest) -> Job | None:
        """Read the job that `run` will run; None when there is nothing to run.

        Then it was put back, or kept aside as poison, which is never executed.
        """
        worker = self._worker
        self.fetched += 1
        try:
            job = worker.job_class.fetch(
                taken.id, connection=worker.connection, serializer=worker.serializer
            )
            reason = reason_to_refuse(job, self._allowed)
        except Exception as error:
            if is_transient(error):
                logger.warning(
                    "worker %s: Redis is away, request %s will be taken again",
                    worker.name,
                    taken.id,
                )
                self.put_back(taken)
                return None
            reason = f"the job cannot be read: {type(error).__name__}: {cut_text(str(error), 300)}"
        if reason:
            logger.error("worker %s refuses job %s: %s", worker.name, taken.id, reason)
            self._accounting.poison(taken, reason)
            return None
        self.running = entry.RunningJob(self._runtime, self._accounting, taken)
        job.redis_server_version = worker.get_redis_server_version()  # type: ignore[no-untyped-call]
        return job

    def run(self, execute: Callable[[], None]) -> None:
        """Execute the fetched job by RQ's own code, and count its outcome."""
        current = self.running
        assert current is not None
        taken = current.taken
        began = time.monotonic()
        self._heartbeat.note_start(taken.id, taken.attempt, by_rq=True)
        try:
            entry.current = current
            try:
                execute()
            except Exception as error:
                if not is_transient(error):
                    raise
                logger.warning(
                    "worker %s: Redis went away at the end of job %s: it will be run again",
                    self._worker.name,
                    taken.id,
                )
                return
            finally:
                entry.current = self.running = None
                # before the outcome is counted, since that waits for Redis
                self._stopping.forget_job()
            if current.is_put_back:
                return
            run_s = current.run_s if current.result else time.monotonic() - began
            result = current.result or SUCCEEDED
            # RQ fails a job also when its callback raises, and one that it was told to stop
            if not current.has_succeeded and result.outcome is Outcome.SUCCEEDED:
                result = Result(Outcome.FAILED, error=RAISED)
            self._tally.add(result.outcome, run_s)
            reply, wait_s = self._runtime.reply_json(taken, self._worker.name, result, run_s)
            # still under the lease: the call may be lost on its way, and take a while
            self._accounting.settle(taken, result.outcome.value, wait_s, run_s, reply)
        finally:
            self._heartbeat.note_end()
            self._stopping.forget_job()

    def put_back(self, taken: TakenRequest) -> None:
        """Put a request back at the front of its queue.

        A worker that ends without Redis leaves it to its lease.
        """
        try:
            self._accounting.release(taken)
        except Exception as error:
            if not (self._stopping.requested and is_transient(error)):
                raise
