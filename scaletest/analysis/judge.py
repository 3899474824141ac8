"""From steps to one verdict. Pure: the same steps give the same verdict anywhere.

What refutes comes first, then what is missing, then PASS. A step that was not steady, or holds too little, can neither
pass nor fail a doubling.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.causes import Causes
from scaletest.analysis.device_sharing import Sharing
from scaletest.analysis.doubling import SLOW_REQUESTS, WAYS
from scaletest.analysis.interference import Interference, between
from scaletest.analysis.ratio import Ratio
from scaletest.analysis.steps import MeasuredStep, Step
from scaletest.analysis.stopping import Stop
from scaletest.analysis.tails import SLOW
from scaletest.analysis.thresholds import ThresholdResult, verdict_of
from scaletest.analysis.throughput import least_per_worker, least_total
from scaletest.model import Plan, Verdict, VerdictKind

WARN_OVERHEAD = 0.02
MOST_OVERHEAD = 0.10
# Below, the client left workers idle; above, completions are on record that nobody had in flight.
LITTLE = (0.90, 1.05)
# Of the ideal ratio. The first may be a cache or a measuring error, beyond the second the workers were not alike.
WARN_TOO_GOOD, MOST_TOO_GOOD = 1.02, 1.1
# Groups that did so differently are worth a line, when chance (three standard deviations of a count) does not do it.
WARN_UNFAIR = 1.25
# Slow requests that are rarer need no word.
NEGLIGIBLE = 0.001
# A machine that changes less changes no result that anybody would see.
LEAST_TREND_PER_S = 0.0001


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

    shared: which number of workers per device is best, where the run compares them. causes: what grew in the doubling
    that failed, where the records tell. disturbed: by what, where the nodes' samples tell.
    """
    if interrupted:
        return Verdict(VerdictKind.INVALID, f"interrupted: {interrupted}", "go on with it where it ended: --resume")
    return (
        _failures(plan, steps)
        or _damaged(steps)
        or _stalled(steps)
        or _tester(steps)
        or _failed_ratio(plan, steps, causes)
        or verdict_of(thresholds, VerdictKind.FAIL)
        or _missing(plan, steps, disturbed)
        or _undecided(plan, steps, shared, disturbed)
        or _unlike(steps)
        or verdict_of(thresholds, VerdictKind.INVALID)
        or Verdict(VerdictKind.PASS, _passed(plan, steps, thresholds, shared.sentence if shared else ""))
    )


def warnings(steps: Sequence[Step], disturbed: Sequence[Interference] = ()) -> list[str]:
    """What a reader should know although it decides nothing, one line each with the cure.

    disturbed: what disturbed the run, in the order of time.
    """
    lines = [f"{line}; compare run times by worker and device" for line in _too_good(steps, WARN_TOO_GOOD)]
    for step in steps:
        at = workers_text(step.workers)
        if WARN_OVERHEAD < step.overhead_share <= MOST_OVERHEAD:
            lines.append(f"{at}: the tester costs {step.overhead_share:.0%} of a request's time; use longer requests")
        lines += [line for one in step.samples for line in _unsteady(at, one, disturbed)]
        for group, found in step.fairness.items():
            most, least = found.shares[0], found.shares[-1]
            if found.ratio > WARN_UNFAIR and most.amount - least.amount > 3.0 * math.sqrt(most.amount):
                lines.append(
                    f"{at}: {group} {most.name} did {found.ratio:.1f} times as much as {least.name}; "
                    "compare their run times"
                )
    return lines + _disturbances(disturbed, "; ".join(lines))


def _disturbances(disturbed: Sequence[Interference], told: str) -> list[str]:
    """A line for each kind of disturbance on a node: the costliest, and how often there was another one.

    told: the warnings so far, which name some of them already.
    """
    by_kind: dict[tuple[str, str], list[Interference]] = defaultdict(list)
    for spell in disturbed:
        by_kind[spell.kind, spell.node].append(spell)
    lines = []
    for spells in by_kind.values():
        worst = max(spells, key=lambda spell: spell.weight)
        more = f", and {len(spells) - 1} more times" if len(spells) > 1 else ""
        lines += [] if worst.sentence in told else [worst.sentence + more.replace("1 more times", "once more")]
    return lines


def changed_evenly(trend_per_s: float) -> list[str]:
    """A line about a machine that changed along the run, which is no fault of any step. trend_per_s: as a logarithm."""
    if abs(trend_per_s) < LEAST_TREND_PER_S:
        return []
    way = "slowed down" if trend_per_s < 0 else "sped up"
    return [
        f"the machine {way} by {abs(math.expm1(trend_per_s)):.2%} a second all the time; the ratios are free of that, "
        "since steps were measured up and down"
    ]


