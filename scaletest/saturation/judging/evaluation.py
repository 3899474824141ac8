"""The result of a saturation run: its point, operating point, verdict and warnings.

The operating point is measured after the search and decides nothing: its disturbances are warnings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.model import Verdict
from scaletest.model.attempt import Attempt
from scaletest.model.declared import INNER, VERSIONED, named_in_documents
from scaletest.model.writing import Written
from scaletest.render.numbers import format_significant, plural
from scaletest.saturation.judging.point import proven_rate, saturation_point
from scaletest.saturation.judging.step import LEAST_REQUESTS, AssessedStep, assess_step, level_text
from scaletest.saturation.judging.step_sequence import SaturationSequence, replay, search_steps
from scaletest.saturation.judging.tester import machine_full
from scaletest.saturation.judging.verdict import judge_sequence, lateness_that_matters
from scaletest.saturation.plan import KIND, Phase, SaturationPlan, SaturationStep
from scaletest.stats.estimate import Estimate

# The backlog of a level that held may have grown by this many times the bracket's width; 5 s can
# show 2 % at best.
WIDE, NARROWEST = 2.0, 0.02


@dataclass(frozen=True, slots=True)
class SaturationResult(Written):
    """The result of a run."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}

    plan: SaturationPlan
    verdict: Verdict
    point: Annotated[
        Estimate | None,
        named_in_documents("saturation_per_s"),
        "requests per second, interval from the bracket and the proof of its ends.",
    ]
    parallel: Annotated[
        int | None,
        named_in_documents("saturation_in_flight"),
        "smallest number in flight that reaches it (closed).",
    ]
    warm: Annotated[AssessedStep | None, INNER]
    steps: tuple[AssessedStep, ...]
    operating: Annotated[
        AssessedStep | None,
        named_in_documents("operating_point"),
        "the step at 70 % of it, null when not measured, or when the load generator was late",
    ]
    searched: Annotated[
        int, named_in_documents("steps_before_confirmation"), "steps before it was confirmed."
    ]
    warnings: tuple[str, ...]
    elapsed_s: float
    interrupted: str
    lost: Annotated[str, 'how a load agent was lost, "" when none was.'] = ""

    @property
    def finding(self) -> Annotated[str, 'the result in a few words, e.g. "80.8/s"']:
        """The saturation point for lists; "" when there is none."""
        return f"{format_significant(self.point.value)}/s" if self.point else ""


def evaluate(
    plan: SaturationPlan,
    steps: Sequence[SaturationStep],
    samples: Mapping[int, Sequence[Attempt]],
    *,
    interrupted: str = "",
    lost: str = "",
    elapsed_s: float = 0.0,
) -> SaturationResult:
    """Judge a run by its steps and their samples."""
    assessed = [assess_step(plan, step, samples.get(step.number, ())) for step in steps]
    return conclude(replay(plan, assessed), interrupted=interrupted, lost=lost, elapsed_s=elapsed_s)


def conclude(
    sequence: SaturationSequence, *, interrupted: str = "", lost: str = "", elapsed_s: float = 0.0
) -> SaturationResult:
    """Return the result of a sequence as far as it was measured."""
    plan, bracket = sequence.plan, sequence.bracket
    point, operating = saturation_point(sequence), sequence.operating
    if lateness_that_matters(sequence, point):
        # it would be a figure of the tester
        point, operating = None, None
    low = bracket.low if bracket and not plan.open else None
    return SaturationResult(
        plan=plan,
        verdict=judge_sequence(sequence, point, interrupted, lost),
        point=point,
        parallel=int(low) if low else None,
        warm=sequence.warm,
        steps=tuple(sequence.steps),
        operating=None if operating and operating.tester else operating,
        searched=bracket.steps if bracket else len(sequence.steps),
        warnings=tuple(warnings_of(sequence, is_known=point is not None)),
        elapsed_s=elapsed_s,
        interrupted=interrupted,
        lost=lost,
    )


def warnings_of(sequence: SaturationSequence, *, is_known: bool) -> list[str]:
    """Return the warnings of a run. is_known: whether there is a saturation point."""
    steps, operating = search_steps(sequence), sequence.operating
    lines = [*(_precision_warnings(sequence) if is_known else ()), *_lateness_warnings(sequence)]
    if operating and operating.tester:
        lines.append(f"the latency at {operating.step.level:.4g}/s is unknown: {operating.tester}")
    # other programs took the cores of a service on the tester's machine
    for step in steps:
        around = step.step.around
        full = machine_full(around) if step.saturated and around and around.service else ""
        if full and around and around.others > around.service:
            lines.append(f"{full} while the service was saturated: on its own it may sustain more")
            break
    few = sum(step.few for step in steps)
    if few:
        count = plural(few, "step")
        lines.append(
            f"{count} had fewer than {LEAST_REQUESTS} requests: raise <step_time>, or <start>"
        )
    if operating and operating.saturated and not operating.tester:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
    # the first level that held although Kubernetes warned about its pods
    for step in steps:
        if step.step.pods and step.step.pods.events and not step.saturated:
            lines.append(
                f"{level_text(step.step)} held, but pods were in trouble:"
                f" {step.step.pods.events[0]}; give them more CPU, memory or concurrency"
            )
            break
    if sequence.warm and sequence.warm.errors:
        lines.append(f"some requests of the probe failed: {', '.join(sequence.warm.errors)}")
    return lines


def _precision_warnings(sequence: SaturationSequence) -> list[str]:
    """Warn under open load of a wide bracket, or an imprecise lower end."""
    bracket = sequence.bracket
    if not (bracket and bracket.low and bracket.high and sequence.plan.open):
        return []
    lines = []
    width, precision = bracket.high / bracket.low - 1, sequence.plan.precision
    if width > precision * 1.5:
        lines.append(
            f"the bracket is {width:.1%} wide: give a <start> nearer to it for a narrower one"
        )
    grown = 1 - proven_rate(sequence, bracket.low) / bracket.low
    if grown > WIDE * max(precision, NARROWEST):  # so the level may be beyond saturation
        lines.append(
            f"at the saturation point the backlog may still have grown by {grown:.1%} of the rate:"
            " raise <step_time>"
        )
    return lines


def _lateness_warnings(sequence: SaturationSequence) -> list[str]:
    """Say how many steps were measured again since the tester was late.

    A late operating point has a warning of its own.
    """
    late = [step for step in sequence.steps if step.tester]
    repeated = late
    if sequence.operating and sequence.operating.tester:
        repeated = [step for step in late if step.step.phase != Phase.OPERATE]
    if not repeated or (sequence.bracket and sequence.bracket.tester_was_late):
        return []
    reasons = [machine_full(step.step.around) for step in late if step.step.around]
    reason = next((f" ({reason})" for reason in reasons if reason), "")
    return [
        f"in {len(repeated)} steps the load generator was late{reason}; they were measured again"
    ]
