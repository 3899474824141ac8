"""Simulates arrivals and a rule on a virtual clock, event by event.

Arrivals are drawn once, so that rules get the same. Pods are those of one Deployment or of Jobs.
The order of victims is the ReplicaSet controller's: not ready before ready, ready for less time (by
powers of two of seconds), then by uid, which is chance.

Equal chance gives equal results. Requests are served first come first served by the pod that has
been idle longest. A pod that must go and is busy drains: it ends when its request ends, or is
killed when the grace period ends first, and then the request goes back to the front of the queue
and starts again.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta

from scaletest.capacity.autoscale.hpa import SYNC_S, Hpa, ScaledJob, ScaledObject
from scaletest.capacity.autoscale.rule import (
    RULES,
    Rule,
    SimulationPoint,
    SimulationResult,
    turns,
)
from scaletest.model.declared import Document, PositiveSeconds, Seconds
from scaletest.model.desired_workers import History, QueueDemand, desired, over, wanted
from scaletest.model.errors import InvalidValue
from scaletest.model.queue_counts import RING, SLOT_S, TimeSlot
from scaletest.stats.chance import Chance

MOST_REQUESTS = 5_000_000


@dataclass(frozen=True, slots=True)
class Arrivals:
    """arrivals: seconds from the start, ascending. runs: run time in seconds of each."""

    arrivals: tuple[float, ...]
    runs: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.arrivals:
            raise InvalidValue(
                "the workload has no request", hint="give a higher rate or a longer duration"
            )


Runs = Callable[[], float]


def runs_of(chance: Chance, mean_s: float, variation: float) -> Runs:
    """Run times with this mean. variation: deviation over mean; 0 is constant, else log-normal."""
    if variation <= 0:
        return lambda: mean_s
    sigma = math.sqrt(math.log(1 + variation**2))
    mu = math.log(mean_s) - sigma**2 / 2
    return lambda: chance.lognormvariate(mu, sigma)


def recorded(chance: Chance, values: Sequence[float]) -> Runs:
    """Run times drawn from recorded ones."""
    if not values:
        raise InvalidValue(
            "no run time was recorded", hint="give the folder of a run with successful requests"
        )
    return lambda: chance.choice(values)


def poisson(
    chance: Chance,
    runs: Runs,
    rate: Callable[[float], float],
    peak: float,
    duration_s: float,
) -> Arrivals:
    """Poisson arrivals at a rate a second that may change; peak: its highest value (thinning)."""
    _check_size(peak * duration_s)
    arrivals = []
    at = 0.0
    while peak > 0:
        at += chance.expovariate(peak)
        if at >= duration_s:
            break
        if chance.random() * peak < rate(at):
            arrivals.append(at)
    return Arrivals(tuple(arrivals), tuple(runs() for _ in arrivals))


def _check_size(requests: float) -> None:
    if requests > MOST_REQUESTS:
        raise InvalidValue(
            f"the workload would have about {requests:.0f} requests",
            hint=f"at most {MOST_REQUESTS}: give a lower rate or a shorter duration",
        )


PATTERNS = ("poisson", "steady", "wave", "steps", "burst")


def pattern(name: str, chance: Chance, runs: Runs, per_s: float, duration_s: float) -> Arrivals:
    """A workload with a mean of `per_s` requests a second.

    poisson: by chance. steady: evenly. wave: by chance, from none to twice the rate and back over
    the duration.
    steps: by chance, a quarter, twice and three quarters of the rate, a third of the time each.
    burst: four heaps.
    """
    _check_size(per_s * duration_s)
    count = max(1, round(per_s * duration_s))
    if name == "steady":
        arrivals = tuple(index / per_s for index in range(count))
        return Arrivals(arrivals, tuple(runs() for _ in arrivals))
    if name == "burst":
        arrivals = tuple(duration_s / 4 * (index * 4 // count) for index in range(count))
        return Arrivals(arrivals, tuple(runs() for _ in arrivals))
    if name == "wave":
        turn = 2 * math.pi / duration_s
        return poisson(
            chance, runs, lambda at: per_s * (1 - math.cos(at * turn)), 2 * per_s, duration_s
        )
    if name == "steps":
        return poisson(
            chance,
            runs,
            lambda at: per_s * (0.25, 2.0, 0.75)[min(2, int(3 * at / duration_s))],
            2 * per_s,
            duration_s,
        )
    return poisson(chance, runs, lambda at: per_s, per_s, duration_s)


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod.

    request: index of the request that it runs, -1 for none. ready_s is infinite until it is ready.
    once: a Job's pod, which serves one request and ends. turn: counts its requests, so that late
    events are known.
    """

    uid: float
    created_s: float
    once: bool = False
    ready_s: float = math.inf
    request: int = -1
    began_s: float = 0.0
    turn: int = 0
    draining: bool = False
    gone: bool = False


