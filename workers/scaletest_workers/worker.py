"""The worker: an RQ worker whose hot path is the broker's fast lane.

It can also be started by `rq worker -w scaletest_workers.worker.Worker`.

Requests that want a reply run in the fast lane, one round trip each. Every other job of the queue
(results to keep, callbacks, retries, dependencies, foreign functions) is taken under the same lease
and then run by RQ's own code, so that it leaves in Redis what RQ would leave. With several queues
RQ's loop runs unchanged, without fast lane and lease. A job's function is executed only when it is
ours or starts with an allowed prefix. Nothing is ever unpickled.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from types import FrameType
from typing import Any

from rq.job import Job
from rq.queue import Queue

from scaletest.broker import Queues, connect
from scaletest.broker.accounting import Accounting
from scaletest.broker.connection import Redis, connect_again
from scaletest.broker.fast_lane import FastLane
from scaletest.broker.heartbeat import (
    DEFAULT_INTERVAL_S,
    MAX_ATTEMPTS,
    Heartbeat,
    RunningRequest,
    patience_s,
)
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.retrying import Retrying
from scaletest.broker.samples import SamplerLease
from scaletest.model.errors import InvalidValue
from scaletest.observe.devices.reader import DeviceReader
from scaletest.processes.orphans import adopt_orphans
from scaletest_workers.device_slot import DeviceSlot
from scaletest_workers.entry import RunningJob
from scaletest_workers.fast_loop import FastLoop
from scaletest_workers.node_sampler import NodeSampler
from scaletest_workers.outage_proof_worker import OutageProofWorker
from scaletest_workers.rq_jobs import ALLOWED_VARIABLE, RqJobRunner, worker_details
from scaletest_workers.runtime import Runtime
from scaletest_workers.scheduling import Scheduling
from scaletest_workers.settings import Serving, Settings
from scaletest_workers.stopping import StopState
from scaletest_workers.tally import WorkTally

logger = logging.getLogger("scaletest.worker")

# How long a worker that is started from the command line waits for a Redis that breaks its first
# connections; it does not wait for one that refuses them.
FIRST_CONNECTION_S = 60.0


def rq_serving(environment: Mapping[str, str]) -> Serving:
    """Return the options of a worker that RQ's command line starts.

    RQ gives it the queue and the server.
    """
    return Serving(
        queue="",
        redis_url="",
        name=None,
        burst=False,
        allow_function=tuple(environment.get(ALLOWED_VARIABLE, "").replace(",", " ").split()),
        heartbeat_s=DEFAULT_INTERVAL_S,
        max_attempts=MAX_ATTEMPTS,
        grace_s=30.0,
        log_messages=False,
        with_scheduler=False,  # RQ tells `work` itself
    )


class Worker(OutageProofWorker):
    """Serves one queue. `settings` default to SCALETEST_WORKER_* variables, for `rq worker -w`."""

    # `bootstrap` makes these, the runtime and the heartbeat, where the worker has one queue
    _loop: FastLoop | None = None
    _rq_jobs: RqJobRunner | None = None

    def __init__(
        self,
        *args: Any,
        settings: Settings | None = None,
        serving: Serving | None = None,
        announce: Callable[[Worker], None] | None = None,
        **options: Any,
    ) -> None:
        """Make a worker as RQ does. announce: called when it is about to take requests."""
        super().__init__(*args, **options)
        self.tally = WorkTally()
        self._serving = serving or rq_serving(os.environ)
        self._settings = settings
        self._announce = announce
        self._stopping = StopState(self, self._serving.grace_s)
        self._device_slot: DeviceSlot | None = None
        self._sampler: NodeSampler | None = None
        # in place of RQ's scheduler
        self._scheduling: Scheduling | None = None
        # what `work` was told: to end when the queue is empty, and after so many requests
        self._burst = False
        self._max_jobs: int | None = None
        # the error that ended the loop
        self._crash: Exception | None = None
        # whether `bootstrap` is under way
        self._booting = False

    # -- life
    # ----------------------------------------------------------------------------------------------

    def work(self, burst: bool = False, *args: Any, **options: Any) -> bool:
        """Run RQ's loop; return whether any job was processed."""
        self._burst = burst
        self._max_jobs = options.get("max_jobs")
        worked = super().work(burst, *args, **options)
        if self._crash is not None:
            raise self._crash  # RQ logs it and ends the loop as if all were well
        return worked or self.tally.ended > 0

    def bootstrap(self, *args: Any, **options: Any) -> None:
        """Start as RQ does, then make our parts: runtime, heartbeat, fast lane."""
        if len(self.queues) != 1:
            super().bootstrap(*args, **options)
            return
        # From here on a signal must lead through teardown, or a worker that stops at once stays
        # registered.
        self._booting = True
        self._install_signal_handlers()  # type: ignore[no-untyped-call]
        queue = self.queues[0].name
        interval_s = self._serving.heartbeat_s
        retrying = Retrying(f"worker {self.name}", sleep=self._pause)
        self._runtime = Runtime(
            self._settings or Settings.from_environment(os.environ), self._stopping.interrupt
        )
        # the heartbeat's thread extends the worker's leases and that of its device
        heartbeat_redis = connect_again(self.connection, patience_s(interval_s))

        # before requests count on this worker: its device, and the process of its workload
        self._prepare_runtime(heartbeat_redis, retrying)

        # register the worker
        sampling = None
        if not self._runtime.settings.no_causes:
            sampling = SamplerLease(
                queue,
                self._runtime.node,
                self.name,
                interval_s=self._runtime.settings.sample_interval_s,
            )
        self._heartbeat = Heartbeat(
            heartbeat_redis,
            self.name,
            queue,
            interval_s=interval_s,
            max_attempts=self._serving.max_attempts,
            details=partial(worker_details, self, self._runtime, self.tally),
            renew=None if self._device_slot is None else self._device_slot.renew,
            sampling=sampling,
        )

        def register() -> None:
            # RQ treats a killed worker as alive until its hash expires, eight minutes later. Our
            # deadline is over sooner, also when a first try of ours registered and then lost its
            # connection.
            self._heartbeat.forget_dead_namesake()
            super(Worker, self).bootstrap(*args, **options)
            self._heartbeat.start()

        retrying.run(register)

        # the fast lane, and what runs what comes by it
        self._rq_jobs = RqJobRunner(
            self,
            self._runtime,
            Accounting(self.connection, retrying, queue, self.name),
            self._heartbeat,
            self._serving.allow_function,
            stopping=self._stopping,
            tally=self.tally,
        )
        self._lane = FastLane(self.connection, self.name, queue, interval_s, retrying)
        self._loop = FastLoop(
            self,
            self._lane,
            self._runtime,
            self._heartbeat,
            rq_jobs=self._rq_jobs,
            stopping=self._stopping,
            retrying=retrying,
            device_slot=self._device_slot,
            tally=self.tally,
            burst=self._burst,
            max_jobs=self._max_jobs,
            log_messages=self._serving.log_messages,
        )
        self._heartbeat.lane = self._lane
        if sampling is not None:
            self._start_sampler(sampling, self._loop)
        self._booting = False
        if self._announce is not None:
            self._announce(self)

    def _prepare_runtime(self, heartbeat_redis: Redis, retrying: Retrying) -> None:
        """Lease a slot of this worker's device, and get its workload ready.

        Raises NoDevice and UsageError, and SystemExit where the worker is told to stop meanwhile.
        """
        try:
            if self._runtime.devices.wants_slot:
                self._device_slot = DeviceSlot(
                    heartbeat_redis,
                    self.name,
                    self._runtime.node,
                    self._runtime.devices,
                    interval_s=self._serving.heartbeat_s,
                    retrying=retrying,
                    pause=lambda s: self._stopping.draining.wait(s) or self._stopping.requested,
                )
                self._device_slot.claim_first()
            self._runtime.prepare()
        except BaseException:
            self._runtime.close()
            if self._device_slot is not None:
                self._device_slot.close()
            if self._stopping.requested:  # nothing is registered yet, and nothing runs
                raise SystemExit(0) from None
            raise

    def _start_sampler(self, sampling: SamplerLease, loop: FastLoop) -> None:
        """Start the thread that samples this worker's node while it has that lease."""
        devices = DeviceReader(
            lambda text: logger.warning("worker %s: %s", self.name, text),
            self._runtime.devices.paths,  # for the names that replies use
        )
        self._sampler = NodeSampler(sampling, lambda: loop.requests_begun, devices.read)
        self._sampler.start()

    def _start_scheduler(self, burst: bool = False, *args: Any, **options: Any) -> None:
        """Start RQ's scheduler, as a thread beside the fast lane."""
        if burst or self._lane is None:  # a burst enqueues what is due once
            super()._start_scheduler(burst, *args, **options)
            return
        self._scheduling = Scheduling(self)
        self._scheduling.start()

    def teardown(self) -> None:
        """End our parts, then RQ's.

        An absent Redis raises nothing: leases and deadlines expire by themselves.
        """
        self._stopping.end()
        self._leaving.set()
        had_lane = self._lane is not None
        if self._scheduling is not None:
            self._scheduling.stop()
        if self._lane is not None:
            self._lane.close()
            if self._sampler is not None:
                self._sampler.stop()
            self._heartbeat.stop()
            self._runtime.close()
            self._lane = None
        try:
            with self._last_commands():
                super().teardown()  # type: ignore[no-untyped-call]
            if self._device_slot is not None:
                self._device_slot.close()
            if had_lane:
                self._heartbeat.forget()
        except Exception as error:
            if not is_transient(error):
                raise
            logger.warning(
                "worker %s stops while Redis is away; other workers will clean up after it",
                self.name,
            )

    # -- stopping
    # ----------------------------------------------------------------------------------------------

    def _shutdown(self) -> None:
        """Handle the first signal: take no more, and let the running request finish.

        It may take as long as the grace period.
        """
        if self._booting or self._leaving.is_set():  # it is about to end anyway
            self._stopping.request()
            self._stopping.interrupt.set()  # a workload may take minutes to get ready
            return
        if self._lane is None:
            super()._shutdown()  # type: ignore[no-untyped-call]
            return
        self._stopping.begin()
        self._heartbeat.end_waits()

    def request_force_stop(self, signum: int, frame: FrameType | None) -> None:
        """Handle the second signal, or the end of the grace period.

        The workload is ended, and its request goes back to the queue.
        """
        if self._lane is None:
            super().request_force_stop(signum, frame)
            return
        if not self._stopping.force():
            return
        logger.warning(
            "worker %s: stopping now, the running request goes back to its queue", self.name
        )
        if self._leased_job is not None:
            # ends a foreign function; perform_job turns it into handle_job_failure below
            raise SystemExit

    def _pause(self, seconds: float) -> bool:
        """Wait between tries while Redis is away; return whether to give up.

        That loses nothing, since leases expire.
        """
        return self._stopping.interrupt.wait(seconds) or (
            self._stopping.requested and (self._loop is None or self._loop.idle)
        )

    @property
    def running(self) -> RunningRequest | None:
        """The request that runs now, for any thread; None without a fast lane."""
        return self._heartbeat.running if self._lane is not None else None

    @property
    def device(self) -> str:
        """The device that requests run on; "" for none."""
        return self._runtime.devices.current

    def get_current_job_id(self) -> str | None:
        """Return the running job's id, for RQ's stop command; also for one in the fast lane."""
        running = self.running
        return running.id if running is not None else super().get_current_job_id()

    def request_stop_execution(self, execution_id: str) -> None:
        """Stop an execution, for the thread that reads RQ's commands.

        In the fast lane its id is the attempt.
        """
        running = self.running
        if running is None or running.by_rq or str(running.attempt) != execution_id:
            super().request_stop_execution(execution_id)
            return
        self._stopping.stop_job(running.id)
        self.kill_horse()

    def kill_horse(self, sig: signal.Signals = signal.SIGKILL) -> None:
        """End the running workload, which RQ calls a horse.

        Does nothing when it has just ended, or is none of ours.
        """
        running = self.running
        if running is not None and running.id == self._stopping.stopped_job:
            self._stopping.interrupt.set()

    # -- RQ's own loop and jobs
    # ----------------------------------------------------------------------------------------------

    @property
    def _leased_job(self) -> RunningJob | None:
        """The job that the fast lane took and RQ's own code runs; None without one."""
        return None if self._rq_jobs is None else self._rq_jobs.running

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run a job by RQ's own code.

        One that the fast lane took is run under its lease, and counted.
        """
        if self._rq_jobs is None or self._leased_job is None:
            super().execute_job(job, queue)
        else:
            self._rq_jobs.run(partial(super().execute_job, job, queue))

    def handle_job_success(self, job: Job, *args: Any, **options: Any) -> None:
        """Note the success, then do as RQ does."""
        if self._leased_job is not None:
            # its status does not say so when no result is kept
            self._leased_job.has_succeeded = True
        super().handle_job_success(job, *args, **options)

    def handle_job_failure(self, job: Job, queue: Queue, *args: Any, **options: Any) -> None:
        """Do as RQ does, but put a job back into its queue that our own stop ended."""
        leased = self._leased_job
        if self._stopping.forced and leased is not None and leased.result is None:
            self.execution = None
            leased.put_back()
            return
        super().handle_job_failure(job, queue, *args, **options)

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[Job, Queue] | None:
        """Work in the fast lane until a job comes that RQ's own code must run, and return it."""
        if self._lane is None or self._loop is None:
            return super().dequeue_job_and_maintain_ttl(timeout, max_idle_time)
        try:
            job = self._loop.work(max_idle_time)
        except Exception as error:
            self._crash = error
            raise
        return None if job is None else (job, self.queues[0])


