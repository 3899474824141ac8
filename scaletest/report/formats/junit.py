"""A run as JUnit XML for CI. FAIL is a failure, INVALID an error.

The case of the run carries the verdict, so a run that failed for another reason than one of its
steps is red too.
"""

from __future__ import annotations

from xml.etree import ElementTree

from scaletest.model import VerdictKind
from scaletest.render.contents import Case, Report
from scaletest.render.text import clean

# What has no verdict yet is no success either.
TAGS = {VerdictKind.FAIL: "failure", VerdictKind.INVALID: "error", VerdictKind.RUNNING: "error"}


def render(report: Report) -> str:
    """The whole document."""
    head, cases = report.head, report.cases()
    tags = [TAGS.get(case.kind) for case in cases]
    counts = {
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "time": f"{head.elapsed_s:.3f}",
    }
    title = _line(head.title)
    root = ElementTree.Element("testsuites", {"name": "scaletest", **counts})
    stamp = {"timestamp": _line(head.began)} if head.began else {}
    suite = ElementTree.SubElement(root, "testsuite", {"name": title, **counts, **stamp})
    for case in cases:
        _add(suite, title, case)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _add(suite: ElementTree.Element, title: str, case: Case) -> None:
    attributes = {
        "classname": case.group or title,
        "name": _line(case.name),
        "time": f"{case.seconds:.3f}",
    }
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case.kind in TAGS:
        first = _line(case.message.partition("\n")[0])
        problem = ElementTree.SubElement(
            element, TAGS[case.kind], {"message": first, "type": case.problem or str(case.kind)}
        )
        problem.text = clean(case.message)


def _line(text: str) -> str:
    """For attributes."""
    return clean(text).replace("\n", " ")
