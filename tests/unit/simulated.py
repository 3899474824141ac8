"""A service with a known capacity, without a clock: c slots of a service time, and a queue that may
be limited.
"""

import bisect
import heapq
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from scaletest.load.pace import exact_poisson
from scaletest.model.attempt import OK, Attempt
from scaletest.saturation.judging.evaluation import SaturationResult, conclude
from scaletest.saturation.judging.step import assess_step
from scaletest.saturation.judging.step_sequence import SaturationSequence
from scaletest.saturation.plan import LoadKind, SaturationPlan, SaturationStep


class Simulated:
    """slots of service_s each; more than `room` waiting are refused with 503 at once.

    stalls: begin and end, in order, of times in which nothing that ends is noticed: a machine that
    others use too.
    """

    def __init__(
        self,
        slots: int = 8,
        service_s: float = 0.010,
        room: int | None = None,
        noise: Callable[[], float] = lambda: 1.0,
        stalls: list[tuple[float, float]] | None = None,
    ) -> None:
        self.slots, self.service_s, self.room, self.noise = slots, service_s, room, noise
        self.stalls = stalls or []

    def open(self, due: list[float]) -> list[Attempt]:
        free = [0.0] * self.slots
        waiting: list[float] = []  # starts of those that waited
        samples = []
        for number, at in enumerate(due):
            while waiting and waiting[0] <= at:
                heapq.heappop(waiting)
            if self.room is not None and len(waiting) > self.room:
                samples.append(Attempt(number, at, at, at, at + 0.0005, "503"))
                continue
            start = max(at, heapq.heappop(free))
            if start > at:
                heapq.heappush(waiting, start)
            end = start + self.service_s * self.noise()
            heapq.heappush(free, end)
            samples.append(Attempt(number, at, at, at, self._noticed(end), OK, server_s=end - at))
        return samples

    def _noticed(self, at: float) -> float:
        last = bisect.bisect(self.stalls, at, key=lambda stall: stall[0]) - 1
        return max(at, self.stalls[last][1]) if last >= 0 else at

    def closed(self, parallel: int, seconds: float) -> list[Attempt]:
        free = [0.0] * self.slots
        ready = [0.0] * parallel
        heapq.heapify(ready)
        samples: list[Attempt] = []
        while ready and ready[0] < seconds:
            at = heapq.heappop(ready)
            start = max(at, heapq.heappop(free))
            end = start + self.service_s * self.noise()
            heapq.heappush(free, end)
            samples.append(Attempt(len(samples), at, at, at, end, OK))
            heapq.heappush(ready, end)
        return samples


def run(plan: SaturationPlan, service: Simulated, seed: int) -> SaturationResult:
    """The search that measures, against the simulated service."""
    return conclude(_driven(plan, service, seed)[0])


def stored(
    plan: SaturationPlan, service: Simulated, seed: int
) -> tuple[list[SaturationStep], dict[int, list[Attempt]]]:
    """What such a search leaves on disk."""
    course, samples = _driven(plan, service, seed)
    return [measured.step for measured in course.steps], samples


def _driven(
    plan: SaturationPlan, service: Simulated, seed: int
) -> tuple[SaturationSequence, dict[int, list[Attempt]]]:
    chance = random.Random(seed)
    course, began = SaturationSequence(plan), datetime(2026, 1, 1, tzinfo=UTC)
    attempts: dict[int, list[Attempt]] = {}
    while course.next is not None:
        probe, number = course.next, len(attempts)
        kind = (
            "open" if probe.phase == "operate" else "closed" if probe.phase == "warm" else plan.load
        )
        if kind == LoadKind.OPEN:
            samples = service.open(list(exact_poisson(probe.level, plan.step_s, chance)))
        else:
            samples = service.closed(int(probe.level), plan.step_s)
        step = SaturationStep(
            number,
            probe.phase,
            kind,
            probe.level,
            plan.step_s,
            len(samples),
            min(1.0, plan.step_s / 5),
            began=(began + number * timedelta(seconds=plan.step_s)).isoformat(),
        )
        attempts[number] = samples
        course.add_step(assess_step(plan, step, samples))
    return course, attempts


PLAN = SaturationPlan("simulated", step_s=4.0, warm_s=0.5)


def step(
    level: float = 100.0, seconds: float = 10.0, phase: str = "ramp", **more: Any
) -> SaturationStep:
    """An open one."""
    return SaturationStep(0, phase, "open", level, seconds, 0, 1.0, **more)
