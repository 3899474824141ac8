"""Charts of a lifecycle."""

from __future__ import annotations

import random

from scaletest.report.lifecycle import DETAILED, GENERAL, drawings, thinned
from tests.unit.lifecycles import of, workload


def test_rows_are_steps_with_averages_and_percentiles() -> None:
    rows = [
        workload(f"j-{index}", submitted=float(index), step=1.0 + index / 100)
        for index in range(30)
    ]
    lifecycle = of(*rows)
    # expect a course and a histogram for each phase
    assert [chart.id for chart in drawings(lifecycle, GENERAL)] == [
        "course-total_decided",
        "histogram-total_decided",
        "course-total_ready",
        "histogram-total_ready",
        "course-total_finished",
        "histogram-total_finished",
    ]
    left, right, *_ = drawings(lifecycle, DETAILED)
    assert "time between submission and workload creation" in left.title
    for part in ("average 1.1", "p50 1.1", "p95 n/a", "p99 n/a"):
        assert part in right.title and part in left.description
    # with values enough, all of them
    many = of(
        *(
            workload(f"j-{index}", submitted=float(index), step=1.0 + index / 1000)
            for index in range(300)
        )
    )
    right_of_many = drawings(many, DETAILED)[1]
    assert "p95 1.28" in right_of_many.title and "p99 1.3" in right_of_many.title
    counts = [mark.points[1][1] for mark in right.marks]
    assert sum(counts) == 30
    assert "<path" in str(left.svg()) and str(right.svg()).count("<rect") > 20


def test_thinned_lines_keep_the_extremes() -> None:
    chance = random.Random(1)
    points = [(float(index), chance.random()) for index in range(20_000)]
    thin = thinned(points)
    assert len(thin) <= 2000
    assert max(points, key=lambda p: p[1]) in thin and min(points, key=lambda p: p[1]) in thin
    assert thin == sorted(thin) and set(thin) <= set(points)