def victims(pods: Iterable[SimulatedPod], count: int, now_s: float) -> list[SimulatedPod]:
    """The pods that are removed when the ReplicaSet must shrink by `count`."""

    def order(pod: SimulatedPod) -> tuple[bool, int, float]:
        ready = pod.ready_s <= now_s
        age = max(now_s - pod.ready_s, 0.0) if ready else max(now_s - pod.created_s, 0.0)
        return (
            ready,
            int(math.log2(age)) if age >= 1 else -1,
            pod.uid,
        )

    return sorted(pods, key=order)[:count]


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
        """A request came."""
        self._slot(now_s)[1] += 1

    def ended(self, now_s: float, wait_s: float, run_s: float) -> None:
        """A request ended."""
        slot = self._slot(now_s)
        slot[2] += 1
        slot[3] += run_s
        self._max_wait_s = max(self._max_wait_s, wait_s)

    def jobs(self, now_s: float, waiting: int, running: int, present: int, ready: int) -> int:
        """How many jobs a poll creates."""
        return self._job.create(self._metric(now_s, waiting, running), present, present - ready)

    def replicas(
        self, now_s: float, waiting: int, running: int, spec: int, present: int, ready: int
    ) -> int:
        """New spec.replicas."""
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
        name = self.rule.metric
        if name == "desired_workers":
            return self._desired(now_s, waiting, running)
        if name == "max_wait":
            return self._max_wait_s
        return {"waiting": waiting, "running": running, "demand": waiting + running}[name]

    def _desired(self, now_s: float, waiting: int, running: int) -> int:
        """The number that the exporter computes, from slots as in Redis."""
        slots = [
            TimeSlot(int(number), int(came), int(ended), total_s)
            for number, came, ended, total_s in self._slots
        ]
        window = over(slots, now_s, self.rule.targets.window_s)
        wanted_now = wanted(
            QueueDemand(waiting, running, window.submitted_per_s, window.mean_run_s),
            self.rule.targets,
        )
        number, self._history = desired(
            now_s, wanted_now, self._history, self.rule.targets.window_s
        )
        return number

    def _slot(self, now_s: float) -> list[float]:
        number = now_s // SLOT_S
        if not self._slots or self._slots[-1][0] != number:
            self._slots.append([number, 0, 0, 0.0])
        return self._slots[-1]


# Order of events at one moment: what ends comes before what is measured.
FINISH, KILL, READY, LOOK = 0, 1, 2, 3
COURSE_POINTS = 2000


@dataclass(frozen=True, slots=True)
class SimulationSetting:
    """The setting of a simulation. Seconds.

    start_s: of a pod, from creation to ready; jitter: its relative spread (0.2: from 80 to 120 %).
    grace_s: between SIGTERM and SIGKILL; a worker that ends sooner loses nothing. start: replicas
    at the beginning. until_s: when it ends at the latest, whatever still waits.
    """

    start_s: float = 20.0
    jitter: float = 0.0
    grace_s: float = 30.0
    start: int = 1
    until_s: float = 0.0
    sync_s: float = SYNC_S

    def delay_s(self, chance: Chance) -> float:
        """Start delay of one pod."""
        return self.start_s * (1 + self.jitter * (2 * chance.random() - 1))

    def grace_of(self, rule: Rule) -> float:
        """Grace period of the rule's pods."""
        return self.grace_s if rule.grace_s is None else rule.grace_s


