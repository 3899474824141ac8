"""Live statistics: right, bounded, and readable while they change."""

import gc
import random
import threading
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.load import Statistics
from scaletest.load.places import MOST_FAILURES, MOST_PLACES, LoadTally
from scaletest.load.snapshot import Gauges
from scaletest.load.statistics import MOST_POINTS
from scaletest.model import Outcome, Record
from scaletest.model.histogram import NEEDED, DurationHistogram
from tests.unit.fakes import Clock, replied

# Allocated in a line of the product, not of a test or of a library.
SOURCES = "*/scaletest/*"


def statistics_and_clock(**options: int) -> tuple[Statistics, Clock]:
    clock = Clock(1000.0)
    statistics = Statistics("q", clock=clock, wall=lambda: 1_700_000_000.0, **options)
    statistics.read_gauges_by(lambda: Gauges("closed", 4, 16, 3))
    return statistics, clock


def record(
    outcome: Outcome = Outcome.SUCCEEDED, total_s: float = 0.512, **fields: object
) -> Record:
    return Record("q", 0, replied(outcome=outcome, **fields), total_s)


def test_a_snapshot_has_counts_rate_and_times() -> None:
    # given two requests that succeeded and one that failed, within two seconds of the first
    # submission
    statistics, clock = statistics_and_clock()
    statistics.note_lateness(0.0)
    clock.now += 2.0
    statistics.add(record(run_s=0.2, total_s=0.25))
    statistics.add(record(run_s=0.4, total_s=0.45))
    statistics.add(record(Outcome.FAILED, error="broken"))
    snapshot = statistics.snapshot()
    assert (snapshot.succeeded, snapshot.failed, snapshot.elapsed_s, snapshot.per_s) == (
        2,
        1,
        2.0,
        1.0,
    )
    assert snapshot.outcomes == {
        "succeeded": 2,
        "failed": 1,
        "timed_out": 0,
        "client_gone": 0,
        "purged": 0,
    }
    run = snapshot.times["run"]
    assert (run.count, run.low_s, run.high_s) == (2, 0.2, 0.4)
    assert run.mean_s == pytest.approx(0.3)
    assert snapshot.times["overhead"].mean_s == pytest.approx(0.04)
    assert [(row.error, row.count) for row in snapshot.failures] == [("broken", 1)]


def test_a_reset_begins_anew_but_not_what_prometheus_counts() -> None:
    statistics, clock = statistics_and_clock()
    for _ in range(5):
        statistics.add(record())
    statistics.reset()
    statistics.add(record())
    snapshot = statistics.snapshot()
    assert (
        snapshot.succeeded,
        snapshot.generation,
        snapshot.lifetime["succeeded"],
        snapshot.record_seq,
    ) == (
        1,
        1,
        6,
        6,
    )
    assert snapshot.lifetime_times["run"].count == 6
    # with requests in flight the time runs from the reset on
    clock.now += 3.0
    assert statistics.snapshot().elapsed_s == 3.0


@given(st.lists(st.floats(1e-6, 1e5), min_size=1, max_size=400))
def test_a_median_needs_enough_values_and_lies_among_them(values: list[float]) -> None:
    times = DurationHistogram()
    for value in values:
        times.add(value)
    median = times.quantile("p50")
    assert (median is None) == (len(values) < NEEDED["p50"])
    assert median is None or min(values) <= median <= max(values)


def test_percentiles_need_enough_values() -> None:
    times = DurationHistogram()
    for _ in range(NEEDED["p90"]):
        times.add(1.0)
    assert NEEDED == {"p50": 5, "p90": 29, "p95": 59, "p99": 299, "p999": 2995}
    percentiles = times.summary().quantiles_s
    assert percentiles["p90"] == 1.0
    assert percentiles["p95"] is None


def test_the_series_has_the_last_seconds_with_their_peaks() -> None:
    # given an hour with one busy second and one slow request near its end
    statistics, clock = statistics_and_clock()
    for second in range(3600):
        clock.now = 1000.5 + second
        for _ in range(50 if second == 3400 else 1):
            statistics.add(record(run_s=9.0 if second == 3500 else 0.5, total_s=10.0))
    clock.now = 1000.0 + 3600
    points = statistics.snapshot().points
    assert [point.seq for point in points] == list(range(3601 - MOST_POINTS, 3601))
    assert sum(point.succeeded for point in points) == MOST_POINTS + 49
    assert max(point.succeeded for point in points) == 50
    assert max(point.run.high_s or 0.0 for point in points) == 9.0


