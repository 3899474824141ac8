"""A run as JUnit XML for CI. FAIL is a failure, INVALID an error.

The case of the run carries the verdict, so a run that failed for another reason than one of its
steps is red too.
"""

from xml.etree import ElementTree

from scaletest.model import VerdictKind
from scaletest.model.wording import as_options
from scaletest.render.contents import Case, Report
from scaletest.render.text import clean_text, one_line

# What has no verdict yet is no success either.
TAGS = {VerdictKind.FAIL: "failure", VerdictKind.INVALID: "error", VerdictKind.RUNNING: "error"}


def render(report: Report) -> str:
    """Write the whole document."""
    head = report.head
    verdict = head.verdict
    message = f"{verdict.reason}\n{verdict.remedy}".strip()
    parts = list(report.cases())
    # what the parts leave over, so that the times of all cases add up to that of the run
    rest_s = max(0.0, head.elapsed_s - sum(case.seconds for case in parts))
    cases = [
        Case("verdict", verdict.kind, message, rest_s),
        *parts,
        *(Case(line.text, line.kind, line.reason) for line in head.thresholds),
    ]
    tags = [TAGS.get(case.kind) for case in cases]
    counts = {
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "time": f"{head.elapsed_s:.3f}",
    }
    title = one_line(head.title)
    root = ElementTree.Element("testsuites", {"name": "scaletest", **counts})
    stamp = {"timestamp": one_line(head.began)} if head.began else {}
    suite = ElementTree.SubElement(root, "testsuite", {"name": title, **counts, **stamp})
    for case in cases:
        element = ElementTree.SubElement(
            suite,
            "testcase",
            {
                "classname": case.group or title,
                "name": one_line(case.name),
                "time": f"{case.seconds:.3f}",
            },
        )
        if case.kind in TAGS:
            text = clean_text(as_options(case.message))
            kind = {"message": text.partition("\n")[0], "type": case.problem or str(case.kind)}
            ElementTree.SubElement(element, TAGS[case.kind], kind).text = text
        if case.output:
            ElementTree.SubElement(element, "system-out").text = clean_text(case.output)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"
