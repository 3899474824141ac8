"""Charts of a lifecycle, what they are made of, and its table as CSV."""

import csv
import io
import random
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.lifecycle.judging import chart_data
from scaletest.lifecycle.judging.result import LifecycleResult
from scaletest.lifecycle.records import LifecycleObject, LifecyclePod, Stamp, Stamps
from scaletest.lifecycle.report.charts import (
    MOST_POINTS,
    phase_charts,
    pods_figure,
    thin_points,
    waterfall_figure,
)
from scaletest.lifecycle.report.report import (
    DETAILED,
    GENERAL,
    lifecycle_report,
    sections,
    shown_phases,
)
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.render.blocks import Charts, Figure
from scaletest.render.chart import Chart
from scaletest.render.svg import draw_chart
from scaletest.report import formats
from tests.unit.golden_files import golden
from tests.unit.lifecycles import BEGAN, of, workload


def made(count: int, pods: int = 1, nodes: int = 3, seed: int = 1) -> list[LifecycleObject]:
    """Workloads, five a second, whose pods run on nodes of which the first is slow."""
    chance = random.Random(seed)
    rows = []
    for index in range(count):
        row = LifecycleObject(f"j-{index:06x}", "n", "Job", pods, seen=True)
        start = index // 5
        row.mark("submitted", Stamp(watch_s=BEGAN + start))
        row.mark("created", Stamp(watch_s=BEGAN + start + 0.1))
        for number in range(pods):
            name = f"{row.name}-{number}"
            pod = LifecyclePod(name, name, f"node-{chance.randrange(nodes):05d}")
            slow = 4.0 if pod.node == "node-00000" else 1.0
            at_s = start + 0.2
            pod.mark("created", Stamp(watch_s=BEGAN + at_s))
            for milestone in ("scheduled", "ready_to_start", "started", "ready"):
                at_s += slow * chance.uniform(0.5, 1.0)
                pod.mark(milestone, Stamp(watch_s=BEGAN + at_s))
            pod.mark("finished", Stamp(watch_s=BEGAN + at_s + 5.0))
            row.pods[pod.uid] = pod
        rows.append(row)
    return rows


def test_rows_are_phases_with_averages_and_percentiles() -> None:
    rows = [
        workload(f"j-{index}", submitted=float(index), step=1.0 + index / 100)
        for index in range(30)
    ]
    lifecycle = of(*rows)
    # expect a course and a histogram for each phase
    assert [chart.id for chart in phase_charts(lifecycle, GENERAL)] == [
        "course-total_decided",
        "histogram-total_decided",
        "course-total_ready",
        "histogram-total_ready",
        "course-total_finished",
        "histogram-total_finished",
    ]
    left, right, *_ = phase_charts(lifecycle, DETAILED)
    assert left.title == "submission → workload creation"
    for part in ("mean 1.1", "p50 1.1"):
        assert part in right.title and part in left.description
    # with values enough, all of them
    many = of(
        *(
            workload(f"j-{index}", submitted=float(index), step=1.0 + index / 1000)
            for index in range(300)
        )
    )
    right_of_many = phase_charts(many, DETAILED)[1]
    assert "p95 1.28" in right_of_many.title and "p99 1.3" in right_of_many.title
    counts = [mark.points[1][1] for mark in right.marks]
    assert sum(counts) == 30
    assert "<path" in str(draw_chart(left)) and str(draw_chart(right)).count("<rect") > 20


def test_workloads_are_dots_that_no_line_joins() -> None:
    for chart in phase_charts(of(*made(40)), DETAILED)[::2]:
        assert [mark.shape for mark in chart.marks] == ["dots"]
        path = re.search(r'd="([^"]+)" class="c-dots"', str(draw_chart(chart)))
        assert path and path[1].count("M") == path[1].count("h0") == 40
        assert not set("LHV") & set(path[1])


