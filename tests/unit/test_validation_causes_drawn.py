"""What limits a run, drawn: the box below the verdict, and disturbances in time."""

from __future__ import annotations

import re

import pytest

from scaletest.render.contents import Share, Table
from scaletest.render.svg import interval_bar
from scaletest.report import formats
from scaletest.report.validation import figures
from scaletest.report.validation.report import validation_report
from scaletest.validation.run_type import ValidationRun
from tests.unit.report_page import Page


@pytest.mark.parametrize("case", ["limited", "sampled"])
def test_what_limits_a_run_stands_at_once_below_its_verdict(
    example_runs: dict[str, ValidationRun], case: str
) -> None:
    report = validation_report(example_runs[case])
    first, *others = report.sections()
    assert first.title == "What limits it" and first.leads
    assert not any(section.leads for section in others)
    page = Page(formats.render(report, "html"))
    titles = ["What to do:", "What limits it", "How far it scales", "How to reproduce"]
    text = page.text.partition("</style>")[2] or page.text
    places = [text.rindex(title) for title in titles]
    assert places == sorted(places)


@pytest.mark.parametrize("case", ["pass", "fail", "sharing"])
def test_no_box_where_no_cause_is_known(example_runs: dict[str, ValidationRun], case: str) -> None:
    report = validation_report(example_runs[case])
    assert not any(section.leads for section in report.sections())
    assert 'class="leading"' not in formats.render(report, "html")


def test_each_cause_has_a_bar_of_its_share_with_its_evidence_beside(
    example_runs: dict[str, ValidationRun],
) -> None:
    run = example_runs["sampled"]
    assert run.result.causes is not None
    causes = run.result.causes.causes
    report = validation_report(run)
    table = next(block for block in report.sections()[0].blocks if isinstance(block, Table))
    at = table.titles.index("share of the added time")
    for row, cause in zip(table.rows, causes, strict=True):
        bar = row[at]
        assert isinstance(bar, Share)
        share = cause.share
        assert (bar.part, bar.interval) == (share.value, (share.low, share.high))
        assert cause.remedy in row and str(row[-2]).startswith("confirmed: 2.0 of 2 cores")
    # expect the comment to say the same in told_columns
    comment = next(block for block in report.comment() if getattr(block, "layout", "") == "causes")
    assert isinstance(comment, Table)
    told_columns = {title: list(map(str, column)) for title, column in columns(comment).items()}
    page = {title: list(map(str, column)) for title, column in columns(table).items()}
    assert told_columns.items() <= page.items()
    assert page.keys() - told_columns.keys() == {"per request"}


def columns(table: Table) -> dict[str, tuple[object, ...]]:
    """The cells by title."""
    return dict(zip(table.titles, zip(*table.rows, strict=True), strict=True))


@pytest.mark.parametrize(
    ("ends", "width", "caps"),
    [((0.5, (0.25, 0.75)), 60, (30, 90)), ((1.2, (0.9, 3.0)), 119, (108, 119))],
)
def test_the_bar_of_a_cause_is_as_long_as_its_share_and_at_most_its_cell(
    ends: tuple[float, tuple[float, float]], width: float, caps: tuple[float, float]
) -> None:
    drawn = interval_bar(*ends)
    bars = [float(number) for number in re.findall(r'<rect [^>]*width="([\d.]+)"', drawn)]
    assert bars == [120.0, width]
    (left, right) = re.findall(r"M([\d.]+) 3v8", drawn)
    assert (float(left), float(right)) == caps
    assert 'aria-hidden="true"' in drawn and "style" not in drawn


def test_a_disturbance_is_marked_in_the_course_of_its_step(
    example_runs: dict[str, ValidationRun],
) -> None:
    result, records = example_runs["sampled"].result, example_runs["sampled"].records
    spell = result.disturbed[0]
    # expect the mark in the panel of the step with 2 workers only, and its legend in told_columns
    panels = {chart.id: chart for chart in figures.panels(result, records)}
    marked = {
        name: [mark for mark in panel.marks if mark.css == "c-foreign"]
        for name, panel in panels.items()
    }
    assert {name for name, marks in marked.items() if marks} == {"course-2-0", "course-2-1"}
    began_s = result.steps[1].samples[0].began_s
    (mark,) = marked["course-2-0"]
    assert mark.points[0][0] == pytest.approx(spell.begin_s - began_s)
    assert ("disturbed", "c-foreign", "area") in panels["course-2-0"].explained
