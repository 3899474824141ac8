"""The autoscaler of a simulation: what it knows of the queue, and what its controllers decide."""

from collections import deque

from scaletest.capacity.autoscale.hpa import SYNC_S, Hpa, HpaSpec
from scaletest.capacity.autoscale.keda import ScaledObject, jobs_to_create
from scaletest.capacity.autoscale.rule import Rule
from scaletest.model.desired_workers import History, QueueDemand, desired_workers, wanted_workers
from scaletest.model.time_slots import RING, SLOT_S, TimeSlot, window_until


class Scaler:
    """The controllers of one rule, with their memory. All times are the simulation's seconds."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        # how often the metric is read: the exporter does so by itself, without a scrape
        self.interval_s = 2.5 if rule.metric == "desired_workers" else SYNC_S
        if rule.kind == "job":
            self.interval_s = rule.polling_s
        spec = HpaSpec(
            max(rule.minimum, 1) if rule.kind == "keda" else rule.minimum,  # KEDA scales to none
            rule.maximum,
            rule.target_type,
            max(1, round(rule.target * 1000)),
            rule.behavior,
        )
        self._hpa = Hpa(spec)
        self._keda = ScaledObject(rule.minimum) if rule.kind == "keda" else None
        # as the exporter counts
        self._slots: deque[TimeSlot] = deque(maxlen=RING)
        self._max_wait_s = 0.0  # of requests that ended since the HPA last read it
        self._history: History = ()
        self._next_sync_s = self._next_poll_s = 0.0

    def request_arrived(self, now_s: float) -> None:
        """Count a request that came."""
        slot = self._open_slot(now_s)
        self._slots[-1] = slot._replace(submitted=slot.submitted + 1)

    def request_ended(self, now_s: float, wait_s: float, run_s: float) -> None:
        """Count a request that ended."""
        slot = self._open_slot(now_s)
        self._slots[-1] = slot._replace(ended=slot.ended + 1, run_sum_s=slot.run_sum_s + run_s)
        self._max_wait_s = max(self._max_wait_s, wait_s)

    def jobs_to_create(
        self, now_s: float, *, waiting: int, running: int, present: int, ready: int
    ) -> int:
        """Return how many jobs a poll creates. present, ready: pods."""
        return jobs_to_create(
            self.rule, self._metric(now_s, waiting, running), present, present - ready
        )

    def replicas(
        self, now_s: float, replicas: int, *, waiting: int, running: int, present: int, ready: int
    ) -> int:
        """Return the new spec.replicas. waiting, running: requests. present, ready: pods."""
        metric = self._metric(now_s, waiting, running)
        if self._keda is not None and now_s >= self._next_poll_s:
            self._next_poll_s = now_s + self.rule.polling_s
            replicas = self._keda.poll(now_s, metric, replicas)
        if now_s >= self._next_sync_s:
            self._next_sync_s = now_s + SYNC_S
            self._max_wait_s = 0.0
            replicas = self._hpa.sync(now_s, replicas, present, ready, round(metric * 1000))
        return replicas

    def _metric(self, now_s: float, waiting: int, running: int) -> float:
        name, targets = self.rule.metric, self.rule.targets
        if name == "max_wait":
            return self._max_wait_s
        if name != "desired_workers":
            return {"waiting": waiting, "running": running, "demand": waiting + running}[name]
        # what the exporter computes, from slots as in Redis
        window = window_until(list(self._slots), now_s, targets.window_s)
        demand = QueueDemand(waiting, running, window.submitted_per_s, window.mean_run_s)
        workers, self._history = desired_workers(
            now_s, wanted_workers(demand, targets), self._history, targets.window_s
        )
        return workers

    def _open_slot(self, now_s: float) -> TimeSlot:
        """Return the slot of this time, which is the last one; add it where it is new."""
        number = int(now_s // SLOT_S)
        if not self._slots or self._slots[-1].number != number:
            self._slots.append(TimeSlot(number))
        return self._slots[-1]
