"""Validations on this machine: a queue, workers and a load, set up and ended together."""

import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.retrying import Retrying
from scaletest.broker.samples import SampleReader
from scaletest.load import ClosedLoop
from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.processes.children import end_all, python_module
from scaletest.processes.guard import Guard
from scaletest.runs.private_files import open_private
from scaletest.validation.measure.runner import ValidationRunner
from scaletest.validation.measure.samples import ReadSamples
from scaletest.validation.options import ValidationPlace
from scaletest.validation.plan import Background, Plan

# How long a run waits for a Redis that went away before it gives up.
REDIS_PATIENCE_S = 60.0
GRACE_S = 5.0
# Five samples of the node per second, since a step may be decided after one second. A sample costs
# about a millisecond of CPU.
SAMPLE_INTERVAL = "200ms"
# longer than a worker's grace period and its workload's together
STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What every worker is started with."""

    redis_url: str
    queue: str
    place: ValidationPlace
    work: Background
    # how workers share devices; without it, and where it says nothing, worker N uses the N-th
    # device without a lease
    plan: Plan | None = None


class LocalBackend:
    """Worker processes, which end with this process even when it is killed.

    `alive` returns how many of them serve the queue.
    """

    def __init__(
        self,
        options: WorkerOptions,
        log: Path,
        alive: Callable[[], int],
    ) -> None:
        self._options = options
        self._log = log
        self._alive = alive
        self._guard = Guard("KILL")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._share = 0

    def scale(self, workers: int) -> None:
        """Start missing workers, or end the last ones.

        When the number of workers per device changes, all workers are started again.
        """
        plan = self._options.plan
        share = plan.share(workers) if plan and workers else self._share
        if share != self._share:
            end_all(self._processes, STOP_TIMEOUT_S)
            self._processes = []
            self._share = share
        while len(self._processes) < workers:
            self._processes.append(self._start_worker(len(self._processes)))
        while len(self._processes) > workers:
            end_all([self._processes.pop()], STOP_TIMEOUT_S)

    def ready(self) -> int:
        """Return how many workers serve the queue; ScaletestError when one has ended."""
        for process in self._processes:
            code = process.poll()
            if code is None:
                continue
            # the last line of the workers' log, which of a traceback is the error
            try:
                lines = self._log.read_text(errors="replace").split("\n")
                error = next(filter(None, map(str.strip, reversed(lines))), "its log is empty")
            except OSError:
                error = "it has no log"
            raise ScaletestError(
                f"a worker ended unexpectedly with exit code {code}: {cut_text(error)}",
                hint=(
                    f"read {self._log}, or start one by hand: scaletest worker --queue"
                    f" {self._options.queue}"
                ),
            )
        return self._alive()

    def close(self) -> None:
        """End all workers; requests may end within a grace period, then workers are killed."""
        end_all(self._processes, STOP_TIMEOUT_S)
        self._processes = []
        self._guard.close()

    def _start_worker(self, index: int) -> subprocess.Popen[bytes]:
        """Start the worker with this number; it writes to the workers' log."""
        options = self._options
        work, plan = options.work, options.plan
        line = python_module(
            "scaletest", "worker", "--queue", options.queue, "--grace", f"{GRACE_S:g}"
        )
        line += ["--sample-interval", SAMPLE_INTERVAL]
        if options.place.no_causes:
            line += ["--no-causes"]
        if work.time_limit_s:
            line += ["--time-limit", repr(work.time_limit_s)]
        if plan and plan.preset:
            line += ["--preset", plan.preset]
        if work.device_glob:
            line += ["--device-glob", work.device_glob]
        if plan and self._share:
            line += ["--per-device", str(self._share)]
        elif work.device_glob or (plan and plan.preset):
            line += ["--device-index", str(index)]
        if work.command:
            line += ["--null-input", "--", *work.command]
        # a URL may contain a password, and every user can read command lines
        settings = {"SCALETEST_REDIS_URL": options.redis_url}
        try:
            log = open_private(self._log, "ab")
        except OSError as error:
            raise UsageError(
                f"the workers' log {self._log} cannot be written: {error.strerror}"
            ) from error
        with log:
            return subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the terminal must reach this process only
                env=self._guard.environment({**os.environ, **settings}),
            )


class LocalSite:
    """A Redis, a log for workers, and the runner that takes the records.

    What must be taken down again is on the stack.
    """

    def __init__(
        self,
        place: ValidationPlace,
        log: Path,
        runner: ValidationRunner,
        stack: ExitStack,
    ) -> None:
        """Reach the Redis of the place, or start one."""
        self._place = place
        self._log = log
        self._runner = runner
        self._stack = stack
        self._url = place.redis_url or stack.enter_context(EmbeddedServer()).url
        self._redis = stack.enter_context(closing(connect(self._url)))

    def samples(self, queue: str) -> ReadSamples | None:
        """Return what reads samples of the queue's nodes from now on; None without causes."""
        return None if self._place.no_causes else SampleReader(self._redis, queue).read

    def set_up(
        self, queue: str, background: Background, plan: Plan | None = None
    ) -> tuple[LocalBackend, ClosedLoop]:
        """Declare a queue of the run's own, and return its backend and its load, both idle.

        plan: says how its workers share devices; without it they count round.
        """
        queues = Queues(self._redis)
        patient = Retrying("validate", patience_s=REDIS_PATIENCE_S)
        client = self._stack.enter_context(Client(connect(self._url), patience_s=REDIS_PATIENCE_S))
        queues.remove_abandoned()
        queues.add(queue, note=f"validate {background.workload}", owner=client.name)
        self._stack.callback(patient.run, lambda: queues.remove(queue))
        backend = LocalBackend(
            WorkerOptions(self._url, queue, self._place, background, plan),
            self._log,
            lambda: patient.run(lambda: queues.state(queue).workers),
        )
        self._stack.callback(backend.close)
        load = ClosedLoop(
            client,
            queue,
            self._runner.record,
            arguments=() if background.command else (repr(background.seconds),),
            time_limit_s=background.time_limit_s,
        )
        return backend, self._stack.enter_context(closing(load))