@dataclass(frozen=True, slots=True)
class PlayedLoad(Document):
    """A load, and how pods come and go. seconds: mean run time; variation: its deviation over the
    mean. rate: requests a second.
    """

    seconds: PositiveSeconds
    variation: Annotated[float, Meta(ge=0, le=10)]
    pattern: str
    rate: Annotated[float, Meta(gt=0, le=1e5)]
    duration_s: Annotated[PositiveSeconds, Meta(title="duration")]
    min_workers: int
    max_workers: int
    pod_start_s: Annotated[Seconds, Meta(title="pod start")]
    grace_s: Annotated[Seconds, Meta(title="grace")]

    @property
    def setting(self) -> SimulationSetting:
        """How pods come and go."""
        return SimulationSetting(
            self.pod_start_s, grace_s=self.grace_s, start=max(0, self.min_workers)
        )

    def arrivals(
        self,
        chance: Chance,
        run_times: Sequence[float] | None,
        times: Sequence[float] | None,
    ) -> Arrivals:
        """The requests. run_times: draw from these instead; times: when they come instead."""
        runs = runs_of(chance, self.seconds, self.variation)
        if run_times is not None:
            runs = recorded(chance, run_times)
        if times is not None:
            return Arrivals(tuple(times), tuple(runs() for _ in times))
        return pattern(self.pattern, chance, runs, self.rate, self.duration_s)

    def within(self, rule: Rule) -> Rule:
        """The rule with the fewest and most replicas of the load, unless it has its own."""
        base = RULES[rule.name.partition(":")[0]]
        if base.minimum == rule.minimum and rule.minimum:
            rule = replace(rule, minimum=self.min_workers)
        if base.maximum == rule.maximum:
            rule = replace(rule, maximum=self.max_workers)
        return rule


def simulate(
    workload: Arrivals, rule: Rule, setting: SimulationSetting, chance: Chance
) -> SimulationResult:
    """The result of a rule for these arrivals."""
    return _World(workload, rule, setting, chance).play()


