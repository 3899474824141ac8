"""The measurements of one step on the ways up and down, and what they give together."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scaletest.stats.student import t95
from scaletest.validation.judging.slow_requests import Tail, join_tails
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.plan import Plan


@dataclass(frozen=True, slots=True)
class StepPart:
    """One measurement of a step."""

    workers: int
    repeat: int  # even on the way up, odd on the way down
    seconds: float  # time under load
    at_s: float  # the middle of it, on the clock of all parts
    throughput: Throughput
    tail: Tail
    sound: bool = True  # whether it may be judged

    @property
    def pair(self) -> int:
        """The number of its pair, a way up and the way down after it."""
        return self.repeat // 2

    @property
    def down(self) -> bool:
        """Whether it was measured on the way down."""
        return self.repeat % 2 == 1

    @property
    def spread(self) -> float | None:
        """Relative standard deviation of its cycles by its interval's width; None without one."""
        rate, count = self.throughput, self.throughput.completions - self.workers
        if rate.enough and count > 0 and math.isfinite(rate.relative):
            return rate.error * math.sqrt(count)
        return None


def throughput_of_parts(parts: Sequence[StepPart]) -> Throughput:
    """Return the throughput of a step from its parts, each weighted with its length.

    The scatter of requests in a second is pooled over the parts, each with its degrees of
    freedom as weight: a part of 30 requests that follow each other alike underestimates its own
    error.
    """
    rates = [part.throughput for part in parts]
    seconds = sum(part.seconds for part in parts)
    weights = [1.0 / len(parts)] * len(parts)
    if seconds > 0:
        weights = [part.seconds / seconds for part in parts]
    weighted = list(zip(weights, rates, strict=True))
    per_s = sum(weight * rate.per_s for weight, rate in weighted)
    completions = sum(rate.completions for rate in rates)
    enough = all(rate.enough for rate in rates)
    if not all(math.isfinite(rate.half_width) for rate in rates):
        return Throughput(per_s, math.inf, completions, 0, enough)
    freedom = sum(rate.freedom for rate in rates)
    pooled = sum(rate.freedom * weight * rate.error**2 for weight, rate in weighted)
    error = math.sqrt(pooled / freedom) if freedom else 0.0
    return Throughput(per_s, t95(max(1, freedom)) * error * per_s, completions, freedom, enough)


def pairs_of(parts: Sequence[StepPart]) -> list[list[StepPart]]:
    """Return the parts of a step by the way up and the way down after it, which may be missing."""
    numbers = sorted({part.pair for part in parts})
    return [[part for part in parts if part.pair == number] for number in numbers]


def parts_to_judge(parts: Sequence[StepPart]) -> list[StepPart]:
    """Return the parts that a verdict uses: those of sound pairs, or all without a sound one."""
    sound: list[StepPart] = []
    for pair in pairs_of(parts):
        if all(part.sound for part in pair):
            sound += pair
    return sound or list(parts)


def tail_of(parts: Iterable[StepPart]) -> Tail:
    """Return the slow requests of several parts together."""
    return join_tails([part.tail for part in parts])


def middle_of(parts: Sequence[StepPart]) -> float:
    """Return the middle of several parts on their clock, each weighted with its length, in s."""
    total_s = sum(part.seconds for part in parts)
    if total_s > 0:
        return sum(part.at_s * part.seconds for part in parts) / total_s
    return parts[0].at_s


def join_parts(plan: Plan, parts: Sequence[StepPart]) -> tuple[Throughput, bool]:
    """Return the throughput of a step from the parts that may be judged, and how it was joined.

    True: it is the mean of planned pairs of ways with the interval between them. Where there are
    enough, the pair is the unit (Kalibera and Jones 2013).
    """
    judged = parts_to_judge(parts)
    pairs = pairs_of(judged)
    # from three pairs of ways on, the interval is the one between them
    if plan.repeats == 1 or len(pairs) < 3:
        return throughput_of_parts(judged), False
    rates = [throughput_of_parts(pair) for pair in pairs]
    count = len(rates)
    mean = statistics.fmean(rate.per_s for rate in rates)
    spread = statistics.stdev(rate.per_s for rate in rates)
    between = Throughput(
        per_s=mean,
        half_width=t95(count - 1) * spread / math.sqrt(count),
        completions=sum(rate.completions for rate in rates),
        freedom=count - 1,
        enough=all(rate.enough for rate in rates),
    )
    return between, True