def run_worker(
    serving: Serving,
    settings: Settings,
    logging_level: str,
    announce: Callable[[Worker], None],
) -> None:
    """Work until a signal ends it; with `burst` until the queue is empty.

    announce: called with the worker when it is about to take requests. Raises UndeclaredQueue, or
    InvalidValue when a worker of that name lives.
    """
    # a name that RQ accepts, unique where the user chose none
    host = re.sub(r"[^\w.-]", "-", socket.gethostname())[:60].lstrip("._-") or "worker"
    name = serving.name or f"{host}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    redis = connect(
        serving.redis_url, retrying=Retrying(f"worker {name}", patience_s=FIRST_CONNECTION_S)
    )

    def make_worker() -> Worker:
        Queues(redis).require(serving.queue)
        return Worker(
            [serving.queue],
            name=name,
            connection=redis,
            settings=settings,
            serving=serving,
            announce=announce,
        )

    worker = Retrying(f"worker {name}").run(make_worker)
    adopt_orphans()
    try:
        worker.work(
            burst=serving.burst,
            logging_level=logging_level,
            with_scheduler=serving.with_scheduler,
        )
    except ValueError as error:
        if "active worker named" not in str(error):
            raise
        raise InvalidValue(
            f"a worker named {name} is already running", hint="give another <name>"
        ) from error
