"""The worker's hot path: takes requests from the fast lane, runs them, and delivers their replies.

An outcome is delivered with the next call. The loop ends for a job that RQ's own code must run, and
is entered again after it.
"""

import logging
import time

from rq import SimpleWorker
from rq.job import Job

from scaletest.broker import jobs
from scaletest.broker.fast_lane import Answer, FastLane, FinishedRequest, NothingTaken, TakenRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.retrying import Retrying
from scaletest.model import Outcome, Reason
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue
from scaletest_workers.breaker import Breaker
from scaletest_workers.device_slot import DeviceSlot
from scaletest_workers.devices import NoneFree
from scaletest_workers.rq_jobs import RqJobRunner
from scaletest_workers.runtime import Runtime
from scaletest_workers.stopping import StopState
from scaletest_workers.tally import WorkTally
from scaletest_workers.workloads.base import Interrupted, Result

logger = logging.getLogger("scaletest.worker")

# While its queue is paused a worker asks again this often.
ASK_WHILE_PAUSED_S = 0.5
# The error of a request that RQ's command ended.
STOPPED = "it was stopped by RQ's stop command"


class FastLoop:
    """Works in one worker's fast lane."""

    def __init__(
        self,
        worker: SimpleWorker,
        lane: FastLane,
        runtime: Runtime,
        heartbeat: Heartbeat,
        *,
        rq_jobs: RqJobRunner,
        stopping: StopState,
        retrying: Retrying,
        device_slot: DeviceSlot | None,
        tally: WorkTally,
        burst: bool,
        max_jobs: int | None,
        log_messages: bool,
    ) -> None:
        """Work for `worker` in its lane.

        burst: end when the queue is empty. max_jobs: end after so many requests and jobs.
        """
        self._worker = worker
        self._lane = lane
        self._runtime = runtime
        self._heartbeat = heartbeat
        self._rq_jobs = rq_jobs
        self._stopping = stopping
        self._retrying = retrying
        self._device_slot = device_slot
        self._tally = tally
        self._burst = burst
        self._max_jobs = max_jobs
        self._log_messages = log_messages
        self._breaker = Breaker()
        # whether the call that is under way delivers an outcome
        self._delivers = False
        # how many requests this loop ran, beside the jobs that RQ's code ran
        self._ran = 0

    @property
    def idle(self) -> bool:
        """Whether a stopping worker may leave without Redis, since it delivers no outcome.

        Any thread may ask.
        """
        return not self._delivers or self._lane.idle

    @property
    def requests_begun(self) -> int:
        """How many requests and jobs this worker began."""
        return self._ran + self._rq_jobs.fetched

    def work(self, max_idle_time: int | None) -> Job | None:
        """Run requests until a job comes that RQ's own code must run, and return it.

        None when the loop is over. max_idle_time: end after so many seconds without a request.
        """
        idle_since = time.monotonic()
        done: FinishedRequest | None = None
        if not self._rq_jobs.fetched:
            self._close_idle_connections()
        while True:
            # deliver the last outcome, and take the next request
            taken = self._deliver_and_take(done, idle_since, max_idle_time)
            done = None
            if isinstance(taken, TakenRequest):
                if self._stopping.requested:
                    # told to stop while Redis answered: another worker can begin at once
                    self._rq_jobs.put_back(taken)
                elif taken.client:
                    done = self._run(taken)
                elif (job := self._rq_jobs.fetch(taken)) is not None:
                    return job
                idle_since = time.monotonic()
            elif taken is not NothingTaken.OVERDUE and self._is_over(
                taken, idle_since, max_idle_time
            ):
                return None

            # what RQ's own loop does between two jobs
            needs_maintenance = self._worker.should_run_maintenance_tasks
            if needs_maintenance:
                self._worker.run_maintenance_tasks()  # type: ignore[no-untyped-call]
            if needs_maintenance or not isinstance(taken, TakenRequest):
                self._close_idle_connections()

    def _close_idle_connections(self) -> None:
        """Close connections of RQ's own code.

        It opens one for a few commands, and would keep it for life.
        """
        self._worker.connection.connection_pool.disconnect(inuse_connections=False)

    def _deliver_and_take(
        self, done: FinishedRequest | None, idle_since: float, max_idle_time: int | None
    ) -> Answer:
        """Make one call to Redis: deliver, and take unless the worker is stopping.

        Returns OVERDUE to a worker that was frozen until Redis forgot it. By then it has sent a
        heartbeat, and may ask again.
        """
        # how long it waits for a request, when there is none
        block_s = 0.0 if self._burst else float(self._worker.dequeue_timeout)
        if max_idle_time is not None:
            block_s = min(block_s, max(0.01, idle_since + max_idle_time - time.monotonic()))
        self._delivers = done is not None
        try:
            if self._breaker.suspect and done is not None:
                # deliver at once, and let other workers take what waits
                self._lane.cycle(done, take=False)
                done = None
                self._delivers = False
                self._stopping.draining.wait(self._breaker.delay_s)
            taken = self._lane.cycle(
                done,
                take=not self._stopping.requested and not self._has_enough(),
                block_s=block_s,
            )
            if taken is NothingTaken.OVERDUE:
                self._retrying.run(self._heartbeat.start)
            return taken
        except Exception as error:
            if is_transient(error) and self._stopping.requested:
                return None  # leases expire by themselves
            raise

    def _has_enough(self) -> bool:
        """Return whether it has run as many requests and jobs as it was told to."""
        return self._max_jobs is not None and self.requests_begun >= self._max_jobs

    def _is_over(
        self, taken: NothingTaken | None, idle_since: float, max_idle_time: int | None
    ) -> bool:
        """Return whether the loop ends now that nothing was taken.

        While the queue is paused, this waits a little.
        """
        if self._stopping.requested or self._burst or self._has_enough():
            return True
        if taken is NothingTaken.PAUSED:
            return self._stopping.draining.wait(ASK_WHILE_PAUSED_S)
        return max_idle_time is not None and time.monotonic() - idle_since >= max_idle_time

    def _run(self, taken: TakenRequest) -> FinishedRequest | None:
        """Run one request; return its outcome for the next call, None when it was put back."""
        self._ran += 1
        heartbeat = self._heartbeat
        stopping = self._stopping
        try:
            arguments, limit_s = jobs.decode(taken.data)
        except InvalidValue as error:
            result = Result(Outcome.FAILED, Reason.POISON, error=str(error))
            run_s = 0.0
            registered = False
        else:
            if self._log_messages:
                logger.info(
                    "request %s arguments=%s limit=%g",
                    taken.id,
                    cut_text(repr(arguments), 200),
                    limit_s,
                )
            heartbeat.note_start(taken.id, taken.attempt)
            began = time.monotonic()
            try:
                result, run_s = self._runtime.run(arguments, limit_s)
            except Interrupted:
                if not stopping.was_commanded(taken.id):
                    heartbeat.note_end()
                    self._rq_jobs.put_back(taken)
                    return None
                result = Result(Outcome.FAILED, Reason.STOPPED, error=STOPPED)
                run_s = time.monotonic() - began
            except NoneFree:
                # the slot was lost, which is not this request's fault: another worker may have one
                heartbeat.note_end()
                self._rq_jobs.put_back(taken)
                self._claim_slot()
                return None
            registered = heartbeat.note_end()
            if stopping.stopped_job is not None:
                stopping.forget_job()
        reply, wait_s = self._runtime.reply_json(taken, self._worker.name, result, run_s)
        self._note(result, run_s, reply)
        return FinishedRequest(taken, result.outcome.value, wait_s, run_s, reply, registered)

    def _claim_slot(self) -> None:
        """Wait for another slot of a device. NoDevice, which ends this worker, without one."""
        assert self._device_slot is not None
        self._delivers = False
        try:
            self._device_slot.claim()
        except Exception as error:
            is_excused = isinstance(error, NoneFree) or is_transient(error)
            if not (self._stopping.requested and is_excused):
                raise

    def _note(self, result: Result, run_s: float, reply: str) -> None:
        """Count a request, and publish whether this worker became suspect."""
        self._tally.add(result.outcome, run_s)
        if self._log_messages:
            logger.info("reply %s", cut_text(reply, 1000))
        if self._breaker.note(result, run_s):
            self._heartbeat.mark_suspect(self._breaker.suspect)
            change = "is suspect" if self._breaker.suspect else "is no longer suspect"
            logger.warning("worker %s %s", self._worker.name, change)
