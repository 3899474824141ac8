"""A lifecycle run as JUnit XML: a case for the verdict, one for the books, one for each
threshold.
"""

from __future__ import annotations

from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model.verdict import VerdictKind
from scaletest.report.junit import Case, document
from scaletest.report.lifecycle.terminal import booked


def suite(result: LifecycleResult, heading: str) -> str:
    """The whole document."""
    verdict = result.verdict
    balanced = VerdictKind.PASS if result.books.balanced else VerdictKind.INVALID
    cases = [
        Case("verdict", verdict.kind, f"{verdict.reason}\n{verdict.remedy}".strip(), 0.0),
        Case("books", balanced, booked(result), 0.0),
        *(Case(one.text, one.kind, one.reason, 0.0) for one in result.thresholds),
    ]
    return document(heading, cases, 0.0)
