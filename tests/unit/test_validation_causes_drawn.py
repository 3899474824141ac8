"""What limits a run, drawn: the box below the verdict, use of nodes, and disturbances in time."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scaletest.analysis.resources import NodeUse, StepResources
from scaletest.render.contents import Charts, Figure, Share, Table
from scaletest.render.svg import Chart, interval_bar
from scaletest.report import formats
from scaletest.report.validation import figures, nodes
from scaletest.report.validation.report import validation_report
from scaletest.validation.run_type import ValidationRun
from tests.unit.report_page import Page


def points(chart: Chart) -> list[list[tuple[float, float]]]:
    """The points of each line."""
    return [list(mark.points) for mark in chart.marks if mark.shape == "line"]


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


def test_use_of_the_nodes_is_drawn_for_each_step_and_device(
    example_runs: dict[str, ValidationRun],
) -> None:
    run = example_runs["sampled"]
    charts = {chart.id: chart for chart in nodes.use(run.result).charts}
    assert list(charts) == [
        "use-cores",
        "use-pressure",
        "use-disks",
        "use-networks",
        "use-devices",
    ]
    assert charts["use-cores"].x.names == ["1", "2", "4"]
    (cores,) = points(charts["use-cores"])
    assert [value for _, value in cores] == pytest.approx([0.55, 1.0, 1.0])
    pressure, io = points(charts["use-pressure"])
    assert [value for _, value in pressure] == pytest.approx([0.02, 0.02, 0.84])
    assert {value for _, value in io} == {0.0}
    assert len(points(charts["use-devices"])) == 2
    assert [text for text, *_ in charts["use-devices"].explained] == ["renderD128", "renderD129"]
    assert charts["use-networks"].y.label == "kB/s"
    (moved,) = points(charts["use-networks"])
    assert moved[0][1] == pytest.approx(210)


def test_of_many_nodes_the_busiest_are_drawn_and_a_lost_figure_is_no_zero(
    example_runs: dict[str, ValidationRun],
) -> None:
    run = example_runs["sampled"]
    parts = {f"node-{number}": number / 10 for number in range(9)}
    uses = [
        NodeUse(name, 1, {"cpu": {"cores": 2.0, "user": 2 * part}}) for name, part in parts.items()
    ]
    blind = NodeUse("node-x", 1, {"cpu": {"cores": 2.0}})
    step = StepResources(2, 0, (*uses, blind), {})
    chart, *others = nodes.use(replace(run.result, resources=[step])).charts
    assert not others
    assert [text for text, *_ in chart.explained] == [f"node-{number}" for number in range(3, 9)]
    assert {at for line in points(chart) for at, _ in line} == {1}


def test_a_disturbance_is_marked_in_the_strip_and_in_the_course_of_its_step(
    example_runs: dict[str, ValidationRun],
) -> None:
    result, records = example_runs["sampled"].result, example_runs["sampled"].records
    (spell,) = result.disturbed
    strip = nodes.disturbances(result)
    (chart,) = strip.charts
    assert chart.y.names == ["steal", "workers"] and strip.narrow
    (bar,) = [mark for mark in chart.marks if mark.css == "c-foreign"]
    zero_s = min(step.samples[0].began_s for step in result.steps)
    assert [x for x, _ in bar.points] == pytest.approx(
        [spell.begin_s - zero_s, spell.end_s - zero_s]
    )
    assert bar.text == spell.sentence
    assert [mark.text for mark in chart.marks if mark.shape == "note"] == ["1", "2", "4"]
    # expect the mark in the panel of the step with 2 workers only, and its legend in told_columns
    panels = {chart.id: chart for chart in figures.panels(result, records)}
    marked = {
        name: [mark for mark in panel.marks if mark.css == "c-foreign"]
        for name, panel in panels.items()
    }
    assert {name for name, marks in marked.items() if marks} == {"course-2-0"}
    began_s = result.steps[1].samples[0].began_s
    (mark,) = marked["course-2-0"]
    assert mark.points[0][0] == pytest.approx(spell.begin_s - began_s)
    assert ("disturbed", "c-foreign", "area") in panels["course-2-0"].explained


def test_a_run_that_nothing_disturbed_has_no_strip(
    example_runs: dict[str, ValidationRun],
) -> None:
    result = example_runs["sampled"].result
    assert nodes.disturbances(replace(result, disturbed=[])).charts == []
    assert nodes.use(replace(result, resources=[])).charts == []


def test_use_is_drawn_once_also_where_no_request_tells_its_time(
    example_runs: dict[str, ValidationRun],
) -> None:
    run = example_runs["sampled"]
    quiet = replace(run, result=replace(run.result, causes=None))
    for shown, title in ((run, "What limits it"), (quiet, "Resources")):
        homes = [
            section.title
            for section in validation_report(shown).sections()
            if "use-cores" in map(_first_id, section.blocks)
        ]
        assert homes == [title]


def _first_id(block: object) -> str:
    if isinstance(block, Figure):
        return block.wide.id
    return block.charts[0].id if isinstance(block, Charts) and block.charts else ""