def _too_good(steps: Sequence[Step], much: float) -> list[str]:
    """Ratios above what so many workers can add: the step before was held up, and that hides what workers share."""
    return [
        f"{before.workers} -> {step.workers} workers: ratio {step.ratio.value:.2f} is more than equal workers can "
        f"bring, so something slowed down {workers_text(before.workers)}"
        for before, step in itertools.pairwise(steps)
        if step.ratio and step.ratio.low > much * step.workers / before.workers
    ]


def _unsteady(at: str, sample: MeasuredStep, disturbed: Sequence[Interference]) -> list[str]:
    found, warm_s = sample.drift, sample.warmup_s
    seen = _disturbed([sample], disturbed)
    lines = []
    if found.shift:
        way = "fell" if found.shift < 0 else "rose"
        lines.append(
            f"{at}: throughput {way} by {abs(found.shift):.1%} after "
            f"{warm_s + found.shift_at_s:.0f} s; {seen or 'look for heat, clocks or neighbours'}"
        )
    if found.dips:
        at_s, depth = min(found.dips, key=lambda dip: dip[1])
        lines.append(
            f"{at}: throughput dipped by {-depth:.0%} after {warm_s + at_s:.0f} s; "
            f"{seen or 'look at what else ran then'}"
        )
    return lines


def _disturbed(samples: Sequence[MeasuredStep], disturbed: Sequence[Interference]) -> str:
    """What disturbed these measurings most, with its time; "" where nothing is known."""
    spells = [
        spell
        for sample in samples
        if (spell := between(disturbed, sample.began_s, sample.began_s + sample.measurement.measured_s))
    ]
    return max(spells, key=lambda spell: spell.cost).sentence if spells else ""


def _failures(plan: Plan, steps: Sequence[Step]) -> Verdict | None:
    failures = sum(step.failures for step in steps)
    if failures <= plan.tolerate_failures:
        return None
    suspect = sorted({name for step in steps for name in step.suspects})
    blame = f"; suspect: {', '.join(suspect)}, which failed all of theirs" if suspect else ""
    hits = sum(step.memory_hits for step in steps)
    blame += f"; {hits} met the limit of a device's memory" if hits else ""
    return Verdict(
        VerdictKind.FAIL,
        f"{failures} requests failed, {plan.tolerate_failures} are tolerated{blame}",
        "read the error in the report, or try the workload alone: scaletest worker --once" + _smaller(plan, steps),
    )


def _smaller(plan: Plan, steps: Sequence[Step]) -> str:
    """What else to do where memory ended with some numbers of workers per device, and with others did not."""
    good = [str(step.per_device) for step in steps if not step.failures]
    short = plan.compares and good and any(step.memory_hits for step in steps)
    return f"; or leave out what does not fit: --per-device {','.join(good)}" if short else ""


def _damaged(steps: Sequence[Step]) -> Verdict | None:
    """Whether the data are not those of whole measurings: a worker died, the run was ended, or a file was cut."""
    for step in steps:
        for one in step.samples:
            if one.measurement.stop == Stop.ENDED:
                reason = f"the measuring with {workers_text(step.workers)} was cut short"
                return Verdict(VerdictKind.INVALID, reason, "go on with it where it ended: --resume")
            if one.lost:
                at = workers_text(step.workers)
                reason = f"{-one.lost} records with {at} are too many"
                if one.lost > 0:
                    reason = f"{one.lost} of {one.measurement.requests} records with {at} are missing"
                return Verdict(VerdictKind.INVALID, reason, "measure what is damaged again: --resume")
    return None


def _stalled(steps: Sequence[Step]) -> Verdict | None:
    """Whether a worker stopped while it was measured: what the others did from then on is not what was asked for."""
    for step in steps:
        for one in () if step.sound else step.samples:
            if one.stall:
                return Verdict(
                    VerdictKind.INVALID,
                    f"with {workers_text(step.workers)}, {one.stall.worker} finished nothing in the last "
                    f"{one.stall.silent_s:.1f} s, much longer than any request took",
                    "look whether it, its device or its node stopped: the end of workers.log, or of the pod's log",
                )
    return None


def _tester(steps: Sequence[Step]) -> Verdict | None:
    """Whether the tester, not the workload, was measured. It comes first: it could cause any ratio."""
    for step in steps:
        at = workers_text(step.workers)
        if step.overhead_share > MOST_OVERHEAD:
            return Verdict(
                VerdictKind.INVALID,
                f"with {at} the tester itself cost {step.overhead_share:.0%} of a request's time",
                "use longer requests, or run the client and Redis on machines of their own",
            )
        for one in step.samples:
            if one.little is not None and not LITTLE[0] <= one.little <= LITTLE[1]:
                return Verdict(
                    VerdictKind.INVALID,
                    f"with {at} the records show {one.little:.2f} of the requests in flight "
                    "(Little's law): records are missing, or the client could not keep up",
                    "run the client on a machine of its own, or use longer requests",
                )
    return None


