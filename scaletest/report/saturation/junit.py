"""A saturation run as JUnit XML: the verdict, and a case for every step whose tester or errors make
it doubtful.
"""

from __future__ import annotations

from collections.abc import Iterator

from scaletest.analysis.saturation.step import level_text
from scaletest.model import VerdictKind
from scaletest.report.junit import Case, document
from scaletest.report.saturation import words
from scaletest.report.saturation.run import SaturationRun


def cases(run: SaturationRun) -> Iterator[Case]:
    """The run, then its steps: a saturated step is what was looked for, one that the tester spoilt
    is an error.
    """
    result = run.result
    message = f"{result.verdict.reason}\n{result.verdict.remedy}".strip()
    yield Case("verdict", result.verdict.kind, message, result.elapsed_s)
    for one in result.steps:
        kind = VerdictKind.INVALID if one.tester else VerdictKind.PASS
        name = f"{one.step.number} {one.step.phase} {level_text(one.step)}"
        yield Case(name, kind, one.tester, one.step.seconds)


def suite(run: SaturationRun) -> str:
    """The whole document."""
    return document(
        words.heading(run.result),
        list(cases(run)),
        run.result.elapsed_s,
        run.environment.get("began"),
    )
