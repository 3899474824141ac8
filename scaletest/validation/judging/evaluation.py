"""The evaluation of a run's records as one value, the same for a stored run as for a new one."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from scaletest.causes.attribution import attribute_causes
from scaletest.causes.causes import NO_CAUSE_HEADLINES, Causes
from scaletest.causes.evidence import add_evidence
from scaletest.causes.gain import Gain, gain_without_cause
from scaletest.causes.interference import Interference, find_interferences
from scaletest.causes.node_use import resources_by_step
from scaletest.causes.resources import StepResources
from scaletest.causes.statement import short_cause
from scaletest.causes.steps import Rows
from scaletest.model import Measurement, NodeSample, Record, Verdict, VerdictKind
from scaletest.model.checks import cut_text
from scaletest.model.declared import VERSIONED, flat, named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.chance import Chance
from scaletest.stats.failures import FailureGroup, groups_of
from scaletest.stats.scaling import MeasuredThroughput
from scaletest.stats.thresholds import ThresholdResult
from scaletest.validation.judging.background import BackgroundStep, summarise_background
from scaletest.validation.judging.cost import Cost, cost_of_requests
from scaletest.validation.judging.doublings import failed_doubling
from scaletest.validation.judging.growth import Growth, fit_growth
from scaletest.validation.judging.judge import judge
from scaletest.validation.judging.measurement_grounds import find_disturbances
from scaletest.validation.judging.sharing import Sharing, compare_sharing
from scaletest.validation.judging.steps import Step, summarise
from scaletest.validation.judging.thresholds import evaluate_thresholds
from scaletest.validation.judging.warnings import find_warnings
from scaletest.validation.plan import Plan


@dataclass(frozen=True, slots=True)
class Evaluation(Written):
    """The result of a validation."""

    constants: ClassVar = {**VERSIONED, "kind": "validation"}

    plan: Annotated[Plan, "the plan of the run"]
    steps: Annotated[list[Step], "one step for every number of workers that was measured"]
    growth: Annotated[Growth, flat()]
    thresholds: Annotated[
        tuple[ThresholdResult, ...], "further conditions of a PASS, in the plan's order"
    ]
    failures: Annotated[
        list[FailureGroup], "failed requests that are alike, the most frequent first"
    ]
    background: Annotated[
        list[BackgroundStep], "the plan's other queues, in every measurement of a step"
    ]
    warnings: Annotated[list[str], "remarks that do not change the verdict"]
    verdict: Verdict
    interrupted: Annotated[str, "what ended the run early; empty when nothing did"]
    elapsed_s: Annotated[float, "wall seconds of the whole run"]
    sharing: Annotated[
        Sharing | None, "null unless the run compares numbers of workers per device"
    ] = None
    causes: Annotated[
        Causes | None, "what keeps throughput from growing; null where no requests were sampled"
    ] = None
    resources: Annotated[
        Sequence[StepResources], "use of the nodes while a step was measured; empty without samples"
    ] = ()
    disturbed: Annotated[
        Sequence[Interference],
        named_in_documents("interference"),
        "disturbances of the run from outside, in the order of time",
    ] = ()
    noticed: Annotated[Sequence[str], "the warnings from before the run"] = ()
    gain: Gain | None = None
    cost: Cost | None = None

    @property
    def limits(self) -> Causes | None:
        """What limits the run; None where nothing does, or the machine spoilt the run."""
        if self.causes is None or self.causes.headline in NO_CAUSE_HEADLINES:
            return None
        is_spoilt = bool(self.disturbed) or self.causes.of_others
        return None if is_spoilt and self.verdict.kind is VerdictKind.INVALID else self.causes

    @property
    def finding(self) -> Annotated[str, 'the result in a few words, e.g. "7.9x at 8"']:
        """The speed-up and what limits it, for lists; "" before there is one."""
        if self.sharing is not None:
            return f"best: {self.sharing.best} on each device" if self.sharing.best else ""
        if len(self.growth.scaling) < 2:
            return ""
        last = self.growth.scaling[-1]
        cause = short_cause(self.limits)
        if cause:
            return cut_text(f"{last.speedup.value:.1f}x: {cause}", 80)
        return f"{last.speedup.value:.1f}x at {last.workers}"


def evaluate(
    plan: Plan,
    measurements: Sequence[Measurement],
    records: Rows,
    chance: Chance,
    background: Sequence[Record] = (),
    *,
    interrupted: str = "",
    elapsed_s: float = 0.0,
    noticed: Sequence[str] = (),
    samples: Sequence[NodeSample] = (),
) -> Evaluation:
    """Judge what was measured so far.

    chance: seeded, for the bootstrap. background: records of other queues. noticed: warnings from
    before the run. samples: of the nodes, while it lasted.
    """
    # what the steps show
    steps = summarise(plan, measurements, records)
    growth = fit_growth(steps, chance)
    thresholds = evaluate_thresholds(plan, steps)
    sharing = compare_sharing(plan, steps)
    # what their nodes did, and where requests spent the time that more workers added
    resources = resources_by_step(steps, records, samples)
    throttled = {}
    for step_resources in resources:
        if step_resources.throttled_periods is not None:
            throttled[step_resources.workers] = step_resources.throttled_periods
    doubling = failed_doubling(plan, steps)
    ratios = [step.ratio for step in steps[1:]]
    as_wanted = (
        doubling is None
        and all(ratio is not None and ratio.kind is VerdictKind.PASS for ratio in ratios)
        and not any(threshold.kind is VerdictKind.FAIL for threshold in thresholds)
    )
    enough = [step for step in steps if step.throughput.enough]
    attributed = attribute_causes(
        enough, doubling, records, chance, as_wanted=as_wanted, throttled=throttled
    )
    # what the run would bring without its main cause
    gain = None
    if attributed and attributed.causes and not plan.compares:
        first = enough[0]
        last = next(step for step in enough if step.workers == attributed.after)
        since_first: Causes | None = attributed
        if attributed.before != first.workers:
            since_first = attribute_causes(
                enough, (first, last), records, chance, throttled=throttled
            )
        gain = gain_without_cause(
            attributed, since_first, _rate_of_both_passes(first), _rate_of_both_passes(last)
        )
    causes = add_evidence(attributed, resources)
    # what disturbed them from outside
    disturbed = find_interferences(steps, records, samples)
    disturbances = find_disturbances(steps, disturbed)
    return Evaluation(
        plan=plan,
        steps=steps,
        growth=growth,
        thresholds=thresholds,
        failures=groups_of(itertools.chain.from_iterable(records.values())),
        background=summarise_background(plan, measurements, background),
        warnings=[
            *noticed,
            *find_warnings(steps, disturbed, disturbances),
        ],
        verdict=judge(
            plan,
            steps,
            interrupted=interrupted,
            thresholds=thresholds,
            sharing=sharing,
            causes=causes,
            disturbances=disturbances,
        ),
        interrupted=interrupted,
        elapsed_s=elapsed_s,
        sharing=sharing,
        causes=causes,
        resources=resources,
        disturbed=disturbed,
        noticed=noticed,
        gain=gain,
        cost=cost_of_requests(plan, steps),
    )


def _rate_of_both_passes(step: Step) -> MeasuredThroughput:
    """Return the throughput of a step with an interval that reaches to both passes.

    A machine that changed between them changes again before another run.
    """
    rates = [part.throughput.per_s for part in step.judged_parts]
    if step.between or min(rates) <= 0:
        return step.rate
    apart = math.log(max(rates) / min(rates)) / 2.0
    return replace(step.rate, relative=max(step.rate.relative, apart))
