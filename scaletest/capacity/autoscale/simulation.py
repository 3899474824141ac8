"""Simulate a rule against arrivals, on a virtual clock, event by event.

Pods are those of one Deployment or of Jobs.
The order of victims is the ReplicaSet controller's: not ready before ready, ready for less time (by
powers of two of seconds), then by uid, which is chance.

Equal chance gives equal results. Requests are served first come first served by the pod that has
been idle longest. A pod that must go and is busy drains: it ends when its request ends, or is
killed when the grace period ends first, and then the request goes back to the front of the queue
and starts again.
"""

import heapq
import math
import statistics
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from scaletest.capacity.autoscale.load import Arrivals, SimulationSetting
from scaletest.capacity.autoscale.rule import Rule
from scaletest.capacity.autoscale.scaler import Scaler
from scaletest.stats.chance import Chance

# Order of events at one moment: what ends comes before what is measured.
FINISH, KILL, READY, LOOK = 0, 1, 2, 3
COURSE_POINTS = 2000


@dataclass(frozen=True, slots=True)
class SimulationPoint:
    """One moment: wanted replicas, present pods, requests that wait and run."""

    at_s: float
    replicas: int
    pods: int
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Figures of one rule."""

    rule: str
    requests: int
    ended: int
    changes: int  # times that the wanted replicas changed
    flips: int  # times that they changed from up to down or back
    killed: int  # requests whose pod was killed and which ran again
    makespan_s: float | None  # when the last request ended, None when some never did
    pod_s: float  # pod seconds, from creation to the end of each pod
    peak: int
    waits_s: tuple[float, ...] = ()  # of ended requests, sorted
    course: tuple[SimulationPoint, ...] = field(default=(), repr=False)

    @property
    def mean_wait_s(self) -> float | None:
        """None when nothing ended."""
        return statistics.fmean(self.waits_s) if self.waits_s else None

    def wait_s(self, share: float) -> float | None:
        """Return the wait that `share` of the ended requests did not exceed; None when nothing
        ended.
        """
        if not self.waits_s:
            return None
        return self.waits_s[
            min(len(self.waits_s) - 1, max(0, math.ceil(share * len(self.waits_s)) - 1))
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the course."""
        return {
            "rule": self.rule,
            "requests": self.requests,
            "ended": self.ended,
            "changes": self.changes,
            "flips": self.flips,
            "killed": self.killed,
            "makespan_s": self.makespan_s,
            "pod_s": self.pod_s,
            "peak_pods": self.peak,
            "wait_mean_s": self.mean_wait_s,
            "wait_p50_s": self.wait_s(0.5),
            "wait_p95_s": self.wait_s(0.95),
            "wait_p99_s": self.wait_s(0.99),
            "wait_max_s": self.wait_s(1.0),
        }


def count_turns(changes: Sequence[int]) -> int:
    """Count how often a sequence of changes changes its sign."""
    signs = [change > 0 for change in changes if change]
    return sum(a != b for a, b in pairwise(signs))


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod."""

    uid: float
    created_s: float
    once: bool = False  # a Job's pod, which serves one request and ends
    ready_s: float = math.inf  # infinite until it is ready
    request: int = -1  # index of the request that it runs, -1 for none
    began_s: float = 0.0
    turn: int = 0  # counts its requests, so that late events are known
    draining: bool = False
    gone: bool = False


def choose_victims(pods: Iterable[SimulatedPod], count: int, now_s: float) -> list[SimulatedPod]:
    """Choose the pods that are removed when the ReplicaSet must shrink by `count`."""

    def order(pod: SimulatedPod) -> tuple[bool, int, float]:
        ready = pod.ready_s <= now_s
        age = max(now_s - pod.ready_s, 0.0) if ready else max(now_s - pod.created_s, 0.0)
        return (
            ready,
            int(math.log2(age)) if age >= 1 else -1,
            pod.uid,
        )

    return sorted(pods, key=order)[:count]


def simulate(
    workload: Arrivals, rule: Rule, setting: SimulationSetting, chance: Chance
) -> SimulationResult:
    """Simulate a rule for these arrivals."""
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
            # late events, of a removed pod or a former request, have no effect
            if pod is None:
                self.look()
            elif kind == READY and not pod.gone:
                self.become_ready(pod)
            elif kind == FINISH and not pod.gone and pod.turn == turn:
                self.finish(pod)
            elif kind == KILL and not pod.gone:
                self.kill(pod)
        return self.figures()

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
            for pod in choose_victims(staying, present - replicas, self.now):
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
        """Return the result of the simulation."""
        self.note()
        count = len(self.workload.arrivals)
        return SimulationResult(
            rule=self.rule.name,
            requests=count,
            ended=len(self.waits),
            changes=len(self.changes),
            flips=count_turns(self.changes),
            killed=self.killed,
            makespan_s=self.now if len(self.waits) == count else None,
            pod_s=self.pod_s + sum(self.now - pod.created_s for pod in self.pods),
            peak=self.peak,
            waits_s=tuple(sorted(self.waits.values())),
            course=tuple(self.course),
        )