def failed_doubling(plan: Plan, steps: Sequence[Step]) -> tuple[Step, Step] | None:
    """The doubling that fails. The way up alone fails none: what the machine does cancels with the way down."""
    if plan.mirrored and not _complete(plan, steps):
        return None
    for before, step in itertools.pairwise(steps):
        if step.sound and before.sound and step.ratio and step.ratio.kind is VerdictKind.FAIL:
            return before, step
    return None


def _failed_ratio(plan: Plan, steps: Sequence[Step], causes: Causes | None) -> Verdict | None:
    """What a doubling that fails makes of the run."""
    failed = failed_doubling(plan, steps)
    if failed is None or failed[1].ratio is None:
        return None
    (before, step), ratio = failed, failed[1].ratio
    reason = (
        f"{before.workers} -> {step.workers} workers: ratio {ratio.value:.2f} [{ratio.low:.2f}, {ratio.most:.2f}] "
        f"is below the {ratio.wanted:.2f} wanted"
    )
    remedy = (
        f"something that the workers share is used up between {before.workers} and {step.workers} workers: "
        "compare the run times of the two steps"
    )
    if causes and causes.sentence:
        return Verdict(VerdictKind.FAIL, f"{reason}. {causes.sentence}", causes.remedy or remedy)
    return Verdict(VerdictKind.FAIL, reason, remedy)


def _missing(plan: Plan, steps: Sequence[Step], disturbed: Sequence[Interference]) -> Verdict | None:
    longer = "give a longer --max-step" if not plan.step_s else f"give a longer --step-time than {plan.step_s:g} s"
    for step in steps:
        if step.throughput.completions == 0:
            reason = f"no request was completed with {workers_text(step.workers)}"
            return Verdict(VerdictKind.INVALID, reason, f"{longer}, or a true --seconds")
        if not step.throughput.enough:
            return Verdict(VerdictKind.INVALID, _too_few(plan, step), f"{longer}, or a true --seconds")
        for one in () if step.sound else step.samples:
            if one.drift.unsteady:
                reason = (
                    f"with {workers_text(step.workers)} throughput changed by {one.drift.shift:+.1%} while measured"
                )
                return Verdict(VerdictKind.INVALID, reason, _steadier(one, disturbed))
            if not one.settled:
                reason = f"with {workers_text(step.workers)} throughput had not settled by the end of the step"
                return Verdict(VerdictKind.INVALID, reason, f"{longer}, or say how long warming up takes with --warmup")
    if not _complete(plan, steps):
        return Verdict(VerdictKind.INVALID, "not every step was measured", "run it again to the end")
    return None


def _too_few(plan: Plan, step: Step) -> str:
    """How many requests the shortest of a step's measurings has, and how many each needs."""
    counts = [sample.throughput.completions for sample in step.samples if not sample.throughput.enough]
    fewest = min(counts, default=step.throughput.completions)
    once = f"{fewest} in one of {len(step.samples)} measurings" if len(step.samples) > 1 else f"{fewest}"
    return (
        f"too few requests completed with {workers_text(step.workers)}: {once} "
        f"(needs {least_total(plan.parts)}, and {least_per_worker(plan.parts)} of every worker)"
    )


def _steadier(sample: MeasuredStep, disturbed: Sequence[Interference]) -> str:
    seen = _disturbed([sample], disturbed)
    if seen:
        return f"{seen}: end that, and run it again"
    if sample.drift.shift > 0:
        return f"it may have been warming up: try --warmup {math.ceil(sample.warmup_s + sample.drift.shift_at_s)}"
    at_s = sample.warmup_s + sample.drift.shift_at_s
    return f"find what changed after {at_s:.0f} s (heat, clocks, neighbours), and run it again"


def _undecided(
    plan: Plan, steps: Sequence[Step], shared: Sharing | None, disturbed: Sequence[Interference]
) -> Verdict | None:
    if shared and shared.vague:
        return Verdict(VerdictKind.INVALID, shared.vague, _sharper(plan, steps))
    for before, step in itertools.pairwise(steps):
        ratio = step.ratio
        if ratio and ratio.kind is VerdictKind.INVALID:
            at = f"{before.workers} -> {step.workers} workers"
            if ratio.widened_by == WAYS:
                return _changed(at, ratio, _disturbed([*before.samples, *step.samples], disturbed))
            reason = (
                f"{at}: ratio {ratio.value:.2f} [{ratio.low:.2f}, {ratio.most:.2f}] "
                f"neither reaches nor misses {ratio.wanted:.2f}"
            )
            if ratio.widened_by == SLOW_REQUESTS:
                reason += f"; {_slow(before, step)} is too few to tell whether more workers make them more frequent"
            return Verdict(VerdictKind.INVALID, reason, _sharper(plan, (before, step)))
    return None


