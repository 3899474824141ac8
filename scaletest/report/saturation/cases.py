"""A saturation run as test cases: the verdict, and every step."""

from __future__ import annotations

from collections.abc import Iterator

from scaletest.analysis.saturation.step import level_text
from scaletest.model import VerdictKind
from scaletest.render.contents import Case
from scaletest.report.saturation.run import SaturationRun


def cases(run: SaturationRun) -> Iterator[Case]:
    """The run, then its steps: a saturated step is what was looked for, one that the tester spoilt
    is an error.
    """
    result = run.result
    message = f"{result.verdict.reason}\n{result.verdict.remedy}".strip()
    yield Case("verdict", result.verdict.kind, message, result.elapsed_s)
    for assessed in result.steps:
        kind = VerdictKind.INVALID if assessed.tester else VerdictKind.PASS
        step = assessed.step
        name = f"{step.number} {step.phase} {level_text(step)}"
        yield Case(name, kind, assessed.tester, step.seconds)