def test_thinned_points_keep_the_slowest_and_the_density() -> None:
    chance = random.Random(1)
    points = [(float(index), chance.random()) for index in range(20_000)]
    thin = thin_points(points)
    assert len(thin) <= 1.2 * MOST_POINTS
    assert max(points, key=lambda p: p[1]) in thin
    assert thin == sorted(thin) and set(thin) <= set(points)
    # half of all lie below 0.5, and hardly more than half of those that are drawn lie above it
    assert 0.4 < sum(value < 0.5 for _, value in thin) / len(thin) < 0.5


def test_pods_are_counted_over_time_by_hand() -> None:
    # two pods: scheduled after 4 s, ready after 6 s; both are 0.1 s apart
    counted = chart_data.pods_over_time(of(workload("j", pods=2)).timelines)
    at_end = {name: counts[-1] for name, counts in counted.counts.items()}
    assert at_end == {"submitted": 2, "scheduled": 2, "ready": 2}
    assert (counted.moments_s[0], counted.moments_s[-1]) == (0.0, pytest.approx(6.1))
    assert counted.counts["submitted"][0] == 2 and counted.counts["scheduled"][0] == 0
    assert chart_data.pods_over_time(of(workload("j", pods=0)).timelines) is None


@given(st.integers(1, 60), st.integers(1, 4), st.integers(0, 99))
def test_counts_over_time_never_fall(count: int, pods: int, seed: int) -> None:
    counted = chart_data.pods_over_time(of(*made(count, pods, seed=seed)).timelines)
    for name in ("submitted", "scheduled", "ready"):
        counts = counted.counts[name]
        assert all(before <= after for before, after in pairwise(counts))
        assert counts[-1] == count * pods
    assert all(
        ready <= scheduled <= submitted
        for submitted, scheduled, ready in zip(
            *(counted.counts[name] for name in ("submitted", "scheduled", "ready")), strict=True
        )
    )


def test_the_waterfall_goes_from_the_fastest_to_the_slowest_workload() -> None:
    rows = chart_data.waterfall(of(*made(200)).timelines)
    assert len(rows) == 11
    totals = [row.ends[-1][1] for row in rows]
    assert totals == sorted(totals)
    assert [name for name, _ in rows[0].ends] == [
        "created",
        "last_pod_created",
        "scheduled",
        "ready_to_start",
        "started",
        "ready",
    ]
    # expect that no phase ends before the one before
    for row in rows:
        ends = [end_s for _, end_s in row.ends]
        assert ends == sorted(ends)
    figure = waterfall_figure(of(*made(200)))
    names = [name for _, name in figure.wide.y.labelled_marks]
    assert (names[0], names[5], names[-1]) == ("fastest", "50 %", "slowest")
    # expect that few workloads are called by their names
    few = waterfall_figure(of(*made(3)))
    assert sorted(name for _, name in few.wide.y.labelled_marks) == [
        "j-000000",
        "j-000001",
        "j-000002",
    ]


@given(st.integers(1, 30), st.floats(0.0, 15.0), st.sampled_from(["html", "md", "csv"]))
def test_a_run_that_ended_at_any_moment_has_a_report(count: int, after_s: float, form: str) -> None:
    rows = made(count)
    for row in rows:
        row.stamps = seen_until(row.stamps, BEGAN + after_s)
        for pod in row.pods.values():
            pod.stamps = seen_until(pod.stamps, BEGAN + after_s)
        row.pods = {uid: pod for uid, pod in row.pods.items() if pod.stamps}
    run = LifecycleRun("", "/r", of(*rows), title="l")
    assert formats.render(lifecycle_report(run), form)


def seen_until(stamps: Stamps, end_s: float) -> Stamps:
    """Those of these milestones that were passed by then."""
    return {name: stamp for name, stamp in stamps.items() if (stamp.watch_s or 0.0) <= end_s}


def test_nodes_are_ordered_by_their_median_and_compared() -> None:
    lifecycle = of(*made(60))
    seconds_of = chart_data.ready_times_by_node(lifecycle.timelines)
    assert sum(map(len, seconds_of.values())) == 60
    page = formats.render(lifecycle_report(LifecycleRun("", "/r", lifecycle, title="l")), "html")
    # the slow one is the first
    assert page.index("node-00000") < page.index("node-00001")


