"""The autoscaler of a simulation: what it knows of the queue, and what its controllers decide."""

from collections import deque

from scaletest.capacity.autoscale.hpa import Hpa
from scaletest.capacity.autoscale.keda import ScaledJob, ScaledObject
from scaletest.capacity.autoscale.rule import Rule
from scaletest.model.desired_workers import History, QueueDemand, desired_workers, wanted_workers
from scaletest.model.time_slots import RING, SLOT_S, TimeSlot, window_until

# The exporter looks this often by itself, whoever scrapes.
LOOK_S = 2.5


class Scaler:
    """Stateful, as a controller is. All times are the simulation's seconds."""

    def __init__(self, rule: Rule, sync_s: float) -> None:
        self.rule = rule
        self.interval_s = min(sync_s, LOOK_S) if rule.metric == "desired_workers" else sync_s
        if rule.kind == "job":
            self.interval_s = rule.polling_s
        self._sync_s = sync_s
        self._hpa = Hpa(rule.hpa())
        self._keda = ScaledObject(rule.minimum) if rule.kind == "keda" else None
        self._job = ScaledJob(rule.strategy, rule.maximum, rule.minimum, rule.target)
        self._slots: deque[list[float]] = deque(maxlen=RING)
        self._max_wait_s = 0.0
        self._history: History = ()
        self._next_sync = self._next_poll = 0.0

    def arrived(self, now_s: float) -> None:
        """Note that a request came."""
        self._slot(now_s)[1] += 1

    def ended(self, now_s: float, wait_s: float, run_s: float) -> None:
        """Note that a request ended."""
        slot = self._slot(now_s)
        slot[2] += 1
        slot[3] += run_s
        self._max_wait_s = max(self._max_wait_s, wait_s)

    def jobs(self, now_s: float, waiting: int, running: int, present: int, ready: int) -> int:
        """Return how many jobs a poll creates."""
        return self._job.create(self._metric(now_s, waiting, running), present, present - ready)

    def replicas(
        self, now_s: float, waiting: int, running: int, spec: int, present: int, ready: int
    ) -> int:
        """Return the new spec.replicas."""
        metric = self._metric(now_s, waiting, running)
        if self._keda is not None and now_s >= self._next_poll:
            self._next_poll = now_s + self.rule.polling_s
            spec = self._keda.poll(now_s, metric, spec)
        if now_s >= self._next_sync:
            self._next_sync = now_s + self._sync_s
            self._max_wait_s = 0.0
            spec = self._hpa.sync(now_s, spec, present, ready, [round(metric * 1000)])
        return spec

    def _metric(self, now_s: float, waiting: int, running: int) -> float:
        name, targets = self.rule.metric, self.rule.targets
        if name == "max_wait":
            return self._max_wait_s
        if name != "desired_workers":
            return {"waiting": waiting, "running": running, "demand": waiting + running}[name]
        # what the exporter computes, from slots as in Redis
        slots = [
            TimeSlot(int(number), int(came), int(ended), total_s)
            for number, came, ended, total_s in self._slots
        ]
        window = window_until(slots, now_s, targets.window_s)
        workers = wanted_workers(
            QueueDemand(waiting, running, window.submitted_per_s, window.mean_run_s), targets
        )
        workers, self._history = desired_workers(now_s, workers, self._history, targets.window_s)
        return workers

    def _slot(self, now_s: float) -> list[float]:
        number = now_s // SLOT_S
        if not self._slots or self._slots[-1][0] != number:
            self._slots.append([number, 0, 0, 0.0])
        return self._slots[-1]
