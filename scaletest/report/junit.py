"""A run as JUnit XML for CI: a test case for every doubling and every threshold, and one for the
run as a whole.

FAIL is a failure, INVALID an error. The case of the run carries the verdict, so a run that failed
for another reason than a doubling is red too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree

from scaletest.analysis.cause import Causes
from scaletest.analysis.steps import Step
from scaletest.model import VerdictKind
from scaletest.render.numbers import between
from scaletest.render.text import clean
from scaletest.report import limits, words
from scaletest.report.run import Run

# What has no verdict yet is no success either.
TAGS = {VerdictKind.FAIL: "failure", VerdictKind.INVALID: "error", VerdictKind.RUNNING: "error"}


class Case(NamedTuple):
    """One test case; message is shown where it is not passed."""

    name: str
    kind: VerdictKind
    message: str
    seconds: float


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


def suite(run: Run) -> str:
    """The whole document."""
    return document(
        words.heading(run.result),
        list(cases(run)),
        run.result.elapsed_s,
        run.environment.get("began"),
    )


def document(title: str, found: Sequence[Case], elapsed_s: float, began: object = "") -> str:
    """JUnit XML of these cases."""
    counts = {
        "tests": str(len(found)),
        "failures": str(sum(TAGS.get(one.kind) == "failure" for one in found)),
        "errors": str(sum(TAGS.get(one.kind) == "error" for one in found)),
        "time": f"{elapsed_s:.3f}",
    }
    name = _line(title)
    root = ElementTree.Element("testsuites", {"name": "scaletest", **counts})
    stamp = {"timestamp": _line(began)} if isinstance(began, str) and began else {}
    inner = ElementTree.SubElement(root, "testsuite", {"name": name, **counts, **stamp})
    for one in found:
        attributes = {"classname": name, "name": _line(one.name), "time": f"{one.seconds:.3f}"}
        element = ElementTree.SubElement(inner, "testcase", attributes)
        if one.kind in TAGS:
            first = _line(one.message.partition("\n")[0])
            wrong = ElementTree.SubElement(
                element, TAGS[one.kind], {"message": first, "type": str(one.kind)}
            )
            wrong.text = clean(one.message)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


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


def _line(text: str) -> str:
    """For attributes."""
    return clean(text).replace("\n", " ")
