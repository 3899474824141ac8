"""Charts of a lifecycle."""

from __future__ import annotations

import random

from scaletest.report.lifecycle.figures import DETAILED, GENERAL, charts, panels, thinned
from tests.unit.lifecycles import of, workload


def test_rows_are_steps_with_averages_and_percentiles() -> None:
    rows = [
        workload(f"j-{index}", submitted=float(index), step=1.0 + index / 100)
        for index in range(30)
    ]
    lifecycle = of(*rows)
    assert [panel.step.step.name for panel in panels(lifecycle, GENERAL)] == [
        "total_decided",
        "total_ready",
        "total_finished",
    ]
    first = panels(lifecycle, DETAILED)[0]
    assert "time between submission and workload creation" in first.title
    for part in ("average 1.1", "p50 1.1", "p95 n/a", "p99 n/a"):
        assert part in first.shares
    # with values enough, all of them
    many = of(
        *(
            workload(f"j-{index}", submitted=float(index), step=1.0 + index / 1000)
            for index in range(300)
        )
    )
    assert (
        "p95 1.28" in panels(many, DETAILED)[0].shares
        and "p99 1.3" in panels(many, DETAILED)[0].shares
    )
    assert sum(first.counts) == 30
    left, right = charts(first)
    assert "<path" in str(left.svg()) and str(right.svg()).count("<rect") > 20


def test_thinned_lines_keep_the_extremes() -> None:
    chance = random.Random(1)
    points = [(float(index), chance.random()) for index in range(20_000)]
    thin = thinned(points)
    assert len(thin) <= 2000
    assert max(points, key=lambda p: p[1]) in thin and min(points, key=lambda p: p[1]) in thin
    assert thin == sorted(thin) and set(thin) <= set(points)
