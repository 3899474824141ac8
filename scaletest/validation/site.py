"""Where a validation runs: a declaration, local workers and a load per queue, ended together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from scaletest.broker import Client, Queues, Redis, connect
from scaletest.broker.retry import Retrying
from scaletest.broker.samples import SampleReader
from scaletest.load import ClosedLoop
from scaletest.model import Background, Plan
from scaletest.validation.local import LocalBackend, WorkerOptions
from scaletest.validation.runner import ValidationRunner
from scaletest.validation.samples import ReadSamples

# How long a run waits for a Redis that went away before it gives up.
REDIS_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class LocalSite:
    """A Redis, a log for workers, and the runner that takes the records.

    check_devices: raises when the devices of a plan are not there any more.
    no_causes: local workers do not sample where requests spend their time.
    device_metrics_url: of an exporter that tells them of devices.
    """

    url: str
    redis: Redis
    log: Path
    runner: ValidationRunner
    stack: ExitStack
    check_devices: Callable[[Plan], None]
    no_causes: bool = False
    device_metrics_url: str = ""

    def samples(self, queue: str) -> ReadSamples | None:
        """Reads what the queue's nodes do from now on."""
        return None if self.no_causes else SampleReader(self.redis, queue).read

    def set_up(
        self, queue: str, background: Background, plan: Plan | None = None
    ) -> tuple[LocalBackend, ClosedLoop]:
        """Declare a queue of the run's own, and make its backend and its load; neither has begun
        yet.

        plan: says how its workers share devices; without it they count round.
        """
        queues = Queues(self.redis)
        patient = Retrying("validate", patience_s=REDIS_PATIENCE_S)
        client = self.stack.enter_context(Client(connect(self.url), patience_s=REDIS_PATIENCE_S))
        queues.remove_abandoned()
        queues.add(queue, note=f"validate {background.workload}", owner=client.name)
        self.stack.callback(patient.run, lambda: queues.remove(queue))
        options = WorkerOptions(
            self.url, queue, background.command, background.device_glob, background.time_limit_s
        )
        options = replace(
            options, no_causes=self.no_causes, device_metrics_url=self.device_metrics_url
        )
        if plan:
            shares = {workers: plan.share(workers) for workers in plan.steps}
            options = replace(
                options, preset=plan.preset, device_policy=plan.device_policy, shares=shares
            )
        backend = LocalBackend(
            options,
            self.log,
            lambda: patient.run(lambda: queues.state(queue).workers),
            lambda: self.check_devices(plan) if plan else None,
        )
        self.stack.callback(backend.close)
        load = ClosedLoop(
            client,
            queue,
            self.runner.record,
            arguments=() if background.command else (repr(background.seconds),),
            time_limit_s=background.time_limit_s,
        )
        self.stack.callback(load.close)
        return backend, load
