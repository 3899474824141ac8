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
from scaletest.saturation.judging.point import saturation_point
from scaletest.saturation.judging.step import LEAST_REQUESTS, AssessedStep, assess_step
from scaletest.saturation.judging.step_sequence import SaturationSequence, replay, search_steps
from scaletest.saturation.judging.tester import machine_full
from scaletest.saturation.judging.verdict import judge_sequence, lateness_that_matters
from scaletest.saturation.plan import KIND, SaturationPlan, SaturationStep
from scaletest.stats.estimate import Estimate


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
        warnings=tuple(find_warnings(sequence)),
        elapsed_s=elapsed_s,
        interrupted=interrupted,
        lost=lost,
    )


def find_warnings(sequence: SaturationSequence) -> list[str]:
    """Return what should be known of a run besides its verdict."""
    steps, operating = search_steps(sequence), sequence.operating
    lines = []
    # the operating point is no figure of the service, or no point at which to operate
    if operating and operating.tester:
        lines.append(f"the latency at {operating.step.level:.4g}/s is unknown: {operating.tester}")
    elif operating and operating.saturated:
        lines.append(f"even the operating point was saturated: {operating.saturated}")
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
    return lines
