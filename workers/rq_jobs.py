"""Jobs that RQ's own code must run: results to keep, callbacks, retries, dependencies, foreign functions.

They are taken by the fast lane and held under the same lease; RQ then leaves in Redis what RQ leaves. A job is fetched
here, refused when its function is not allowed, and counted when RQ is done. Nothing is ever unpickled.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from rq.job import Job
from rq.queue import Queue

from scaletest.broker.accounting import Accounting, TakenJob
from scaletest.broker.connection import transient
from scaletest.broker.fast_lane import Taken
from scaletest.broker.heartbeat import Heartbeat
from scaletest.model import Outcome
from scaletest.model.checks import cut
from scaletest.system.waiting import Wake
from workers import admission, entry
from workers.outage import Patient
from workers.runtime import Runtime

logger = logging.getLogger("scaletest.worker")


class SlowLane(Patient):
    """RQ's own code under our lease, and what it tells about how a job ended."""

    _allowed: tuple[str, ...]
    _accounting: Accounting
    _heartbeat: Heartbeat
    _runtime: Runtime
    _force: Wake
    _forced = False
    _slow: entry.Current | None = None
    _slow_began = 0.0
    _slow_jobs = 0

    def _fetch(self, taken: Taken) -> tuple[Job, Queue] | None:
        """The job for RQ's own code, or None for poison, which is kept aside and never executed."""
        queue = self.queues[0]
        taken_job = TakenJob(taken.id, queue.name, self.name, taken.attempt, "", taken.enqueued_us, taken.started_us)
        self._slow_jobs += 1
        try:
            job = self.job_class.fetch(taken.id, connection=self.connection, serializer=self.serializer)
            refusal = admission.refusal(job, self._allowed)
        except Exception as error:
            if transient(error):
                logger.warning("worker %s: Redis is away, request %s will be taken again", self.name, taken.id)
                self._put_back(taken)
                return None
            refusal = f"the job cannot be read: {type(error).__name__}: {cut(str(error), 300)}"
        if refusal:
            logger.error("worker %s refuses job %s: %s", self.name, taken.id, refusal)
            self._accounting.poison(taken_job, refusal)
            return None
        self._slow = entry.Current(self._runtime, self._accounting, taken_job)
        job.redis_server_version = self.get_redis_server_version()  # type: ignore[no-untyped-call]
        return job, queue

    def _put_back(self, taken: Taken) -> None:
        """To the front of its queue, now or, for a worker that ends while Redis is away, with its lease."""
        try:
            self._accounting.release(TakenJob(taken.id, self.queues[0].name, self.name, taken.attempt))
        except Exception as error:
            if not (self._stop_requested and transient(error)):
                raise

    def execute_job(self, job: Job, queue: Queue) -> None:
        """RQ's own code under our lease; its outcome is counted afterwards."""
        slow, self._slow_began = self._slow, time.monotonic()
        if slow is None:
            super().execute_job(job, queue)
            return
        self._heartbeat.hold(slow.taken_job.id, slow.taken_job.attempt or 1, slow=True)
        try:
            self._execute_slow(slow, job, queue)
        finally:
            self._heartbeat.let_go()
            self._forget_stop()

    def _forget_stop(self) -> None:
        """A command to stop what has ended by now must not end what runs next."""
        self._stopped_job_id = None
        self._force.clear()
        if self._forced:  # looked at afterwards, since the signal may come in between
            self._force.set()

    def _execute_slow(self, slow: entry.Current, job: Job, queue: Queue) -> None:
        entry.current = slow
        try:
            super().execute_job(job, queue)
        except Exception as error:
            if not transient(error):
                raise
            logger.warning("worker %s: Redis went away at the end of job %s: it will be run again", self.name, job.id)
            return
        finally:
            entry.current = self._slow = None
            self._forget_stop()  # what is told of its end waits for Redis
        if not slow.settled:
            run_s = time.monotonic() - self._slow_began
            wait_s = (
                max(0.0, (slow.taken_job.started_us - slow.taken_job.enqueued_us) / 1e6)
                if slow.taken_job.enqueued_us
                else 0.0
            )
            outcome = Outcome.SUCCEEDED if slow.ok else Outcome.FAILED
            # still under the lease: its call may be lost on its way, and take a while
            self._heartbeat.settling()
            self._accounting.settle(slow.taken_job, outcome.value, wait_s, run_s)

    def handle_job_success(self, job: Job, *args: Any, **options: Any) -> None:
        """As RQ. The job's status does not tell: RQ leaves it alone when no result is kept."""
        if self._slow is not None:
            self._slow.ok = True
        super().handle_job_success(job, *args, **options)

    def handle_job_failure(self, job: Job, queue: Queue, *args: Any, **options: Any) -> None:
        """As RQ, but a job that was ended by our own stop goes back to its queue."""
        if self._forced and self._slow is not None and not self._slow.settled:
            self.execution = None
            self._accounting.release(self._slow.taken_job)
            self._slow.settled = True
            return
        super().handle_job_failure(job, queue, *args, **options)