class _World:
    """The state between events."""

    def __init__(
        self, workload: Arrivals, rule: Rule, setting: SimulationSetting, chance: Chance
    ) -> None:
        self.workload, self.rule, self.setting, self.chance = workload, rule, setting, chance
        self.grace_s = setting.grace_of(rule)
        # Without an end a play ends when all is done, or after as long again and an hour.
        self.until_s = (
            setting.until_s or 2 * workload.arrivals[-1] + 10 * max(workload.runs) + 3600.0
        )
        self.now = 0.0
        self.events: list[tuple[float, int, int, int, SimulatedPod | None]] = []
        self.number = 0
        self.waiting: deque[int] = deque()
        self.pods: dict[SimulatedPod, None] = {}
        self.idle: dict[SimulatedPod, None] = {}
        self.busy = self.drained = 0
        self.waits: dict[int, float] = {}
        self.killed = self.peak = 0
        self.changes: list[int] = []
        self.pod_s = 0.0
        self.course: list[SimulationPoint] = []
        self.scaler = Scaler(rule, setting.sync_s)
        self.replicas = 0
        self.scale(0 if rule.kind == "job" else min(max(setting.start, rule.minimum), rule.maximum))
        self.changes.clear()

    # -- the clock
    # ----------------------------------------------------------------------------------------------

    def at(self, when: float, kind: int, pod: SimulatedPod | None = None, turn: int = 0) -> None:
        """Schedule an event."""
        self.number += 1
        heapq.heappush(self.events, (when, kind, self.number, turn, pod))

    def play(self) -> SimulationResult:
        """Simulate until all requests ended or the time is up."""
        arrivals, count = self.workload.arrivals, len(self.workload.arrivals)
        self.at(0.0, LOOK)
        next_request = 0
        while len(self.waits) < count:
            when, kind, _, turn, pod = self.events[0]
            if next_request < count and arrivals[next_request] <= when:
                self.now = arrivals[next_request]
                if self.now > self.until_s:
                    break
                self.scaler.arrived(self.now)
                self.waiting.append(next_request)
                next_request += 1
                self.serve()
                continue
            heapq.heappop(self.events)
            if when > self.until_s:
                self.now = self.until_s
                break
            self.now = when
            self.happen(kind, pod, turn)
        return self.figures()

    def happen(self, kind: int, pod: SimulatedPod | None, turn: int) -> None:
        """Process an event. Late ones, of a removed pod or a former request, have no effect."""
        if pod is None:
            self.look()
        elif kind == READY and not pod.gone:
            self.become_ready(pod)
        elif kind == FINISH and not pod.gone and pod.turn == turn:
            self.finish(pod)
        elif kind == KILL and not pod.gone:
            self.kill(pod)

    # -- requests
    # ----------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Give waiting requests to idle pods."""
        while self.waiting and self.idle:
            pod = next(iter(self.idle))
            del self.idle[pod]
            pod.request = self.waiting.popleft()
            pod.began_s = self.now
            pod.turn += 1
            self.busy += 1
            self.at(self.now + self.workload.runs[pod.request], FINISH, pod, pod.turn)

    def finish(self, pod: SimulatedPod) -> None:
        """End the request of a pod successfully."""
        request, pod.request = pod.request, -1
        self.busy -= 1
        self.waits[request] = wait = pod.began_s - self.workload.arrivals[request]
        self.scaler.ended(self.now, wait, self.workload.runs[request])
        if pod.draining or pod.once:
            self.remove(pod)
        else:
            self.idle[pod] = None
            self.serve()

    def kill(self, pod: SimulatedPod) -> None:
        """Kill a pod at the end of its grace period: its request starts again."""
        self.killed += 1
        self.busy -= 1
        self.waiting.appendleft(pod.request)
        self.remove(pod)
        self.serve()

    # -- pods
    # ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Let the autoscaler read its metric, and scale."""
        present = len(self.pods) - self.drained
        ready = self.busy + len(self.idle) - self.drained
        if self.rule.kind == "job":
            self.add(
                self.scaler.jobs(self.now, len(self.waiting), self.busy, present, ready), once=True
            )
            self.replicas = len(self.pods)
        else:
            self.scale(
                self.scaler.replicas(
                    self.now, len(self.waiting), self.busy, self.replicas, present, ready
                )
            )
        self.note()
        self.at(self.now + self.scaler.interval_s, LOOK)

    def scale(self, replicas: int) -> None:
        """Let the ReplicaSet follow spec.replicas."""
        change = replicas - self.replicas
        self.replicas = replicas
        if change:
            self.changes.append(change)
        present = len(self.pods) - self.drained
        self.add(replicas - present)
        if replicas < present:
            staying = (pod for pod in self.pods if not pod.draining)
            for pod in victims(staying, present - replicas, self.now):
                self.drain(pod)

    def add(self, count: int, once: bool = False) -> None:
        """Create pods."""
        for _ in range(count):
            pod = SimulatedPod(self.chance.random(), self.now, once)
            self.pods[pod] = None
            self.at(self.now + self.setting.delay_s(self.chance), READY, pod)
        if once and count > 0:
            self.changes.append(count)
        self.peak = max(self.peak, len(self.pods))

    def become_ready(self, pod: SimulatedPod) -> None:
        """Let a pod serve from now on."""
        pod.ready_s = self.now
        self.idle[pod] = None
        self.serve()
        if pod.once and pod.request < 0:
            self.remove(pod)

    def drain(self, pod: SimulatedPod) -> None:
        """Send SIGTERM: an idle pod ends, a busy one finishes its request within the grace time."""
        if pod.request < 0:
            self.remove(pod)
            return
        pod.draining = True
        self.drained += 1
        if pod.began_s + self.workload.runs[pod.request] > self.now + self.grace_s:
            self.at(self.now + self.grace_s, KILL, pod)

    def remove(self, pod: SimulatedPod) -> None:
        """Remove a pod."""
        pod.gone = True
        self.drained -= pod.draining
        self.idle.pop(pod, None)
        del self.pods[pod]
        self.pod_s += self.now - pod.created_s

    # -- the books
    # ----------------------------------------------------------------------------------------------

    def note(self) -> None:
        """Record this moment; when there are many, every other is dropped."""
        self.course.append(
            SimulationPoint(self.now, self.replicas, len(self.pods), len(self.waiting), self.busy)
        )
        if len(self.course) > 2 * COURSE_POINTS:
            del self.course[1::2]

    def figures(self) -> SimulationResult:
        """The result of the simulation."""
        self.note()
        count = len(self.workload.arrivals)
        return SimulationResult(
            rule=self.rule.name,
            requests=count,
            ended=len(self.waits),
            changes=len(self.changes),
            flips=turns(self.changes),
            killed=self.killed,
            makespan_s=self.now if len(self.waits) == count else None,
            pod_s=self.pod_s + sum(self.now - pod.created_s for pod in self.pods),
            peak=self.peak,
            waits_s=tuple(sorted(self.waits.values())),
            course=tuple(self.course),
        )
