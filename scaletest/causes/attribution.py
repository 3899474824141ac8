"""Attribution: which places took the time that more workers added.

A cycle, the time of a worker per request, is the sum of the gap before the request and of the
states of its run, which together are the PLACES. With N workers its mean is N / throughput, so it
grows by exactly what throughput lacks. `attribute_causes` therefore

1. chooses two steps, and takes the mean cycle of each by place;
2. subtracts one from the other: what each place grew by, over what the cycle grew by, is its share;
3. does the same with resamples of the requests (a bootstrap), whose spread gives the intervals;
4. names the places with the largest shares, or says why it can name none.

Workers look at the processes of a request now and then; the state of a request is a sample of what
these did. So what was subtracted is corrected (`_grown_by_place`, `_limit_throttled`), and time
that no look stands for is a state of its own, "not observed", and never spread over the others
(`_Growth.share`).
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from scaletest.causes.causes import (
    GREW_AS_WANTED,
    LEAST_SHARE,
    NOTHING_GREW,
    ONLY_ONE_STEP,
    Cause,
    Causes,
    StepTime,
)
from scaletest.causes.places import GAP, PLACES, cause_sentence, remedy_of, seconds_text
from scaletest.causes.request_time import CPU_S, THROTTLED_S, RequestTime, request_time
from scaletest.causes.slow_member import slow_member
from scaletest.causes.steps import SPREAD_BETWEEN_STEPS, MeasuredStep, Rows
from scaletest.model import State
from scaletest.stats.chance import Chance
from scaletest.stats.estimate import Estimate
from scaletest.stats.student import NORMAL_95, t95

RESAMPLES = 300
# A cause is looked for when a cycle grew by at least so many standard errors: one linear run in
# 2000 does by chance.
LEAST_STANDARD_ERRORS = 3.3
# What was not seen in n looks may be up to 3/n of the whole (at 95 % confidence).
RULE_OF_THREE = 3.0
# An object is named when it holds more of a place's growth than all others together.
LEAST_OBJECT_SHARE = 0.5
# A CPU limit is the cause when throttled seconds grew by this part of the wait for a CPU.
LEAST_THROTTLED_PART = 0.5
# So it is where the container is throttled in this share of its periods, if that fell by no more
# than the second figure.
BOUND_PERIODS_SHARE, PERIODS_TOLERANCE = 0.5, 0.1
# Where workers of fewer requests report where the time went, these do not represent the others.
LEAST_SAMPLED_SHARE = 0.5
# Seconds of a mean cycle by place; where it is measured, also by CPU_S and THROTTLED_S.
Seconds = Mapping[str, float]
StepPair = tuple[MeasuredStep, MeasuredStep]


@dataclass(frozen=True, slots=True)
class _Growth:
    """By how much a cycle grew from one step to another."""

    before: RequestTime
    after: RequestTime
    before_s: Seconds  # the mean cycle of the first step
    by_place: Seconds  # what each place grew by
    by_place_resampled: Sequence[Seconds]  # of resamples whose cycles are as long as the real ones
    total_s_resampled: Sequence[float]  # of resamples whose cycles are as long as they come

    @property
    def total_s(self) -> float:
        """By how much the whole cycle grew."""
        return sum(self.by_place.values())

    @property
    def unobserved_share(self) -> float:
        """The part of the growth that no look saw; below 0 where more was seen than before."""
        return _part(self.by_place[State.NOT_OBSERVED], self.total_s)

    @property
    def is_certain(self) -> bool:
        """Whether a cycle grew by more than chance, and than steps of one run differ anyway."""
        error_s = self._widening * statistics.stdev(self.total_s_resampled)
        # the difference of two steps, each with that spread
        after_s = _cycle_s(self.before_s) + self.total_s
        between_s = math.sqrt(2.0) * SPREAD_BETWEEN_STEPS * after_s
        return self.total_s > LEAST_STANDARD_ERRORS * math.hypot(error_s, between_s)

    def share(self, place: str) -> Estimate:
        """Return the part of one place in the growth, all of it where other places shrank."""

        def share_of(growth: Seconds, unobserved_s: float = 0.0) -> float:
            return min(1.0, _part(growth[place] + unobserved_s, sum(growth.values())))

        def lowest(growth: Seconds) -> float:
            return share_of(growth, min(0.0, growth[State.NOT_OBSERVED]))

        def highest(growth: Seconds) -> float:
            return share_of(growth, max(0.0, growth[State.NOT_OBSERVED]))

        share = self.estimate(share_of)
        low, high = share.low, share.high
        if place != GAP:  # which needs no observation
            # Where less was unobserved than before, as in longer requests, a place may have grown
            # only because it was seen at last. Where more was, any of it may be the place's.
            low = min(low, self.estimate(lowest).low)
            high = max(high, self.estimate(highest).high)
        # Requests that all say the same may be those that happened to be looked at then: each
        # counts as one look.
        low = min(low, 1.0 - RULE_OF_THREE / (len(self.after.cycles) + RULE_OF_THREE))
        return Estimate(share.value, max(0.0, low), min(1.0, high))

    def estimate(self, figure: Callable[[Seconds], float]) -> Estimate:
        """Return a figure of the growth by place, with its 95 % interval."""
        return self._interval(figure(self.by_place), map(figure, self.by_place_resampled))

    def estimate_total_s(self) -> Estimate:
        """Return by how much the whole cycle grew, with its 95 % interval."""
        return self._interval(self.total_s, self.total_s_resampled)

    def _interval(self, value: float, resampled: Iterable[float]) -> Estimate:
        first, *_, last = statistics.quantiles(resampled, n=40, method="inclusive")
        return Estimate(
            value,
            min(value, value + self._widening * (first - value)),
            max(value, value + self._widening * (last - value)),
        )

    @property
    def _widening(self) -> float:
        """How much farther the ends of an interval are from its middle than those of the resamples.

        Few requests scatter less among themselves than requests do, and tell little of how much.
        """
        factors = [1.0]
        for time in (self.before, self.after):
            spare = max(1, time.spare_requests)
            factors.append(t95(spare) / NORMAL_95 * math.sqrt(len(time.cycles) / spare))
        return max(factors)


def attribute_causes(
    steps: Sequence[MeasuredStep],
    failed: StepPair | None,
    records: Rows,
    chance: Chance,
    *,
    as_wanted: bool = False,
    throttled: Mapping[int, float] | None = None,
) -> Causes | None:
    """Return the growth in the doubling that failed, else from the first step to the last.

    None where no request reports its time. A single step shows where its requests spend the time,
    and names no cause.

    steps: those with enough requests. failed: the two steps of that doubling. chance: seeded by the
    caller. as_wanted: whether throughput grows as the plan wants, so that nothing needs a cause.
    throttled: by workers, the part of its periods in which a CPU limit throttled the container,
    where samples have it.
    """
    # where each step spent its time, of those whose requests report it
    reporting: list[MeasuredStep] = []
    times: dict[int, RequestTime] = {}
    step_times: list[StepTime] = []
    for step in steps:
        time = request_time(step, records)
        if time.cycles:
            means = time.means()
            seconds = {str(place): means[place] for place in PLACES if means[place] > 0}
            reporting.append(step)
            times[step.workers] = time
            step_times.append(StepTime(time.workers, time.per_device, seconds))
    if not reporting:
        return None
    if failed is None and len(reporting) == 1:
        (alone,) = times.values()
        return Causes(
            before=alone.workers,
            after=alone.workers,
            causes=(),
            grown_s=Estimate(0.0, 0.0, 0.0),
            observed=1.0,
            sampled_share=alone.sampled_share,
            headline=ONLY_ONE_STEP,
            slow=None,
            times=tuple(step_times),
        )

    # the two steps that are compared
    first, second = failed or (reporting[0], reporting[-1])
    if first.workers not in times or second.workers not in times:
        return None
    # of steps that were measured several times, the repeats that both have
    repeats = {*first.used_repeats} & {*second.used_repeats}
    repeats = repeats or {*first.used_repeats, *second.used_repeats}
    before, after = times[first.workers].of(repeats), times[second.workers].of(repeats)
    if not before.cycles or not after.cycles:
        return None

    # what grew, and whether it can be named
    growth = _measure_growth(before, after, chance, throttled or {})
    sampled_share = min(before.sampled_share, after.sampled_share)
    causes: tuple[Cause, ...] = ()
    slow = None
    if as_wanted:
        headline = GREW_AS_WANTED
    elif failed is None and not growth.is_certain:
        # a doubling that failed needs no such proof: throughput says that the cycle grew
        headline = NOTHING_GREW
    else:
        causes = _rank_causes(growth)
        headline = _why_unknown(growth, causes, sampled_share)
        if growth.total_s > 2.0 * growth.by_place[GAP]:  # it is the run that grew
            slow = slow_member(before, after)
    return Causes(
        before=before.workers,
        after=after.workers,
        causes=causes,
        grown_s=growth.estimate_total_s(),
        observed=1.0 - min(1.0, max(0.0, growth.unobserved_share)),
        sampled_share=sampled_share,
        headline=headline,
        slow=slow,
        times=tuple(step_times),
        pinned_cpus=after.pinned_cpus,
    )


def _measure_growth(
    before: RequestTime, after: RequestTime, chance: Chance, throttled: Mapping[int, float]
) -> _Growth:
    """Return the growth from the time of one step to that of another.

    throttled: as in `attribute_causes`.
    """
    part_before, part_after = throttled.get(before.workers), throttled.get(after.workers)
    before_s = _limit_throttled(before.means(), part_before)
    after_s = _limit_throttled(after.means(), part_after)
    resamples = list(
        zip(before.resampled(chance, RESAMPLES), after.resampled(chance, RESAMPLES), strict=True)
    )
    # Throughput says how long a cycle is. That a resample happens to have long requests is no doubt
    # about what a cycle consists of, so its cycles are made as long as the real ones.
    pairs = [
        (
            _limit_throttled(_scaled_to(one, _cycle_s(before_s)), part_before),
            _limit_throttled(_scaled_to(other, _cycle_s(after_s)), part_after),
        )
        for one, other in resamples
    ]
    # Whether threads that ran side by side before run in turn, by more than chance.
    in_turn = all(_in_turn_s(one, other) > 0 for one, other in pairs)

    # Whether the container's CPU limit, not the number of cores, makes requests wait longer: where
    # throttled seconds grew as that wait did, or where the container had all the CPU time that its
    # limit allows, and no less than with fewer workers. (Where workers have a container each, too
    # few cores keep them below their limits: then they are throttled less often.)
    grown = _grown_by_place(before_s, after_s, in_turn=in_turn, limited=False)
    waits_s = grown[State.CPU_WAIT] + grown[State.THROTTLED]
    throttled_s = max(after_s[THROTTLED_S] - before_s[THROTTLED_S], grown[State.THROTTLED])
    limited = throttled_s >= LEAST_THROTTLED_PART * waits_s
    if part_before is not None and part_after is not None:
        least_part = max(BOUND_PERIODS_SHARE, part_before - PERIODS_TOLERANCE)
        limited = limited or part_after >= least_part
    limited = limited and grown[State.CPU_WAIT] > 0

    return _Growth(
        before,
        after,
        before_s,
        by_place=_grown_by_place(before_s, after_s, in_turn=in_turn, limited=limited),
        by_place_resampled=[
            _grown_by_place(one, other, in_turn=in_turn, limited=limited) for one, other in pairs
        ],
        total_s_resampled=[_cycle_s(other) - _cycle_s(one) for one, other in resamples],
    )


def _grown_by_place(
    before_s: Seconds, after_s: Seconds, *, in_turn: bool, limited: bool
) -> dict[str, float]:
    """Return by how much each place grew, with two corrections.

    in_turn: time on a CPU counts as grown only as far as the CPU seconds of a request grew, which
    are exact; the rest was waiting for a CPU. limited: a thread that a CPU limit throttles looks as
    if it waited for a CPU, so that wait counts as throttled.
    """
    grown = {str(place): after_s[place] - before_s[place] for place in PLACES}
    if in_turn:
        moved_s = _in_turn_s(before_s, after_s)
        grown[State.ON_CPU] -= moved_s
        grown[State.CPU_WAIT] += moved_s
    if limited:
        grown[State.THROTTLED] += grown[State.CPU_WAIT]
        grown[State.CPU_WAIT] = 0.0
    return grown


def _in_turn_s(before_s: Seconds, after_s: Seconds) -> float:
    """Return how much longer a request is on a CPU than its CPU seconds explain."""
    if before_s[CPU_S] <= 0 or before_s[State.ON_CPU] <= 0:
        return 0.0
    explained_s = before_s[State.ON_CPU] * after_s[CPU_S] / before_s[CPU_S]
    return after_s[State.ON_CPU] - max(before_s[State.ON_CPU], explained_s)


def _limit_throttled(request_s: Seconds, throttled_periods: float | None) -> Seconds:
    """Return a request's seconds, throttled for no more than the throttled part of its periods.

    The kernel counts throttled seconds for each CPU that holds threads of the container, so they
    may be more than passed; the rest waited for a core. throttled_periods: None where no sample has
    that part.
    """
    if throttled_periods is None:
        return request_s
    most_s = throttled_periods * (_cycle_s(request_s) - request_s[GAP])
    excess_s = max(0.0, request_s[State.THROTTLED] - most_s)
    return {
        **request_s,
        THROTTLED_S: min(request_s[THROTTLED_S], most_s),
        State.THROTTLED: request_s[State.THROTTLED] - excess_s,
        State.CPU_WAIT: request_s[State.CPU_WAIT] + excess_s,
    }


def _cycle_s(request_s: Seconds) -> float:
    return sum(request_s[place] for place in PLACES)


def _scaled_to(request_s: Seconds, cycle_s: float) -> Seconds:
    factor = _part(cycle_s, _cycle_s(request_s))
    return {name: factor * seconds for name, seconds in request_s.items()}


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _rank_causes(growth: _Growth) -> tuple[Cause, ...]:
    """Return the places that certainly grew, and by enough to name them, the largest first."""
    shares = {
        place: growth.share(place)
        for place in PLACES
        if place != State.NOT_OBSERVED and growth.by_place[place] > 0
    }
    ranked = sorted(shares.items(), key=lambda item: -item[1].value)
    causes = []
    for place, share in ranked:
        if share.value < LEAST_SHARE or share.low <= 0:
            continue
        object_name = _main_object(growth, place)
        causes.append(
            Cause(
                state=str(place),
                share=share,
                grown_s=growth.estimate(itemgetter(place)),
                before_s=growth.before_s[place],
                after_s=growth.before_s[place] + growth.by_place[place],
                object=object_name,
                sentence=cause_sentence(place, object_name, share, growth.total_s),
                remedy=remedy_of(place, object_name),
            )
        )
    return tuple(causes)


def _main_object(growth: _Growth, place: str) -> str:
    """Return the object that holds more than half of a place's growth; "" when none does."""
    added_s: dict[str, float] = defaultdict(float)
    for time, sign in ((growth.before, -1), (growth.after, 1)):
        for wait in itertools.chain.from_iterable(cycle.activity.waits for cycle in time.cycles):
            if wait.state == place and wait.object:
                added_s[wait.object] += sign * wait.seconds / len(time.cycles)
    largest = max(added_s, key=lambda name: added_s[name], default="")
    holds_most = added_s.get(largest, 0.0) > LEAST_OBJECT_SHARE * growth.by_place[place]
    return largest if holds_most else ""


def _why_unknown(growth: _Growth, causes: Sequence[Cause], sampled_share: float) -> str:
    """Return why no cause can be named; "" when one can.

    sampled_share: the part of the requests whose workers report where their time went.
    """
    added = seconds_text(growth.total_s)
    if sampled_share < LEAST_SAMPLED_SHARE:
        silent = 1.0 - sampled_share
        return f"unknown: {silent:.0%} of the requests do not report where their time went"
    largest_share = causes[0].share.value if causes else 0.0
    if growth.unobserved_share >= max(LEAST_SHARE, largest_share):
        unobserved = min(1.0, growth.unobserved_share)
        return f"unknown: {unobserved:.0%} of the added {added} was not observed"
    return "" if causes else f"unknown: no state stands out in the added {added}"
