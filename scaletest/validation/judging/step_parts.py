"""The measurements of one step on the passes up and down, and what they give together."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scaletest.stats.student import t95
from scaletest.validation.judging.slow_requests import Tail, join_tails
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.plan import Plan

# With so many pairs of passes, the interval is the one between them. That of two, with one degree
# of freedom, would be too wide to say anything.
MIN_PAIRS = 3


@dataclass(frozen=True, slots=True)
class StepPart:
    """One measurement of a step, in a pass up (ever more workers) or down (ever fewer)."""

    workers: int
    repeat: int  # even in the pass up, odd in the pass down
    seconds: float  # time under load
    middle_s: float  # the middle of it, on one clock for all parts of a run
    throughput: Throughput
    tail: Tail
    sound: bool = True  # whether it may be judged

    @property
    def pair(self) -> int:
        """The number of its pair of passes, from 0: a pass up and the pass down after it."""
        return self.repeat // 2

    @property
    def is_descending(self) -> bool:
        """Whether it was measured in the pass down."""
        return self.repeat % 2 == 1

    @property
    def spread(self) -> float | None:
        """The relative standard deviation of its cycles, the times between completions.

        It follows from the interval of the throughput. None where that is unknown.
        """
        rate = self.throughput
        cycles = rate.completions - self.workers  # the first of each worker ends no cycle
        if rate.enough and cycles > 0 and math.isfinite(rate.relative):
            return rate.error * math.sqrt(cycles)
        return None


def throughput_of_parts(parts: Sequence[StepPart]) -> Throughput:
    """Return the throughput of a step from its parts, at least one, weighted with their lengths.

    Without any length they count alike. Its interval is infinite where that of a part is.

    The scatter of requests in a second is pooled over the parts, each with its degrees of
    freedom as weight: a part of 30 requests that follow each other alike underestimates its own
    error.
    """
    rates = [part.throughput for part in parts]
    total_s = sum(part.seconds for part in parts)
    weights = [1.0 / len(parts)] * len(parts)
    if total_s > 0:
        weights = [part.seconds / total_s for part in parts]
    weighted = list(zip(weights, rates, strict=True))
    per_s = sum(weight * rate.per_s for weight, rate in weighted)
    completions = sum(rate.completions for rate in rates)
    enough = all(rate.enough for rate in rates)
    if not all(math.isfinite(rate.half_width) for rate in rates):
        return Throughput(
            per_s=per_s, half_width=math.inf, completions=completions, freedom=0, enough=enough
        )
    freedom = sum(rate.freedom for rate in rates)
    pooled = sum(rate.freedom * weight * rate.error**2 for weight, rate in weighted)
    error = math.sqrt(pooled / freedom) if freedom else 0.0
    return Throughput(
        per_s=per_s,
        half_width=t95(max(1, freedom)) * error * per_s,
        completions=completions,
        freedom=freedom,
        enough=enough,
    )


def group_by_pair(parts: Sequence[StepPart]) -> list[list[StepPart]]:
    """Return the parts of a step, a list for each pass up and the pass down after it.

    Either may be missing. The lists are in the order of time.
    """
    numbers = sorted({part.pair for part in parts})
    return [[part for part in parts if part.pair == number] for number in numbers]


def parts_to_judge(parts: Sequence[StepPart]) -> list[StepPart]:
    """Return the parts that a verdict uses: those of sound pairs, or all without a sound one."""
    sound: list[StepPart] = []
    for pair in group_by_pair(parts):
        if all(part.sound for part in pair):
            sound += pair
    return sound or list(parts)


def tail_of_parts(parts: Iterable[StepPart]) -> Tail:
    """Return the slow requests of several parts together."""
    return join_tails([part.tail for part in parts])


def mean_time_s(parts: Sequence[StepPart]) -> float:
    """Return the mean of the parts' middles, at least one, weighted with their lengths, in s."""
    total_s = sum(part.seconds for part in parts)
    if total_s > 0:
        return sum(part.middle_s * part.seconds for part in parts) / total_s
    return parts[0].middle_s


class JoinedThroughput(NamedTuple):
    """The throughput of a step from all its parts, and how it was joined."""

    throughput: Throughput
    # its interval comes from the scatter between pairs of passes, not from that of the requests
    is_between_pairs: bool


def join_parts(plan: Plan, parts: Sequence[StepPart]) -> JoinedThroughput:
    """Return the throughput of a step from those of its parts, at least one, that may be judged.

    Where there are enough planned pairs of passes, the pair is the unit (Kalibera and Jones 2013):
    the throughput is the mean of the pairs.
    """
    judged = parts_to_judge(parts)
    pairs = group_by_pair(judged)
    if plan.repeats == 1 or len(pairs) < MIN_PAIRS:
        return JoinedThroughput(throughput_of_parts(judged), is_between_pairs=False)
    rates = [throughput_of_parts(pair) for pair in pairs]
    count = len(rates)
    mean = statistics.fmean(rate.per_s for rate in rates)
    spread = statistics.stdev(rate.per_s for rate in rates)
    throughput = Throughput(
        per_s=mean,
        half_width=t95(count - 1) * spread / math.sqrt(count),
        completions=sum(rate.completions for rate in rates),
        freedom=count - 1,
        enough=all(rate.enough for rate in rates),
    )
    return JoinedThroughput(throughput, is_between_pairs=True)