def everything_drawn(lifecycle: LifecycleResult) -> Iterator[Chart]:
    """All charts of a page."""
    for section in sections(lifecycle):
        for block in section.blocks:
            if isinstance(block, Figure):
                yield from (block.wide, block.narrow)
            elif isinstance(block, Charts):
                yield from block.charts


def test_charts_of_ten_thousand_pods_on_a_thousand_nodes_stay_small() -> None:
    lifecycle = of(*made(10_000, nodes=1000))
    drawn = list(everything_drawn(lifecycle))
    assert len(drawn) >= 20
    sizes = {chart.id: len(str(draw_chart(chart))) for chart in drawn}
    assert max(sizes.values()) < 300_000, sizes
    assert sum(sizes.values()) < 1_500_000
    # expect identifiers that are unique on the page
    assert len(sizes) == len(drawn)


def test_every_chart_has_labelled_axes() -> None:
    for chart in everything_drawn(of(*made(100, 2))):
        assert chart.x.label and chart.y.label, chart.id
        assert len(chart.y.labelled_marks) >= 2 and len(chart.x.labelled_marks) >= 2, chart.id


def test_a_page_shows_what_was_waited_for_first_and_folds_the_rest() -> None:
    shown = sections(of(*made(60, 2)))
    assert [section.title for section in shown if not section.is_folded] == [
        "On the way to ready",
        "Pods over time",
    ]
    assert "Phases" in [section.title for section in shown if section.is_folded]
    # of three workloads a table says more than charts, and no median is known
    few = of(*made(3), until="ready")
    report = lifecycle_report(LifecycleRun("", "/r", few, title="l"))
    assert not [b for s in report.sections() for b in s.blocks if isinstance(b, Charts)]
    facts = dict(report.head.facts)
    assert "median time until ready" not in facts and "n/a" not in facts.values()
    assert "failed" not in facts


def test_of_workloads_with_one_pod_no_phase_is_told_twice() -> None:
    one, two = (
        {phase.phase.name for phase in shown_phases(of(*made(30, pods)))} for pods in (1, 2)
    )
    assert two - one == {"last_pod_created", "pod_scheduled", "pod_started", "pod_ready"}


def test_a_run_of_which_nothing_is_known_draws_nothing() -> None:
    lifecycle = of(workload("j", pods=0))
    bare = of(LifecycleObject("j"), until="ready")
    assert pods_figure(bare) is None and waterfall_figure(bare) is None
    picture = lifecycle_report(LifecycleRun("", "/runs/l", bare)).picture
    assert picture is not None
    assert list(everything_drawn(bare)) == [] == picture()
    assert chart_data.ready_times_by_node(lifecycle.timelines) == {}


@pytest.mark.parametrize("form", ["text", "md"])
def test_a_lifecycle_is_told_in_words(form: str) -> None:
    judged = of(*made(60, 2), until="ready", thresholds=["total_ready.p50<60s"])
    run = LifecycleRun("", "/runs/l", judged, title="lifecycle of 60 Jobs")
    golden(f"lifecycle.{form}", formats.render(lifecycle_report(run), form))


def test_defect_01_every_heading_stands_over_its_own_values() -> None:
    lifecycle = of(workload("j-1", evicted=7.5), workload("j-2", submitted=10.0))
    rows = list(
        csv.DictReader(
            io.StringIO(
                formats.render(
                    lifecycle_report(
                        LifecycleRun("", "/runs/l", lifecycle, title="l", plan={"project": "p"})
                    ),
                    "csv",
                )
            )
        )
    )
    assert all(None not in row and None not in row.values() for row in rows)
    first = rows[0]
    assert first["Job Name"] == "j-1"
    assert first["Workload Submitted"] == "2026-09-21T14:13:20.000000+00:00"
    assert float(first["Last Pod Creation"]) == 1.0
    assert float(first["First Eviction"]) == pytest.approx(5.5)
    assert float(first["Total Ready"]) == 6.0
    assert rows[1]["First Eviction"] == ""
    assert len(set(first)) == len(first)
