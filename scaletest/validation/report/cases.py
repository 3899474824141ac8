"""A validation as test cases: every doubling."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from scaletest.model import VerdictKind
from scaletest.render.contents import (
    Case,
)
from scaletest.render.numbers import (
    between,
)
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step
from scaletest.validation.report.causes import (
    evidence_text,
)
from scaletest.validation.report.parts import spread_texts


def cases(result: Evaluation) -> Iterator[Case]:
    """Yield the doublings; that of the run's causes tells them."""
    levels: Sequence[int] = () if result.plan.compares else result.plan.steps
    steps = {step.workers: step for step in result.steps}
    causes = result.causes
    for before, after in pairwise(levels):
        case = _doubling_case(before, after, steps, result.verdict.kind)
        if causes and (causes.before, causes.after) == (before, after):
            evidence = [
                f"{each.label}, {evidence_text(each)}" for each in causes.causes if each.evidence
            ]
            lines = [causes.sentence, causes.remedy, *evidence]
            case = case._replace(message="\n".join([case.message, *filter(None, lines)]))
        if after in steps:
            spread = [
                f"{text.label}: {' '.join(text.lines)}" for text in spread_texts([steps[after]])
            ]
            case = case._replace(output="\n".join(spread))
        yield case


def _doubling_case(fewer: int, more: int, steps: Mapping[int, Step], run: VerdictKind) -> Case:
    name, before, after = f"{fewer} -> {more} workers", steps.get(fewer), steps.get(more)
    time_s = after.measured_s if after else 0.0
    ratio = after.ratio if after else None
    if not (before and after and ratio):
        if run is VerdictKind.RUNNING:
            return Case(name, run, "it is not measured yet", time_s)
        return Case(name, VerdictKind.INVALID, "it was not measured", time_s)
    message = f"ratio {between(ratio.value, ratio.low, ratio.high)}, wanted {ratio.wanted:.2f}"
    if before.sound and after.sound:
        return Case(name, ratio.kind, message, time_s)
    message = f"{message}; one of the two steps may not be judged"
    return Case(name, VerdictKind.INVALID, message, time_s)
