"""What limits a run, drawn: the box below the verdict, and disturbances in time."""

from __future__ import annotations

import re

import pytest

from scaletest.render.svg import interval_bar
from scaletest.report.validation import figures
from scaletest.validation.run_type import ValidationRun


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
