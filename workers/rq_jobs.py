"""Jobs that RQ's own code must run: results to keep, callbacks, retries, dependencies, foreign
functions.

The fast lane takes them and holds them under the same lease; RQ then leaves in Redis what RQ
leaves. A job is fetched here, refused when its function is not allowed, and counted when RQ is
done. Nothing is ever unpickled.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from rq import SimpleWorker
from rq.job import Job

from scaletest.broker.accounting import Accounting, TakenJob
from scaletest.broker.connection import transient
from scaletest.broker.fast_lane import Taken
from scaletest.broker.heartbeat import Heartbeat
from scaletest.model import Outcome
from scaletest.model.checks import cut
from workers import admission, entry, registration
from workers.runtime import Runtime

logger = logging.getLogger("scaletest.worker")


class RqJobRunner:
    """Runs one worker's RQ jobs, one at a time, under our lease.

    running: the job between `fetch` and the end of `run`. count: how many jobs were fetched.
    """

    def __init__(
        self,
        worker: SimpleWorker,
        runtime: Runtime,
        accounting: Accounting,
        heartbeat: Heartbeat,
        allowed: Sequence[str],
        *,
        put_back: Callable[[Taken], None],
        forget_stop: Callable[[], None],
    ) -> None:
        """allowed: prefixes of functions that may be executed. put_back: returns a request to its
        queue.

        forget_stop: drops a command to stop a job that has ended by now.
        """
        self._worker = worker
        self._runtime = runtime
        self._accounting = accounting
        self._heartbeat = heartbeat
        self._allowed = allowed
        self._put_back = put_back
        self._forget_stop = forget_stop
        self.running: entry.Current | None = None
        self.count = 0

    def fetch(self, taken: Taken) -> Job | None:
        """Read the job that `run` will run; None when it was put back, or kept aside as poison and
        never executed.
        """
        worker = self._worker
        queue = worker.queues[0].name
        taken_job = TakenJob(
            taken.id, queue, worker.name, taken.attempt, "", taken.enqueued_us, taken.started_us
        )
        self.count += 1
        try:
            job = worker.job_class.fetch(
                taken.id, connection=worker.connection, serializer=worker.serializer
            )
            refusal = admission.refusal(job, self._allowed)
        except Exception as error:
            if transient(error):
                logger.warning(
                    "worker %s: Redis is away, request %s will be taken again",
                    worker.name,
                    taken.id,
                )
                self._put_back(taken)
                return None
            refusal = f"the job cannot be read: {type(error).__name__}: {cut(str(error), 300)}"
        if refusal:
            logger.error("worker %s refuses job %s: %s", worker.name, taken.id, refusal)
            self._accounting.poison(taken_job, refusal)
            return None
        self.running = entry.Current(self._runtime, self._accounting, taken_job)
        job.redis_server_version = worker.get_redis_server_version()  # type: ignore[no-untyped-call]
        return job

    def run(self, execute: Callable[[], None]) -> None:
        """Execute the fetched job by RQ's own code, and count its outcome."""
        current, began = self.running, time.monotonic()
        assert current is not None
        self._heartbeat.hold(current.taken_job.id, current.taken_job.attempt or 1, slow=True)
        try:
            if self._execute(current, execute) and not current.put_back:
                run_s = time.monotonic() - began
                registration.count(self._worker, current.ok, run_s)
                if not current.settled:
                    self._settle(current, run_s)
        finally:
            self._heartbeat.let_go()
            self._forget_stop()

    def _execute(self, current: entry.Current, execute: Callable[[], None]) -> bool:
        """Whether RQ's code came to its end; False when Redis went away, so that the job will be
        run again.
        """
        entry.current = current
        try:
            execute()
        except Exception as error:
            if not transient(error):
                raise
            name, job = self._worker.name, current.taken_job.id
            logger.warning(
                "worker %s: Redis went away at the end of job %s: it will be run again", name, job
            )
            return False
        finally:
            entry.current = self.running = None
            self._forget_stop()  # before the outcome is counted, since that waits for Redis
        return True

    def _settle(self, current: entry.Current, run_s: float) -> None:
        job = current.taken_job
        wait_s = max(0.0, (job.started_us - job.enqueued_us) / 1e6) if job.enqueued_us else 0.0
        outcome = Outcome.SUCCEEDED if current.ok else Outcome.FAILED
        # still under the lease: the call may be lost on its way, and take a while
        self._heartbeat.settling()
        self._accounting.settle(job, outcome.value, wait_s, run_s)

    def note_success(self) -> None:
        """RQ counted the job as a success. Its status does not say so when no result is kept."""
        if self.running is not None:
            self.running.ok = True

    @property
    def is_unsettled(self) -> bool:
        """Whether a job runs whose outcome is not counted yet."""
        return self.running is not None and not self.running.settled

    def release(self) -> None:
        """Put the running job back into its queue."""
        assert self.running is not None
        self._accounting.release(self.running.taken_job)
        self.running.settled = self.running.put_back = True
