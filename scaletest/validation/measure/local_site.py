"""A Redis, a log for workers, and the loads of a validation on this machine."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.retrying import Retrying
from scaletest.broker.samples import SampleReader
from scaletest.load import ClosedLoop
from scaletest.validation.measure.local import LocalBackend, WorkerOptions
from scaletest.validation.measure.runner import ValidationRunner
from scaletest.validation.measure.samples import ReadSamples
from scaletest.validation.options import ValidationPlace
from scaletest.validation.plan import Background, Plan

# How long a run waits for a Redis that went away before it gives up.
REDIS_PATIENCE_S = 60.0


class LocalSite:
    """A Redis, a log for workers, and the runner that takes the records. What must be taken down
    again is on the stack.
    """

    def __init__(
        self,
        place: ValidationPlace,
        log: Path,
        runner: ValidationRunner,
        stack: ExitStack,
        check_devices: Callable[[], None],
    ) -> None:
        """Reach the Redis of the place, or start one. check_devices: raises when the devices of the
        plan are not there any more.
        """
        self._place = place
        self._log = log
        self._runner = runner
        self._stack = stack
        self._check_devices = check_devices
        self._url = place.redis_url or stack.enter_context(EmbeddedServer()).url
        self._redis = stack.enter_context(closing(connect(self._url)))

    def samples(self, queue: str) -> ReadSamples | None:
        """Reads what the queue's nodes do from now on."""
        return None if self._place.no_causes else SampleReader(self._redis, queue).read

    def set_up(
        self, queue: str, background: Background, plan: Plan | None = None
    ) -> tuple[LocalBackend, ClosedLoop]:
        """Declare a queue of the run's own, and make its backend and its load; neither has begun
        yet.

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
            self._check_devices if plan else lambda: None,
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
