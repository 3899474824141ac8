"""The charts of a validation: axes that compare, lines that claim no more than is known, and marks
that can be seen.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from scaletest.render.axis import Axis, marks_up_to
from scaletest.render.chart import Chart
from scaletest.render.svg import draw_chart
from scaletest.report import formats
from scaletest.validation.plan import Plan
from scaletest.validation.report.course_charts import course_panels
from scaletest.validation.report.histograms import node_histograms, step_histograms
from scaletest.validation.report.law import law_sentence
from scaletest.validation.report.report import validation_report
from scaletest.validation.report.throughput_chart import throughput_figure
from scaletest.validation.run_type import ValidationRun
from tests.unit import made_runs as runs

COMMAND = Plan(limit=8, command=("x",), queue="q")


def run_of(path: Path, plan: Plan, seconds: dict[int, float], noise: float = 0.05) -> ValidationRun:
    """A run whose requests take these seconds, by the number of workers."""
    steps = [runs.rows(n, run_s, 40, noise=noise) for n, run_s in seconds.items()]
    return runs.loaded(runs.stored(path / "run", plan, steps))


def test_a_very_long_request_is_counted_and_does_not_squeeze_the_histograms(tmp_path: Path) -> None:
    run = run_of(tmp_path, COMMAND, {1: 0.3, 2: 0.3})
    records = {key: list(rows) for key, rows in run.records.items()}
    row = records[1, 0][5]
    records[1, 0][5] = replace(row, reply=replace(row.reply, run_s=60.0))
    first, second = step_histograms(run.result, records).charts
    assert first.title.startswith("1 worker, 80 requests, 1 of them beyond 31")
    assert second.title == "2 workers, 160 requests"
    assert first.x.high < 400


@pytest.mark.parametrize("high", [0.26, 0.3, 0.45, 0.55, 0.6, 0.85, 0.97, 1.0])
def test_the_last_mark_of_an_axis_is_not_below_its_data(high: float) -> None:
    marks = marks_up_to(high, 3)
    assert marks[0] == 0.0 and high <= marks[-1] <= 1.0 + 1e-9 and len(marks) > 1


def test_a_step_that_the_law_misses_is_named_in_every_form(tmp_path: Path) -> None:
    # given throughput that falls in the middle and recovers, as no law does
    plan = replace(COMMAND, limit=64)
    slow = {8: 0.5}
    run = run_of(tmp_path, plan, {n: slow.get(n, 0.2) for n in plan.steps}, noise=0.02)
    assert re.search(r"the law gives 1\d\d% more than 8 workers did", law_sentence(run.result))
    for form in ("html", "md", "text"):
        assert "more than 8 workers did" in formats.render(validation_report(run), form)


@pytest.mark.parametrize("last", [8, 64])
def test_what_was_measured_fills_the_chart(tmp_path: Path, last: int) -> None:
    # given workers that share all, so that the ideal line lies far above
    plan = replace(COMMAND, limit=last)
    run = run_of(tmp_path, plan, {n: 0.2 * n for n in plan.steps})
    chart = throughput_figure(run.result).wide
    highest = max(mark.points[0][1] for mark in chart.marks if mark.shape == "dot")
    assert chart.y.position(highest) > (0.7 if chart.y.kind == "linear" else 0.4)
    # expect the ideal line to end at the frame, where it keeps its slope
    (ideal,) = [mark for mark in chart.marks if mark.css == "c-ideal"]
    (low, start), (end, top) = ideal.points
    assert top == pytest.approx(chart.y.high) and end < last
    assert low == 0.0 or start / low == pytest.approx(top / end)


def test_an_interval_shorter_than_its_point_can_be_seen_beside_it() -> None:
    chart = Chart("c", "t", "d", Axis("x", 0, 10), Axis("y", 0, 10))
    chart.error(5, 4.999, 5.001, "c-error")
    chart.dot(5, 5, "c-dot")
    drawn = draw_chart(chart)
    caps = [float(wide) for wide in re.findall(r"h(\d+)", drawn.partition("c-error")[0])]
    radius = float(re.findall(r'r="([\d.]+)" class="c-dot"', drawn)[0])
    assert caps[-1] >= 2 * radius + 6


def test_warning_and_chart_tell_the_same_second_of_a_change(tmp_path: Path) -> None:
    # given a step that gets slower in its middle, after a warm-up of 5 s
    rows = runs.rows(1, 0.2, 100, noise=0.02)
    later_s = 0.0
    for index, row in enumerate(rows):
        added_s = 0.1 if index > 60 else 0.0
        reply = row.reply
        reply = replace(
            reply,
            run_s=reply.run_s + added_s,
            enqueued_s=reply.enqueued_s + later_s,
            started_s=reply.started_s + later_s,
            ended_s=reply.ended_s + later_s + added_s,
        )
        rows[index], later_s = replace(row, reply=reply), later_s + added_s
    run = runs.loaded(
        runs.stored(tmp_path / "run", replace(COMMAND, limit=1, warmup_s=5.0), [rows])
    )
    warning, _ = [line for line in run.result.warnings if "throughput fell" in line]
    chart, _ = course_panels(run.result)
    (mark,) = [mark for mark in chart.marks if mark.css == "c-mark"]
    assert run.result.steps[0].samples[0].warmup_s == pytest.approx(5.0, abs=0.5)
    assert re.findall(r"after (\d+) s", warning) == [f"{mark.points[0][0]:.0f}"]
    # expect the second in which it really happened
    assert mark.points[0][0] == pytest.approx(61 * 0.2, abs=1.5)


def test_run_times_on_each_node_are_drawn_on_one_axis_the_slowest_first(tmp_path: Path) -> None:
    # given a node whose requests take twice as long
    run = run_of(tmp_path, COMMAND, {1: 0.3, 2: 0.3})
    slow = {
        key: [
            replace(row, reply=replace(row.reply, run_s=2 * row.reply.run_s))
            if row.reply.node == "node-b"
            else row
            for row in rows
        ]
        for key, rows in run.records.items()
    }
    step = run.result.steps[-1]
    drawn = node_histograms(step, slow)
    # expect both, and that they compare
    rows = [row for key in slow if key[0] == step.workers for row in slow[key] if row.ok]
    assert [chart.title for chart in drawn.charts] == [
        f"{node}, {len([row for row in rows if row.reply.node == node])} requests"
        for node in ("node-b", "node-a")
    ]
    first, second = drawn.charts
    assert (first.x.low, first.x.high) == (second.x.low, second.x.high)
    assert "node-b" in formats.render(validation_report(run), "html")
    # when all run on one node, expect none: that of the step shows the same
    alike = {
        key: [replace(row, reply=replace(row.reply, node="node-a")) for row in rows]
        for key, rows in run.records.items()
    }
    assert not node_histograms(step, alike).charts