def test_a_long_silence_costs_nothing_and_shows_as_zero() -> None:
    statistics, clock = statistics_and_clock()
    statistics.add(record())
    clock.now += 30 * 86400
    snapshot = statistics.snapshot()
    assert len(snapshot.points) == MOST_POINTS
    assert snapshot.points[-1].seq == 30 * 86400
    assert sum(point.succeeded for point in snapshot.points) == 0
    assert (snapshot.succeeded, snapshot.recent_per_s) == (1, 0.0)


def test_tables_are_bounded_and_nothing_is_lost_from_the_sums() -> None:
    # given more pods and more error texts than the tables hold
    tally = LoadTally()
    for number in range(3 * MOST_PLACES):
        tally.add_success(replied(pod=f"pod-{number}"))
        tally.add_failure(
            replied(outcome=Outcome.FAILED, error=f"error x{number}", pod=f"pod-{number}"),
            float(number),
        )
    assert len(tally.places()) == MOST_PLACES
    assert sum(row.succeeded for row in tally.places()) + tally.other_succeeded == 3 * MOST_PLACES
    groups = tally.failures.groups()
    assert len(groups) == MOST_FAILURES
    assert sum(group.count for group in groups) + tally.failures.others == 3 * MOST_PLACES
    # what was seen last is there
    assert f"error x{3 * MOST_PLACES - 1}" in {group.error for group in groups}


def test_a_failure_keeps_when_it_was_seen_first_and_last() -> None:
    tally = LoadTally()
    for at in (10.0, 20.0, 30.0):
        tally.add_failure(replied(outcome=Outcome.TIMED_OUT, error="late"), at)
    (group,) = tally.failures.groups()
    assert (group.count, group.first_s, group.last_s) == (3, 10.0, 30.0)


def test_records_are_numbered_and_the_last_ones_kept() -> None:
    statistics, _ = statistics_and_clock(keep=10)
    for number in range(25):
        statistics.add(Record("q", 0, replied(f"c-{number}"), 1.0))
    first, records = statistics.records(0)
    assert (first, len(records), records[-1].reply.id) == (16, 10, "c-24")
    assert statistics.records(23) == (24, records[-2:])
    assert statistics.records(99) == (26, [])


def test_memory_is_flat_over_virtual_hours() -> None:
    # given forty minutes, then as many again, with ever new pods, errors and times
    statistics, clock = statistics_and_clock(keep=100)
    chance = random.Random(1)

    def feed() -> int:
        for number in range(2400):
            clock.now += 1.0
            for _ in range(3):
                statistics.add(
                    record(run_s=chance.lognormvariate(0, 1), pod=f"pod-{number // 5}", total_s=1e3)
                )
            statistics.add(record(Outcome.FAILED, error=f"error {number}"))
        statistics.snapshot()
        gc.collect()
        # not what threads of other tests keep meanwhile
        ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, SOURCES)])
        return sum(trace.size for trace in ours.traces)

    tracemalloc.start()
    try:
        first, second = feed(), feed()
    finally:
        tracemalloc.stop()
    assert second < first * 1.25


def test_snapshots_while_records_come() -> None:
    statistics, _ = statistics_and_clock()
    stop = threading.Event()

    def feed() -> None:
        while not stop.is_set():
            statistics.add(record())
            statistics.note_turn(0.001, 3)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        for _ in range(200):
            snapshot = statistics.snapshot()
            assert (
                snapshot.succeeded
                == snapshot.times["run"].count
                == sum(row.succeeded for row in snapshot.places)
            )
    finally:
        stop.set()
        thread.join()


def test_the_number_in_flight_is_known_for_every_second_also_when_nothing_ends() -> None:
    statistics, clock = statistics_and_clock()
    for level in (5, 9, 2):
        statistics.note_turn(0.001, level)
        clock.now += 1.0
    statistics.note_turn(0.001, 4)
    assert [point.in_flight for point in statistics.snapshot().points] == [5, 9, 2]


def test_a_point_has_a_95th_percentile_only_where_its_requests_can_tell() -> None:
    statistics, clock = statistics_and_clock()
    for count in (NEEDED["p95"] - 1, NEEDED["p95"]):
        for _ in range(count):
            statistics.add(record(run_s=0.5))
        clock.now += 1.0
    few, enough = (point.run for point in statistics.snapshot().points)
    assert (few.p95_s, few.p50_s, few.high_s) == (None, pytest.approx(0.5, rel=0.01), 0.5)
    assert enough.p95_s == pytest.approx(0.5, rel=0.01)


def test_what_is_asked_for_is_known_for_every_second() -> None:
    statistics, clock = statistics_and_clock()
    statistics.note_asked(4)
    clock.now += 2.0
    # given a change long after the last turn of the loop, and a pause within a second
    statistics.note_asked(8)
    clock.now += 1.5
    statistics.note_asked(0)
    clock.now += 2.5
    asked = [point.asked for point in statistics.snapshot().points]
    assert asked == [4, 4, 8, 8, 0, 0]
