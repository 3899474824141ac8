"""Attribution: which places took the time that more workers added.

A cycle, the time of a worker per request, grows by exactly what throughput lacks. It is the sum of
the gap before the request and of the states of its run, so its growth from one step to another is
the sum of theirs, and the share of each is its part in the lost throughput. Intervals are the
middle 95 % of a bootstrap over requests, by worker and step.

Three corrections, since states are samples:

1. The time on a CPU counts as grown as far as the CPU seconds of a request grew, which are exact.
   The rest, where it is more than chance, was waiting for a CPU: threads that ran side by side ran
   one after the other.
2. Threads that a CPU limit throttles look as if they waited for a CPU. The limit is the cause where
   the container's throttled seconds grew by half of that wait or more, or where it is throttled in
   half of its periods and not in fewer than before: it had all the CPU time that the limit allows
   then, so more cores would not have helped. These seconds count for each CPU that the container's
   threads are on. So they may miss half of a wait, for example where other load drives all threads
   to one CPU, and may be a multiple of it, where they are on many. They never count for more of a
   request than the part of the periods in which the container was throttled, where samples have
   that.
3. Steps of one run differ by a percent for reasons that no interval within a step shows, so less is
   no growth.

Time that was not observed is never spread over the states that were. Where less was unobserved than
before, as in longer requests, a state may have grown only because it was observed: the low end of
its share allows for that. Where more was, any of it may be the state's: so does the high end.
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scaletest.causes.causes import (
    ALONE,
    AS_WANTED,
    LEAST_SHARE,
    NOTHING_GREW,
    Cause,
    Causes,
    StepTime,
)
from scaletest.causes.places import GAP, PLACES, cause_sentence, remedy_of, seconds_text
from scaletest.causes.request_time import CPU_S, THROTTLED_S, RequestTime, request_time
from scaletest.causes.slow_member import slow_member
from scaletest.causes.steps import UNSEEN, MeasuredStep, Rows
from scaletest.model import State
from scaletest.stats.chance import Chance
from scaletest.stats.estimate import Estimate
from scaletest.stats.student import t95

DRAWS = 300
# Standard errors by which a cycle grows at least before a cause is looked for: one linear run in
# 2000 does by chance.
CERTAIN = 3.3
# Of so many events that were not seen among n one in 20 times there are some: 3/n.
RULE_OF_THREE = 3.0
# Of a normal distribution, the middle 95 % reach so many standard deviations.
NORMAL_95 = 1.96
# An object is named when it holds more of the state's growth than all others together.
MOST_OF_GROWTH = 0.5
# Throttled seconds that grew by this part of the wait for a CPU make the limit the cause.
THROTTLED_PART = 0.5
# A limit binds where the container is throttled in the first part of its periods, and in no less
# than before, minus the second part.
BOUND_PERIODS, FEWER_PERIODS = 0.5, 0.1
# With more requests than this part that do not report where their time went, the others represent
# too few.
MOST_UNCOVERED = 0.5
Seconds = Mapping[str, float]
StepPair = tuple[MeasuredStep, MeasuredStep]


@dataclass(frozen=True, slots=True)
class _Grown:
    """The growth from one step to another."""

    before: RequestTime
    after: RequestTime
    base: Seconds  # the mean of the first
    more: Seconds  # the mean of the second
    growth: Seconds  # by place
    draws: Sequence[Seconds]  # the growth of each resample, of cycles that are as long as they are
    totals_s: Sequence[float]  # by how much the cycle of each resample grew

    @property
    def grown_s(self) -> Estimate:
        """By how much a cycle grew."""
        return self.estimate(sum(self.growth.values()), self.totals_s)

    @property
    def widening(self) -> float:
        """How much farther the ends of an interval are from its middle than those of the resamples.

        Few requests scatter less among themselves than requests do, and tell little of how much.
        """
        factors = [1.0]
        for time in (self.before, self.after):
            spare = max(1, time.spare_requests)
            factors.append(t95(spare) / NORMAL_95 * math.sqrt(len(time.cycles) / spare))
        return max(factors)

    def share(self, place: str) -> Estimate:
        """Return the part of one place in the growth, all of it where other places shrank.

        Its low end leaves out time that may only have been observed for the first time, its high
        end includes what grew unobserved. Requests that all say the same may be those that happened
        to be looked at then: by the rule of three, each of them counted as one look.
        """

        def part(drawn: Seconds, unseen_s: float = 0.0) -> float:
            return min(1.0, _part(drawn[place] + unseen_s, sum(drawn.values())))

        share = self.figure(part)
        low = self.figure(lambda drawn: part(drawn, min(0.0, drawn[State.NOT_OBSERVED]))).low
        high = self.figure(lambda drawn: part(drawn, max(0.0, drawn[State.NOT_OBSERVED]))).high
        if place == GAP:  # which needs no observation
            low, high = share.low, share.high
        low = min(low, 1.0 - RULE_OF_THREE / (len(self.after.cycles) + RULE_OF_THREE))
        return Estimate(share.value, max(0.0, min(share.low, low)), min(1.0, max(share.high, high)))

    def figure(self, of: Callable[[Seconds], float]) -> Estimate:
        """Return a figure of the growth with its 95 % interval."""
        return self.estimate(of(self.growth), [of(drawn) for drawn in self.draws])

    def estimate(self, middle: float, drawn: Sequence[float]) -> Estimate:
        """Return a figure with the 95 % interval that it has in the resamples."""
        ends = statistics.quantiles(drawn, n=40, method="inclusive")
        widening = self.widening
        return Estimate(
            middle,
            min(middle, middle + widening * (ends[0] - middle)),
            max(middle, middle + widening * (ends[-1] - middle)),
        )

    @property
    def certain(self) -> bool:
        """Whether a cycle grew by more than chance, and than steps of one run differ anyway."""
        error_s = self.widening * statistics.stdev(self.totals_s)
        unseen_s = math.sqrt(2.0) * UNSEEN * _cycle_s(self.more)
        return sum(self.growth.values()) > CERTAIN * math.hypot(error_s, unseen_s)


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
    times = {step.workers: request_time(step, records) for step in steps}
    known = [step for step in steps if step.workers in times and times[step.workers].cycles]
    if not known:
        return None
    pair = (known[0], known[-1]) if failed is None and len(known) > 1 else failed
    times_by_step = []
    for step in known:
        time = times[step.workers]
        means = time.means()
        seconds = {str(name): means[name] for name in PLACES if means[name] > 0}
        times_by_step.append(StepTime(time.workers, time.per_device, seconds))
    if pair is None:
        alone = times[known[0].workers]
        return Causes(
            before=alone.workers,
            after=alone.workers,
            causes=(),
            grown_s=Estimate(0.0, 0.0, 0.0),
            observed=1.0,
            covered=alone.covered,
            headline=ALONE,
            slow=None,
            times=tuple(times_by_step),
        )
    # the times of the two steps in the repeats that they share
    first, second = pair
    if first.workers not in times or second.workers not in times:
        return None
    repeats = {*first.used_repeats} & {*second.used_repeats}
    repeats = repeats or {*first.used_repeats, *second.used_repeats}
    before, after = times[first.workers].of(repeats), times[second.workers].of(repeats)
    if not before.cycles or not after.cycles:
        return None
    return _explain(
        _measure_growth(before, after, chance, throttled or {}),
        tuple(times_by_step),
        as_wanted=as_wanted,
        has_failed=failed is not None,
    )


def _explain(
    grown: _Grown, times: tuple[StepTime, ...], *, as_wanted: bool, has_failed: bool
) -> Causes:
    """Return the causes of a growth.

    as_wanted: whether nothing grew more than is wanted. has_failed: whether throughput alone says
    that a cycle grew: it is more than chance then.
    """
    whole_s = sum(grown.growth.values())
    unseen = _part(grown.growth[State.NOT_OBSERVED], whole_s)
    covered = min(grown.before.covered, grown.after.covered)
    causes: tuple[Cause, ...] = ()
    slow = None
    if as_wanted:
        headline = AS_WANTED
    elif not has_failed and not grown.certain:
        headline = NOTHING_GREW
    else:
        # the places that certainly grew, and by enough to name them
        observed = [
            place for place in PLACES if place != State.NOT_OBSERVED and grown.growth[place] > 0
        ]
        shares = {place: grown.share(place) for place in observed}
        ranked = sorted(observed, key=lambda place: -shares[place].value)
        causes = tuple(
            _name_cause(grown, place, shares[place])
            for place in ranked
            if shares[place].value >= LEAST_SHARE and shares[place].low > 0
        )
        # why no cause can be named, "" when one can
        added = seconds_text(whole_s)
        headline = "" if causes else f"unknown: no state stands out in the added {added}"
        largest = max((cause.share.value for cause in causes), default=0.0)
        if 1.0 - covered > MOST_UNCOVERED:
            headline = (
                f"unknown: {1.0 - covered:.0%} of the requests do not report where their time went"
            )
        elif unseen >= LEAST_SHARE and unseen >= largest:
            headline = f"unknown: {min(1.0, unseen):.0%} of the added {added} was not observed"
        if whole_s > 2.0 * grown.growth[GAP]:
            slow = slow_member(grown.before, grown.after)
    return Causes(
        before=grown.before.workers,
        after=grown.after.workers,
        causes=causes,
        grown_s=grown.grown_s,
        observed=1.0 - min(1.0, max(0.0, unseen)),
        covered=covered,
        headline=headline,
        slow=slow,
        times=times,
        pinned_cpus=grown.after.pinned_cpus,
    )


def _measure_growth(
    before: RequestTime, after: RequestTime, chance: Chance, throttled: Mapping[int, float]
) -> _Grown:
    """Return the growth of the times of two steps. throttled: as in `attribute`."""
    part, part_after = throttled.get(before.workers), throttled.get(after.workers)
    base = _within_periods(before.means(), part)
    more = _within_periods(after.means(), part_after)
    drawn_before, drawn_after = before.resampled(chance, DRAWS), after.resampled(chance, DRAWS)
    totals_s = [
        _cycle_s(drawn_more) - _cycle_s(drawn)
        for drawn, drawn_more in zip(drawn_before, drawn_after, strict=True)
    ]
    # How long a cycle is in each step throughput says. What requests that happen to be long or
    # short would add is no doubt about what it consists of.
    resamples = [
        (
            _within_periods(_scaled_to(drawn, _cycle_s(base)), part),
            _within_periods(_scaled_to(drawn_more, _cycle_s(more)), part_after),
        )
        for drawn, drawn_more in zip(drawn_before, drawn_after, strict=True)
    ]
    in_turn = all(_in_turn_s(drawn, drawn_more) > 0 for drawn, drawn_more in resamples)

    # Whether containers had all CPU time that their limits allow, and no less than with fewer
    # workers. Where workers have a container each, too few cores keep them below their limits: then
    # they are throttled less often.
    bound = False
    if part is not None and part_after is not None:
        bound = part_after >= max(BOUND_PERIODS, part - FEWER_PERIODS)
    # whether the container's CPU limit, not the number of cores, made requests wait longer
    grown = _growth(base, more, in_turn, limited=False)
    waits_s = grown[State.CPU_WAIT] + grown[State.THROTTLED]
    throttled_s = max(more[THROTTLED_S] - base[THROTTLED_S], grown[State.THROTTLED])
    limited = grown[State.CPU_WAIT] > 0 and (bound or throttled_s >= THROTTLED_PART * waits_s)

    draws = [_growth(drawn, drawn_more, in_turn, limited) for drawn, drawn_more in resamples]
    growth = _growth(base, more, in_turn, limited)
    return _Grown(before, after, base, more, growth, draws, totals_s)


def _cycle_s(time: Seconds) -> float:
    return sum(time[place] for place in PLACES)


def _scaled_to(time: Seconds, cycle_s: float) -> Seconds:
    factor = _part(cycle_s, _cycle_s(time))
    return {name: factor * seconds for name, seconds in time.items()}


def _growth(before: Seconds, after: Seconds, in_turn: bool, limited: bool) -> dict[str, float]:
    """By how much each place grew, corrected as the module describes.

    in_turn: whether threads ran in turn that ran side by side before. limited: whether a CPU limit
    makes them wait.
    """
    grown = {str(place): after[place] - before[place] for place in PLACES}
    waits_s = grown[State.CPU_WAIT]
    if in_turn:
        moved_s = _in_turn_s(before, after)
        grown[State.ON_CPU] -= moved_s
        waits_s += moved_s
    grown[State.CPU_WAIT] = waits_s
    if limited:
        grown[State.CPU_WAIT] = 0.0
        grown[State.THROTTLED] += waits_s
    return grown


def _in_turn_s(before: Seconds, after: Seconds) -> float:
    """How much longer a request is on a CPU than its CPU seconds explain."""
    if before[CPU_S] <= 0 or before[State.ON_CPU] <= 0:
        return 0.0
    explained_s = before[State.ON_CPU] * after[CPU_S] / before[CPU_S]
    return min(after[State.ON_CPU] - before[State.ON_CPU], after[State.ON_CPU] - explained_s)


def _within_periods(time: Seconds, throttled: float | None) -> Seconds:
    """Return a request's seconds, throttled for no more than the throttled part of its periods.

    The rest waited for a core.

    The container counts throttled seconds for each CPU, so they may be more than passed. throttled:
    that part; None where no sample has it.
    """
    if throttled is None:
        return time
    most_s = throttled * sum(time[place] for place in PLACES if place != GAP)
    excess_s = max(0.0, time[State.THROTTLED] - most_s)
    return {
        **time,
        THROTTLED_S: min(time[THROTTLED_S], most_s),
        State.THROTTLED: time[State.THROTTLED] - excess_s,
        State.CPU_WAIT: time[State.CPU_WAIT] + excess_s,
    }


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _name_cause(grown: _Grown, place: str, share: Estimate) -> Cause:
    """Return the cause with the object that holds more than half of its added time, if one does."""
    added: dict[str, float] = defaultdict(float)
    for time, sign in ((grown.before, -1), (grown.after, 1)):
        for wait in itertools.chain.from_iterable(cycle.activity.waits for cycle in time.cycles):
            if wait.state == place and wait.object:
                added[wait.object] += sign * wait.seconds / len(time.cycles)
    largest = max(added, key=lambda name: added[name], default="")
    named = largest if added.get(largest, 0.0) > MOST_OF_GROWTH * grown.growth[place] else ""
    return Cause(
        state=str(place),
        share=share,
        grown_s=grown.figure(lambda drawn: drawn[place]),
        before_s=grown.base[place],
        after_s=grown.base[place] + grown.growth[place],
        object=named,
        sentence=cause_sentence(place, named, share, sum(grown.growth.values())),
        remedy=remedy_of(place, named),
    )
