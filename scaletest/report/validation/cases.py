"""A validation as test cases: the run, every doubling, and every threshold."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from scaletest.analysis.cause import Causes
from scaletest.analysis.steps import Step
from scaletest.model import VerdictKind
from scaletest.render.contents import Case
from scaletest.render.numbers import between
from scaletest.report import limits, words
from scaletest.report.run import Run


def cases(run: Run) -> Iterator[Case]:
    """The run, then its doublings, then its thresholds."""
    verdict = run.result.verdict
    message = f"{verdict.reason}\n{verdict.remedy}".strip()
    yield Case("verdict", verdict.kind, message, run.result.elapsed_s)
    measured = {step.workers: step for step in run.result.steps}
    for before, after in () if run.result.plan.compares else pairwise(run.result.plan.steps):
        doubling = _doubling(before, after, measured.get(before), measured.get(after), verdict.kind)
        yield _with_cause(doubling, run.result.causes) if _caused(run, before, after) else doubling
    for one in run.result.thresholds:
        yield Case(one.text, one.kind, one.reason, 0.0)


def _doubling(
    fewer: int, more: int, before: Step | None, after: Step | None, run: VerdictKind
) -> Case:
    name = f"{fewer} -> {more} workers"
    time = words.measured_s(after) if after else 0.0
    found = after.ratio if after else None
    if not (before and after and found):
        if run is VerdictKind.RUNNING:
            return Case(name, run, "it is not measured yet", time)
        return Case(name, VerdictKind.INVALID, "it was not measured", time)
    message = f"ratio {between(found.value, found.low, found.high)}, wanted {found.wanted:.2f}"
    if not (before.sound and after.sound):
        return Case(
            name, VerdictKind.INVALID, f"{message}; one of the two steps may not be judged", time
        )
    return Case(name, found.kind, message, time)


def _caused(run: Run, before: int, after: int) -> bool:
    """Whether the run's causes are those of this doubling."""
    told = run.result.causes
    return told is not None and (told.before, told.after) == (before, after)


def _with_cause(case: Case, causes: Causes | None) -> Case:
    """The case with what stopped the doubling, and what to try."""
    told = [causes.sentence, causes.remedy] if causes else []
    told += [f"{row.label}, {row.evidence}" for row in limits.rows(causes) if row.evidence]
    return case._replace(message="\n".join([case.message, *filter(None, told)]))