def _changed(at: str, ratio: Ratio, seen: str) -> Verdict:
    """The machine changed during the run, and not evenly, so the two ways do not cancel it. seen: by what, or ""."""
    cure = f"{seen}: end that" if seen else "find what changed (clock rates, heat, other load)"
    return Verdict(
        VerdictKind.INVALID,
        f"{at}: ratio {ratio.up:.2f} on the way up and {ratio.down:.2f} on the way down, so the machine changed "
        f"between them, and {ratio.wanted:.2f} is neither reached nor missed",
        f"{cure}, and run it again",
    )


def _slow(before: Step, step: Step) -> str:
    """How many requests of two steps were slow."""
    rows = [(one.tail.slow, one.tail.count, workers_text(one.workers)) for one in (before, step)]
    counts = " and ".join(f"{slow} of {count} with {workers}" for slow, count, workers in rows)
    return f"{counts} took more than {SLOW:g} times as long as usual, which"


def _unlike(steps: Sequence[Step]) -> Verdict | None:
    """A base that was too slow makes every ratio good, whatever the workers share."""
    found = _too_good(steps, MOST_TOO_GOOD)
    remedy = "compare run times by worker and device, and measure with --repeats 3"
    return Verdict(VerdictKind.INVALID, found[0], remedy) if found else None


def _sharper(plan: Plan, steps: Sequence[Step]) -> str:
    if plan.repeats > 1:
        return "measure with more --repeats"
    if plan.step_s:
        return f"measure longer than --step-time {plan.step_s:g}"
    if _out_of_time(plan, steps):
        return f"allow longer steps: --max-step {2 * plan.longest_s:g}"
    return f"ask for --precision {plan.precision / 2:g}"


def _out_of_time(plan: Plan, steps: Sequence[Step]) -> bool:
    """Whether these steps ended because time was up; a mirrored run would have measured them again otherwise."""
    if any(sample.measurement.stop == Stop.LONGEST for step in steps for sample in step.samples):
        return True
    slow = any(step.ratio and step.ratio.widened_by == SLOW_REQUESTS for step in steps[1:])
    return plan.mirrored and (slow or any(step.throughput.relative > plan.precision for step in steps))


def _complete(plan: Plan, steps: Sequence[Step]) -> bool:
    """Whether every step was measured as often as the plan wants, and every further way up has its way down."""
    measured = {one.measurement.key for step in steps for one in step.samples}
    repeats = range(plan.parts if plan.mirrored else plan.repeats)
    wanted = {(workers, repeat) for workers in plan.steps for repeat in repeats}
    if plan.mirrored:
        wanted |= {(workers, repeat + 1) for workers, repeat in measured if repeat % 2 == 0}
    return wanted <= measured


def _passed(plan: Plan, steps: Sequence[Step], thresholds: Sequence[ThresholdResult], best: str) -> str:
    ratios = [(before, step, step.ratio) for before, step in itertools.pairwise(steps) if step.ratio]
    held = f", and {len(thresholds)} of {len(thresholds)} thresholds hold" if thresholds else ""
    if best:
        return best + held
    if not ratios:
        failures = sum(step.failures for step in steps)
        few = f"{failures} failed requests, which are tolerated" if failures else "no request failed"
        return f"one step, no doubling to judge, {few}" + held
    before, step, worst = min(ratios, key=lambda row: row[2].low / row[2].wanted)
    least = f"the least is {worst.value:.2f}"
    if step.workers != 2 * before.workers:  # the last step may be no doubling, and then less is wanted of it
        least += f" where {worst.wanted:.2f} is wanted, from {before.workers} to {step.workers}"
    return f"every doubling up to {plan.limit} workers reaches {plan.scale:.2f}: {least}{_unseen(steps)}" + held


def _unseen(steps: Sequence[Step]) -> str:
    """Which slow requests the run cannot exclude: those that are too rare for the step with the fewest requests."""
    fewest = min(steps, key=lambda step: step.tail.count)
    share = fewest.tail.unseen_share()
    if fewest.tail.slow or share <= NEGLIGIBLE:
        return ""
    rarest = max(2, round(1.0 / share))
    at = workers_text(fewest.workers)
    return f" ({fewest.tail.count} requests with {at} cannot show slow ones rarer than 1 in {rarest})"
