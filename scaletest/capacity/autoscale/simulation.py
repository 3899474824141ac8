"""Simulate a rule under a load, on a virtual clock, event by event.

Requests are served first come first served by the pod that has been idle longest. A pod that must
go and is busy drains: it ends when its request ends, or is killed when the grace period ends first,
and then the request goes back to the front of the queue and starts again. Equal chance gives equal
results.
"""

import heapq
import math
import statistics
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from typing import Any

from scaletest.capacity.autoscale.load import Requests
from scaletest.capacity.autoscale.rule import Rule
from scaletest.capacity.autoscale.scaler import Scaler
from scaletest.stats.chance import Chance

# Of a course. When it is longer, every other one goes.
MOST_POINTS = 4000


class EventKind(IntEnum):
    """What happens, in the order at one moment: what ends comes before what is measured."""

    REQUEST_ENDS = 0
    POD_IS_KILLED = 1
    POD_IS_READY = 2
    METRIC_IS_READ = 3


@dataclass(frozen=True, slots=True)
class SimulationPoint:
    """One moment: wanted replicas, and requests that wait and run."""

    at_s: float
    replicas: int
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """Figures of one rule."""

    rule: Rule
    requests: int
    ended: int
    changes: int  # times that the wanted replicas changed
    direction_changes: int  # times that they turned from growing to shrinking or back
    killed: int  # requests whose pod was killed and which ran again
    makespan_s: float | None  # when the last request ended, None when some never did
    pod_s: float  # pod seconds, from creation to the end of each pod
    peak_pods: int
    waits_s: tuple[float, ...] = ()  # of ended requests, sorted
    course: tuple[SimulationPoint, ...] = field(default=(), repr=False)

    @property
    def mean_wait_s(self) -> float | None:
        """The mean wait of requests that ended; None when none did."""
        return statistics.fmean(self.waits_s) if self.waits_s else None

    def wait_s(self, share: float) -> float | None:
        """Return the wait that `share` of the ended requests did not exceed; None without any."""
        if not self.waits_s:
            return None
        return self.waits_s[max(1, math.ceil(share * len(self.waits_s))) - 1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the course."""
        return {
            "rule": self.rule.name,
            "requests": self.requests,
            "ended": self.ended,
            "changes": self.changes,
            "direction_changes": self.direction_changes,
            "killed": self.killed,
            "makespan_s": self.makespan_s,
            "pod_s": self.pod_s,
            "peak_pods": self.peak_pods,
            "wait_mean_s": self.mean_wait_s,
            "wait_p50_s": self.wait_s(0.5),
            "wait_p95_s": self.wait_s(0.95),
            "wait_p99_s": self.wait_s(0.99),
            "wait_max_s": self.wait_s(1.0),
        }


def count_direction_changes(changes: Sequence[int]) -> int:
    """Count how often changes, none of them 0, turn from up to down or back."""
    return sum((before > 0) != (after > 0) for before, after in pairwise(changes))


@dataclass(slots=True, eq=False)
class SimulatedPod:
    """A pod from its creation on."""

    uid: float
    created_s: float
    ready_s: float = math.inf  # infinite until it is ready
    request: int = -1  # index of the request that it runs, -1 for none
    began_s: float = 0.0  # when that request began
    draining: bool = False  # it got SIGTERM while it was busy


def choose_victims(pods: Iterable[SimulatedPod], count: int, now_s: float) -> list[SimulatedPod]:
    """Choose the pods that go when a ReplicaSet must shrink by `count`, as its controller does.

    Not ready before ready, then ready for less time (by powers of two of seconds), then by uid,
    which is chance.
    """

    def order(pod: SimulatedPod) -> tuple[bool, int, float]:
        is_ready = pod.ready_s <= now_s
        age_s = now_s - (pod.ready_s if is_ready else pod.created_s)
        return is_ready, int(math.log2(age_s)) if age_s >= 1 else -1, pod.uid

    return sorted(pods, key=order)[:count]


def simulate(
    requests: Requests, rule: Rule, pod_start_s: float, chance: Chance
) -> SimulationResult:
    """Simulate a rule for these requests. pod_start_s: of a pod, from creation to ready."""
    return _Simulation(requests, rule, pod_start_s, chance).run()


class _Simulation:
    """The clock, the events to come, the queue and the pods of one simulation."""

    def __init__(self, requests: Requests, rule: Rule, pod_start_s: float, chance: Chance) -> None:
        self.requests, self.rule = requests, rule
        self.pod_start_s, self.chance = pod_start_s, chance
        self.scaler = Scaler(rule)
        self.has_jobs = rule.kind == "job"  # a job's pod serves one request and ends
        # the clock, and what will happen: when, what, a running number, and whose event it is
        self.now_s = 0.0
        self.events: list[tuple[float, EventKind, int, SimulatedPod | None]] = []
        self.event_number = 0
        # requests by their index; pods in the order in which they came, as keys of dictionaries
        self.waiting: deque[int] = deque()
        self.waits_s: dict[int, float] = {}
        self.pods: dict[SimulatedPod, None] = {}
        self.idle: dict[SimulatedPod, None] = {}
        self.busy = 0
        self.draining = 0
        # what the result tells
        self.killed = 0
        self.peak_pods = 0
        self.changes: list[int] = []
        self.pod_s = 0.0
        self.course: list[SimulationPoint] = []
        self.replicas = 0
        if not self.has_jobs:
            self.scale(rule.minimum)
            self.changes.clear()

    def schedule(self, at_s: float, kind: EventKind, pod: SimulatedPod | None = None) -> None:
        """Schedule an event, of a pod where it has one."""
        self.event_number += 1
        heapq.heappush(self.events, (at_s, kind, self.event_number, pod))

    def run(self) -> SimulationResult:
        """Simulate until all requests ended or the time is up: as long again and an hour."""
        arrivals_s, runs_s = self.requests.arrivals_s, self.requests.runs_s
        until_s = 2 * arrivals_s[-1] + 10 * max(runs_s) + 3600.0
        handle = {
            EventKind.REQUEST_ENDS: self.end_request,
            EventKind.POD_IS_KILLED: self.kill,
            EventKind.POD_IS_READY: self.begin_to_serve,
        }
        arrived = 0
        self.schedule(0.0, EventKind.METRIC_IS_READ)
        while len(self.waits_s) < len(arrivals_s):
            at_s, kind, _, pod = self.events[0]
            if arrived < len(arrivals_s) and arrivals_s[arrived] <= at_s:
                self.now_s = arrivals_s[arrived]
                self.scaler.request_arrived(self.now_s)
                self.waiting.append(arrived)
                arrived += 1
                self.serve_waiting()
                continue
            heapq.heappop(self.events)
            self.now_s = min(at_s, until_s)
            if at_s > until_s:
                break
            if pod is None:
                self.run_autoscaler()
            elif pod in self.pods:  # else it went before its event came
                handle[kind](pod)
        self.note_point()
        return SimulationResult(
            rule=self.rule,
            requests=len(arrivals_s),
            ended=len(self.waits_s),
            changes=len(self.changes),
            direction_changes=count_direction_changes(self.changes),
            killed=self.killed,
            makespan_s=self.now_s if len(self.waits_s) == len(arrivals_s) else None,
            pod_s=self.pod_s + sum(self.now_s - pod.created_s for pod in self.pods),
            peak_pods=self.peak_pods,
            waits_s=tuple(sorted(self.waits_s.values())),
            course=tuple(self.course),
        )

    # requests

    def serve_waiting(self) -> None:
        """Give waiting requests to idle pods."""
        while self.waiting and self.idle:
            pod = next(iter(self.idle))
            del self.idle[pod]
            pod.request = self.waiting.popleft()
            pod.began_s = self.now_s
            self.busy += 1
            run_s = self.requests.runs_s[pod.request]
            self.schedule(self.now_s + run_s, EventKind.REQUEST_ENDS, pod)

    def end_request(self, pod: SimulatedPod) -> None:
        """End a pod's request; an idle pod takes the next one, a draining one goes."""
        request, pod.request = pod.request, -1
        self.busy -= 1
        wait_s = pod.began_s - self.requests.arrivals_s[request]
        self.waits_s[request] = wait_s
        self.scaler.request_ended(self.now_s, wait_s, self.requests.runs_s[request])
        if pod.draining or self.has_jobs:
            self.remove_pod(pod)
        else:
            self.idle[pod] = None
            self.serve_waiting()

    def kill(self, pod: SimulatedPod) -> None:
        """Kill a pod whose grace period is over; its request starts again, before all others."""
        self.killed += 1
        self.busy -= 1
        self.waiting.appendleft(pod.request)
        self.remove_pod(pod)
        self.serve_waiting()

    # pods

    def begin_to_serve(self, pod: SimulatedPod) -> None:
        """Let a pod that is ready serve; a job's pod goes where there is nothing to serve."""
        pod.ready_s = self.now_s
        self.idle[pod] = None
        self.serve_waiting()
        if self.has_jobs and pod.request < 0:
            self.remove_pod(pod)

    def run_autoscaler(self) -> None:
        """Let the autoscaler read its metric, and scale."""
        state = {
            "waiting": len(self.waiting),
            "running": self.busy,
            "present": len(self.pods) - self.draining,
            "ready": self.busy + len(self.idle) - self.draining,
        }
        if self.has_jobs:
            count = self.scaler.jobs_to_create(self.now_s, **state)
            self.add_pods(count)
            if count > 0:
                self.changes.append(count)
            self.replicas = len(self.pods)
        else:
            self.scale(self.scaler.replicas(self.now_s, self.replicas, **state))
        self.note_point()
        self.schedule(self.now_s + self.scaler.interval_s, EventKind.METRIC_IS_READ)

    def scale(self, replicas: int) -> None:
        """Let the ReplicaSet follow spec.replicas."""
        change = replicas - self.replicas
        self.replicas = replicas
        if change:
            self.changes.append(change)
        present = len(self.pods) - self.draining
        self.add_pods(replicas - present)
        if replicas < present:
            staying = (pod for pod in self.pods if not pod.draining)
            for pod in choose_victims(staying, present - replicas, self.now_s):
                # SIGTERM: an idle pod ends, a busy one finishes its request within the grace time
                if pod.request < 0:
                    self.remove_pod(pod)
                    continue
                pod.draining = True
                self.draining += 1
                killed_at_s = self.now_s + self.rule.grace_s
                if pod.began_s + self.requests.runs_s[pod.request] > killed_at_s:
                    self.schedule(killed_at_s, EventKind.POD_IS_KILLED, pod)

    def add_pods(self, count: int) -> None:
        """Create so many pods; none for a number below 1."""
        for _ in range(count):
            pod = SimulatedPod(self.chance.random(), self.now_s)
            self.pods[pod] = None
            self.schedule(self.now_s + self.pod_start_s, EventKind.POD_IS_READY, pod)
        self.peak_pods = max(self.peak_pods, len(self.pods))

    def remove_pod(self, pod: SimulatedPod) -> None:
        """Remove a pod that has ended."""
        self.draining -= pod.draining
        self.idle.pop(pod, None)
        del self.pods[pod]
        self.pod_s += self.now_s - pod.created_s

    def note_point(self) -> None:
        """Add this moment to the course."""
        self.course.append(SimulationPoint(self.now_s, self.replicas, len(self.waiting), self.busy))
        if len(self.course) > MOST_POINTS:
            del self.course[1::2]
