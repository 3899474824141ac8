"""The verdict of a validation and its warnings. Pure: the same steps give the same verdict.

Warnings decide nothing: one line each, with what to do.

A step that was not steady, or has too few requests, can neither pass nor fail a doubling. Too many
failed requests refute a run although a worker seems to have stopped, or the client to be late: a
worker whose requests fail completes nothing, and they end sooner than the client replaces them.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

from scaletest.causes.causes import Causes
from scaletest.causes.interference import Interference, between
from scaletest.model import Verdict, VerdictKind
from scaletest.render.numbers import plural
from scaletest.stats.thresholds import ThresholdResult, ground_of
from scaletest.stats.verdict_order import Ground, Rank, decide
from scaletest.validation.judging.doubling import SLOW_REQUESTS, WAYS, Ratio
from scaletest.validation.judging.growth import Sharing
from scaletest.validation.judging.slow_requests import SLOW
from scaletest.validation.judging.steps import MeasuredStep, Step
from scaletest.validation.judging.stopping import Stop
from scaletest.validation.judging.throughput import MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER
from scaletest.validation.plan import Plan

# Parts of a request's time that the tester may cost: above them a warning, or no verdict.
WARN_OVERHEAD = 0.02
MOST_OVERHEAD = 0.10
# Multiples of the ideal ratio. Above the first it may be a cache or an error of measurement, above
# the second the workers were not alike.
WARN_TOO_GOOD, MOST_TOO_GOOD = 1.02, 1.1
# A group that did this many times as much as another is worth a warning, if the difference exceeds
# chance (three standard deviations of a count).
WARN_UNFAIR = 1.25
# What may slow a machine down for a while, where no samples of its resources say more.
CHANGES = "thermal throttling, frequency scaling, other programs on the machine"
POSSIBLE_CAUSES = f"possible causes: {CHANGES}"
# A machine whose speed changes by less than this part a second changes no visible result.
LEAST_TREND_PER_S = 0.0001


def warnings(steps: Sequence[Step], disturbed: Sequence[Interference] = ()) -> list[str]:
    """Warnings that decide nothing, one line each, with what to do.

    disturbed: what disturbed the run, in the order of time.
    """
    lines = [
        f"{line}; compare run times by worker and device" for line in too_good(steps, WARN_TOO_GOOD)
    ]
    for step in steps:
        at = plural(step.workers, "worker")
        if WARN_OVERHEAD < step.overhead_share <= MOST_OVERHEAD:
            lines.append(
                f"{at}: the tester costs {step.overhead_share:.0%} of a request's time; use longer"
                " requests"
            )
        for measured in step.samples:
            lines += _unsteady(at, measured, disturbed)
        starved = step.samples[0].starved
        if starved is not None:
            lines.append(
                f"{at}: {starved.worker} finished its first request {starved.waited_s:.1f} s after"
                " the others had begun to finish theirs: what the workers share lets few of them in"
                " at a time, so their completions are counted together"
            )
        lines += _unfair(at, step)
    return lines + _disturbances(disturbed, "; ".join(lines))


def _unfair(at: str, step: Step) -> list[str]:
    """Warnings about workers, pods, nodes or devices that did very unequal shares of a step."""
    lines = []
    for group, fairness in step.fairness.items():
        most, least = fairness.shares[0], fairness.shares[-1]
        beyond_chance = most.amount - least.amount > 3.0 * math.sqrt(most.amount)
        if fairness.ratio > WARN_UNFAIR and beyond_chance:
            lines.append(
                f"{at}: {group} {most.name} did {fairness.ratio:.1f} times as much as {least.name};"
                " compare their run times"
            )
    return lines


def _disturbances(disturbed: Sequence[Interference], warned: str) -> list[str]:
    """A line for each kind of disturbance on a node: the costliest, and how many more there were.

    warned: the warnings so far, which name some of them already.
    """
    by_kind: dict[tuple[str, str], list[Interference]] = defaultdict(list)
    for spell in disturbed:
        by_kind[spell.kind, spell.node].append(spell)
    lines = []
    for spells in by_kind.values():
        worst = max(spells, key=lambda spell: spell.weight)
        if worst.sentence in warned:
            continue
        more = {1: "", 2: ", and once more"}.get(len(spells), f", and {len(spells) - 1} more times")
        lines.append(worst.sentence + more)
    return lines


def changed_evenly(trend_per_s: float) -> list[str]:
    """A warning about a machine whose speed changed steadily, which does not distort the ratios.

    trend_per_s: the logarithm of the relative change in one second.
    """
    if abs(trend_per_s) < LEAST_TREND_PER_S:
        return []
    way = "slowed down" if trend_per_s < 0 else "sped up"
    return [
        f"the machine {way} steadily by {abs(math.expm1(trend_per_s)):.2%} a second; the ratios are"
        " not affected, since steps were measured on the way up and on the way down"
    ]


def too_good(steps: Sequence[Step], limit: float) -> list[str]:
    """Lines about ratios of more than `limit` times the ideal.

    Then something slowed the step before down, which hides what the workers share.
    """
    return [
        f"{before.workers} -> {step.workers} workers: ratio {step.ratio.value:.2f} is more than the"
        " added workers can explain, so something slowed down the step with"
        f" {plural(before.workers, 'worker')}"
        for before, step in itertools.pairwise(steps)
        if step.ratio and step.ratio.low > limit * step.workers / before.workers
    ]


def _unsteady(at: str, sample: MeasuredStep, disturbed: Sequence[Interference]) -> list[str]:
    """Warnings about a lasting change or short dips of the throughput within one measured step."""
    drift, warm_s = sample.drift, sample.warmup_s
    disturbance = disturbance_of([sample], disturbed)
    lines = []
    if drift.shift:
        way = "fell" if drift.shift < 0 else "rose"
        lines.append(
            f"{at}: throughput {way} by {abs(drift.shift):.1%} after "
            f"{warm_s + drift.shift_at_s:.0f} s; {disturbance or POSSIBLE_CAUSES}"
        )
    if drift.dips:
        at_s, depth = min(drift.dips, key=lambda dip: dip[1])
        lines.append(
            f"{at}: throughput dipped by {-depth:.0%} after {warm_s + at_s:.0f} s; "
            f"{disturbance or 'check what else ran at that time'}"
        )
    return lines


def disturbance_of(samples: Sequence[MeasuredStep], disturbed: Sequence[Interference]) -> str:
    """What disturbed these measurements most, with its time; "" where nothing is known."""
    spells = [
        between(disturbed, sample.began_s, sample.began_s + sample.measurement.measured_s)
        for sample in samples
    ]
    worst = max(filter(None, spells), key=lambda spell: spell.cost, default=None)
    return worst.sentence if worst else ""


RESUME = "continue it where it ended: <resume>"
# Requests in flight by the records over those that the client kept in flight. Below this range the
# client left workers idle; above it there are records of requests that were never in flight.
LITTLE = (0.90, 1.05)
OTHERS = "free the cores that other programs or the tester use, and run it again"
UNLIKE_REMEDY = "compare run times by worker and device, and measure with <repeats> 3"
# A smaller share of slow requests needs no mention.
NEGLIGIBLE = 0.001


def judge(
    plan: Plan,
    steps: Sequence[Step],
    interrupted: str = "",
    thresholds: Sequence[ThresholdResult] = (),
    shared: Sharing | None = None,
    causes: Causes | None = None,
    disturbed: Sequence[Interference] = (),
) -> Verdict:
    """The verdict of a run.

    shared: the best number of workers per device, where the run compares them. causes: where the
    requests of the doubling that failed spent more time, if the records have it. disturbed: what
    disturbed the run, if there are samples of the nodes.
    """
    failures = _failures(plan, steps)
    doubt = Rank.OPEN if failures else Rank.NOT_THE_SUBJECT
    stopped = Ground(Rank.OPEN, f"interrupted: {interrupted}", RESUME) if interrupted else None
    best = shared.sentence if shared else ""
    # a base that was too slow makes every ratio good, whatever workers share
    unlike = too_good(steps, MOST_TOO_GOOD)
    return decide(
        [
            _lost(steps),
            _stalled(steps, doubt),
            _tester(steps, doubt),
            failures,
            _failed_ratio(plan, steps, causes, doubt),
            ground_of(thresholds, Rank.REFUTED),
            stopped,
            _cut_short(steps),
            _missing(plan, steps, disturbed),
            _undecided(plan, steps, shared, disturbed),
            Ground(Rank.OPEN, unlike[0], UNLIKE_REMEDY) if unlike else None,
            ground_of(thresholds, Rank.OPEN),
            Ground(Rank.MET, _passed(plan, steps, thresholds, best)),
        ]
    )


def _failures(plan: Plan, steps: Sequence[Step]) -> Ground | None:
    """Refuted where more requests failed than the plan tolerates."""
    failures = sum(step.failures for step in steps)
    if failures <= plan.tolerate_failures:
        return None
    suspects = set[str]().union(*(step.suspects for step in steps))
    blame = ""
    if suspects:
        blame = f"; suspect: {', '.join(sorted(suspects))}, which failed all of their requests"
    memory_hits = sum(step.memory_hits for step in steps)
    if memory_hits:
        blame += f"; {memory_hits} reached the limit of a device's memory"
    return Ground(
        Rank.REFUTED,
        f"{failures} requests failed, {plan.tolerate_failures} are tolerated{blame}",
        "read the error in the report, or try the workload alone: scaletest worker --once"
        + _smaller(plan, steps),
    )


def _smaller(plan: Plan, steps: Sequence[Step]) -> str:
    """A further remedy where device memory was too small for some numbers of workers per device."""
    good = [str(step.per_device) for step in steps if not step.failures]
    if plan.compares and good and any(step.memory_hits for step in steps):
        return f"; or leave out what does not fit: <per_device> {','.join(good)}"
    return ""


def _lost(steps: Sequence[Step]) -> Ground | None:
    """Not the subject where records are missing, or too many: a file was cut."""
    for step in steps:
        at = plural(step.workers, "worker")
        for measured in step.samples:
            if measured.lost:
                reason = f"{-measured.lost} records with {at} are too many"
                if measured.lost > 0:
                    count = measured.measurement.requests
                    reason = f"{measured.lost} of {count} records with {at} are missing"
                return Ground(
                    Rank.NOT_THE_SUBJECT, reason, "measure what is damaged again: <resume>"
                )
    return None


def _cut_short(steps: Sequence[Step]) -> Ground | None:
    """Open where a measurement is incomplete: a worker died, or the run was ended."""
    for step in steps:
        if any(measured.measurement.stop == Stop.ENDED for measured in step.samples):
            return Ground(
                Rank.OPEN,
                f"the measurement with {plural(step.workers, 'worker')} was cut short",
                RESUME,
            )
    return None


def _stalled(steps: Sequence[Step], doubt: Rank) -> Ground | None:
    """Doubt where a worker stopped during a step, since fewer workers than planned did the rest."""
    for step in steps:
        for measured in _doubtful(step):
            if measured.stall:
                return Ground(
                    doubt,
                    f"with {plural(step.workers, 'worker')}, {measured.stall.worker} finished"
                    f" nothing in the last {measured.stall.silent_s:.1f} s, much longer than any"
                    " request took",
                    "check whether it, its device or its node stopped: see the end of workers.log,"
                    " or of the pod's log",
                )
    return None


def _tester(steps: Sequence[Step], doubt: Rank) -> Ground | None:
    """Not the subject where the tester was measured instead of the workload; doubt where the client
    may have been late.
    """
    for step in steps:
        at = plural(step.workers, "worker")
        if step.overhead_share > MOST_OVERHEAD:
            return Ground(
                Rank.NOT_THE_SUBJECT,
                f"with {at} the tester itself cost {step.overhead_share:.0%} of a request's time",
                "use longer requests, or run the client and Redis on machines of their own",
            )
        for measured in step.samples:
            if measured.little is not None and not LITTLE[0] <= measured.little <= LITTLE[1]:
                return Ground(
                    doubt,
                    f"with {at} the records show {measured.little:.2f} of the requests in flight "
                    "(Little's law): records are missing, or the client could not keep up",
                    "run the client on a machine of its own, or use longer requests",
                )
    return None


def failed_doubling(plan: Plan, steps: Sequence[Step]) -> tuple[Step, Step] | None:
    """The two steps of the doubling that fails; None where none does.

    The way up alone fails none: a change of the machine cancels only with the way down.
    """
    if not _complete(plan, steps):
        return None
    for before, step in itertools.pairwise(steps):
        if step.sound and before.sound and step.ratio and step.ratio.kind is VerdictKind.FAIL:
            return before, step
    return None


def _failed_ratio(
    plan: Plan, steps: Sequence[Step], causes: Causes | None, doubt: Rank
) -> Ground | None:
    """Refuted where a doubling fails, with its cause; doubt where others took the cores."""
    failed = failed_doubling(plan, steps)
    if failed is None or failed[1].ratio is None:
        return None
    (before, step), ratio = failed, failed[1].ratio
    reason = (
        f"{before.workers} -> {step.workers} workers: ratio {ratio.value:.2f} [{ratio.low:.2f},"
        f" {ratio.most:.2f}] is below the {ratio.wanted:.2f} wanted"
    )
    remedy = (
        f"with {step.workers} workers requests wait for something that the workers share: compare"
        f" their run times with those of {plural(before.workers, 'worker')}"
    )
    if causes and causes.sentence:
        if causes.of_others:
            return Ground(
                doubt, f"{reason}, but something else took the cores. {causes.sentence}", OTHERS
            )
        return Ground(Rank.REFUTED, f"{reason}. {causes.sentence}", causes.remedy or remedy)
    return Ground(Rank.REFUTED, reason, remedy)


def _missing(plan: Plan, steps: Sequence[Step], disturbed: Sequence[Interference]) -> Ground | None:
    """Open where a step is missing, has too few requests, or was not steady."""
    longer = "give a longer <max_step>"
    if plan.step_s:
        longer = f"give a longer <step_time> than {plan.step_s:g} s"
    for step in steps:
        if step.throughput.completions == 0:
            reason = f"no request was completed with {plural(step.workers, 'worker')}"
            return Ground(Rank.OPEN, reason, f"{longer}, or correct <seconds>")
        if not step.throughput.enough:
            return Ground(Rank.OPEN, _too_few(step), f"{longer}, or correct <seconds>")
        at = f"with {plural(step.workers, 'worker')}"
        for measured in _doubtful(step):
            if measured.drift.unsteady:
                reason = f"{at} throughput changed by {measured.drift.shift:+.1%} while measured"
                return Ground(Rank.OPEN, reason, _steadier(measured, disturbed))
            if not measured.settled:
                reason = f"{at} throughput had not settled by the end of the step"
                return Ground(
                    Rank.OPEN, reason, f"{longer}, or say how long warming up takes with <warmup>"
                )
    if not _complete(plan, steps):
        return Ground(Rank.OPEN, "not every step was measured", "run it again to the end")
    return None


def _doubtful(step: Step) -> Sequence[MeasuredStep]:
    """The measurements of a step that may not be judged; none of a sound one."""
    return () if step.sound else step.samples


def _too_few(step: Step) -> str:
    """How many requests the shortest measurement of a step has, and how many each needs."""
    fewest = min(
        [sample.throughput.completions for sample in step.samples if not sample.throughput.enough],
        default=step.throughput.completions,
    )
    once = f"{fewest}"
    if len(step.samples) > 1:
        once = f"{fewest} in one of {len(step.samples)} measurements"
    return (
        f"too few requests completed with {plural(step.workers, 'worker')}: {once} "
        f"(needs {MIN_COMPLETIONS}, and {MIN_COMPLETIONS_PER_WORKER} of every worker)"
    )


def _steadier(sample: MeasuredStep, disturbed: Sequence[Interference]) -> str:
    """The remedy for a throughput that changed within one measured step."""
    disturbance = disturbance_of([sample], disturbed)
    if disturbance:
        return f"{disturbance}: end that, and run it again"
    at_s = sample.warmup_s + sample.drift.shift_at_s
    if sample.drift.shift > 0:
        return f"it may have been warming up: try <warmup> {math.ceil(at_s)}"
    return f"find what changed after {at_s:.0f} s ({CHANGES}), and run it again"


def _undecided(
    plan: Plan, steps: Sequence[Step], shared: Sharing | None, disturbed: Sequence[Interference]
) -> Ground | None:
    """Open where an interval is too wide to decide a doubling, or the best number per device."""
    if shared and shared.vague:
        return Ground(Rank.OPEN, shared.vague, _sharper(plan, steps))
    for before, step in itertools.pairwise(steps):
        ratio = step.ratio
        if ratio and ratio.kind is VerdictKind.INVALID:
            at = f"{before.workers} -> {step.workers} workers"
            if ratio.widened_by == WAYS:
                disturbance = disturbance_of([*before.samples, *step.samples], disturbed)
                return _changed(at, ratio, bool(before.tail.slow or step.tail.slow), disturbance)
            reason = (
                f"{at}: ratio {ratio.value:.2f} [{ratio.low:.2f}, {ratio.most:.2f}] "
                f"neither reaches nor misses {ratio.wanted:.2f}"
            )
            if ratio.widened_by == SLOW_REQUESTS:
                reason += (
                    f"; {_slow(before, step)} is too few to know whether more workers make them"
                    " more frequent"
                )
            return Ground(Rank.OPEN, reason, _sharper(plan, (before, step)))
    return None


def _changed(at: str, ratio: Ratio, some_slow: bool, disturbance: str) -> Ground:
    """Open since the machine changed during the run, not steadily, so the two ways do not cancel
    it.

    some_slow: whether some requests were slow, which the ratios of the two ways leave out.
    disturbance: what disturbed the two steps, "" where that is unknown.
    """
    usual = ", slow requests left out" if some_slow else ""
    cure = f"{disturbance}: end that" if disturbance else f"find what changed ({CHANGES})"
    return Ground(
        Rank.OPEN,
        f"{at}: ratio {ratio.up:.2f} on the way up and {ratio.down:.2f} on the way down{usual}, so"
        f" the machine changed between them, and {ratio.wanted:.2f} is neither reached nor missed",
        f"{cure}, and run it again",
    )


def _slow(before: Step, step: Step) -> str:
    """How many requests of two steps were slow."""
    counts = [
        f"{measured.tail.slow} of {measured.tail.count} with {plural(measured.workers, 'worker')}"
        for measured in (before, step)
    ]
    return f"{' and '.join(counts)} took more than {SLOW:g} times as long as usual, which"


def _sharper(plan: Plan, steps: Sequence[Step]) -> str:
    if plan.repeats > 1:
        return "measure with more <repeats>"
    if plan.step_s:
        return f"measure longer than <step_time> {plan.step_s:g}"
    if _out_of_time(plan, steps):
        return f"allow longer steps: <max_step> {2 * plan.longest_s:g}"
    return f"ask for <precision> {plan.precision / 2:g}"


def _out_of_time(plan: Plan, steps: Sequence[Step]) -> bool:
    """Whether these steps ended since their time was up; else they had been measured again."""
    samples = itertools.chain.from_iterable(step.samples for step in steps)
    if any(sample.measurement.stop == Stop.LONGEST for sample in samples):
        return True
    return any(step.ratio and step.ratio.widened_by == SLOW_REQUESTS for step in steps[1:]) or any(
        step.throughput.relative > plan.precision for step in steps
    )


def _complete(plan: Plan, steps: Sequence[Step]) -> bool:
    """Whether all steps were measured as often as planned, and every way up has its way down."""
    samples = itertools.chain.from_iterable(step.samples for step in steps)
    measured = {sample.measurement.key for sample in samples}
    wanted = set(itertools.product(plan.steps, range(2 * plan.repeats)))
    wanted |= {(workers, repeat + 1) for workers, repeat in measured if repeat % 2 == 0}
    return wanted <= measured


def _passed(
    plan: Plan, steps: Sequence[Step], thresholds: Sequence[ThresholdResult], best: str
) -> str:
    """The reason of a PASS. best: the sentence about the best number of workers per device, or
    "".
    """
    ratios = [
        (before, step, step.ratio) for before, step in itertools.pairwise(steps) if step.ratio
    ]
    thresholds_met = ""
    if thresholds:
        thresholds_met = f", and {len(thresholds)} of {len(thresholds)} thresholds hold"
    if best:
        return best + thresholds_met
    if not ratios:
        failures = sum(step.failures for step in steps)
        few = "no request failed"
        if failures:
            few = f"{failures} failed requests, which are tolerated"
        return f"one step, no doubling to judge, {few}" + thresholds_met
    before, step, worst = min(ratios, key=lambda doubling: doubling[2].low / doubling[2].wanted)
    least = f"the least is {worst.value:.2f}"
    # the last step may be no doubling, and then less is wanted of it
    if step.workers != 2 * before.workers:
        least += f" where {worst.wanted:.2f} is wanted, from {before.workers} to {step.workers}"
    reached = f"every doubling up to {plan.limit} workers reaches {plan.scale:.2f}"
    return f"{reached}: {least}{_unseen(steps)}{thresholds_met}"


def _unseen(steps: Sequence[Step]) -> str:
    """Which slow requests are too rare for the step with the fewest requests to show; "" for
    none.
    """
    fewest = min(steps, key=lambda step: step.tail.count)
    share = fewest.tail.unseen_share()
    if fewest.tail.slow or share <= NEGLIGIBLE:
        return ""
    rarest = max(2, round(1.0 / share))
    at = plural(fewest.workers, "worker")
    return (
        f" ({fewest.tail.count} requests with {at} cannot show slow ones rarer than 1 in {rarest})"
    )
