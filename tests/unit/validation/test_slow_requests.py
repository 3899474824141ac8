"""Slow requests: which are slow, how sure their share is, and what they do to a ratio."""

import math
import random
from itertools import accumulate

import pytest
from scipy import stats

from scaletest.model import VerdictKind
from scaletest.stats.completions import MOST_FILLED, Completions
from scaletest.validation.judging.doubling import WIDENED_BY_SLOW_REQUESTS, doubling_ratio
from scaletest.validation.judging.machine_trend import MachineTrend
from scaletest.validation.judging.slow_requests import (
    Tail,
    find_slow,
    join_tails,
    share_bounds,
    slowdowns,
)
from scaletest.validation.judging.step_parts import StepPart
from scaletest.validation.judging.throughput import throughput
from scaletest.validation.plan import Plan

PLAN = Plan(limit=2)
Z = 1.645


def ends(*cycles: float) -> Completions:
    return Completions({"w0": list(accumulate(cycles, initial=0.0))})


def part(workers: int, repeat: int, cycles: list[float]) -> StepPart:
    """Workers that share these cycles, one after the other."""
    rows = Completions(
        {
            f"w{index}": list(accumulate(cycles[index::workers], initial=0.0))
            for index in range(workers)
        }
    )
    return StepPart(
        workers, repeat, 100.0, 50.0 + 200.0 * repeat, throughput(rows, workers), find_slow(rows)
    )


def test_requests_of_more_than_three_times_the_usual_length_are_slow() -> None:
    measured_tail = find_slow(ends(1.0, 1.1, 0.9, 2.9, 3.5, 1.0, 1.0))
    assert (measured_tail.slow, measured_tail.count) == (1, 7)
    assert measured_tail.usual_s * (1.0 + measured_tail.excess[0]) == pytest.approx(3.5)
    # and the mean is that of the usual ones times 1 + share x excess
    mean = measured_tail.usual_s * (
        1 + measured_tail.slow / measured_tail.count * measured_tail.excess[0]
    )
    assert mean == pytest.approx((1.0 + 1.1 + 0.9 + 2.9 + 3.5 + 1.0 + 1.0) / 7)


def test_a_worker_on_a_slow_device_is_not_slow_beside_itself() -> None:
    rows = {"fast": list(accumulate([1.0] * 9)), "slow": list(accumulate([4.0] * 9))}
    assert find_slow(Completions(rows)).slow == 0


def test_without_slow_requests_the_course_stays_what_it_was() -> None:
    rows = ends(1.0, 1.1, 0.9)
    assert rows.with_slow_cycles_filled is rows
    # and in a slow one the worker goes on as usual, so that all other times stay as they are
    filled = ends(1.0, 1.0, 4.0, 1.0, 1.0).with_slow_cycles_filled.by_worker["w0"]
    assert filled == pytest.approx([0, 1, 2, 3, 4, 5, 6, 7, 8])


@pytest.mark.parametrize(
    ("count", "total"), [(0, 30), (1, 60), (3, 200), (30, 1500), (400, 800), (20, 20)]
)
def test_bounds_of_a_share_are_close_to_the_exact_ones(count: int, total: int) -> None:
    low, high = share_bounds(count, total, Z)
    exact_low = stats.beta.ppf(0.05, count, total - count + 1) if count else 0.0
    exact_high = stats.beta.ppf(0.95, count + 1, total - count) if count < total else 1.0
    assert low == pytest.approx(exact_low, abs=0.15 * max(exact_low, 1 / total))
    # never much below it, and above it where there are few
    assert 0.98 * exact_high <= high <= 1.2 * exact_high


def test_no_requests_have_no_slow_ones() -> None:
    assert find_slow(Completions({})).count == 0
    assert join_tails([find_slow(Completions({})), find_slow(Completions({"w": [1.0]}))]).count == 0


def test_parts_of_a_step_join_to_the_whole() -> None:
    first, second = [1.0, 1.2, 5.0, 0.8], [1.1, 0.9, 1.0, 1.0, 6.0]
    both = join_tails([find_slow(ends(*first)), find_slow(ends(*second))])
    assert (both.slow, both.count) == (2, 9)
    assert both.usual_s == pytest.approx(1.0)


@pytest.mark.parametrize("shaken", [1.0, 2.0])
def test_slow_requests_seen_by_chance_in_one_step_leave_its_ratio_open(shaken: float) -> None:
    # given two workers that do twice as much as one, of whose 120 requests two took 20 times as
    # long; also in a run whose ways differ by more than chance somewhere
    single = [part(1, repeat, [1.0, 1.01, 0.99] * 10) for repeat in (0, 1)]
    double = [part(2, repeat, [1.0, 1.01, 0.99] * 19 + [20.0, 1.0, 1.0]) for repeat in (0, 1)]
    ratio = doubling_ratio(single, double, PLAN, trend=MachineTrend(scatter_factor=shaken))
    # expect neither PASS nor FAIL, since one worker may only have missed them, and no word of a
    # change of the machine: what would tell is more requests
    assert ratio is not None and ratio.kind is VerdictKind.INVALID
    assert ratio.low < 1.8 < ratio.high
    assert ratio.up == pytest.approx(ratio.down)
    assert ratio.widened_by == WIDENED_BY_SLOW_REQUESTS


def test_slow_requests_that_come_with_the_second_worker_fail_it() -> None:
    chance = random.Random(3)

    def cycles(count: int, share: float) -> list[float]:
        return [
            chance.gauss(1, 0.05) * (20 if chance.random() < share else 1) for _ in range(count)
        ]

    single = [part(1, repeat, cycles(1000, 0.0)) for repeat in (0, 1)]
    double = [part(2, repeat, cycles(2000, 0.05)) for repeat in (0, 1)]
    measured_tail = doubling_ratio(single, double, PLAN)
    assert measured_tail.kind is VerdictKind.FAIL
    assert measured_tail.low < 2 / (1 + 0.05 * 19) < measured_tail.high


def test_lengths_of_slow_requests_are_shared_unless_they_differ() -> None:
    alike = slowdowns(Tail(90, 1.0, 0.01, (4.0,) * 10), Tail(90, 1.0, 0.01, (4.0,) * 10), Z)
    assert alike[0] == alike[1]
    longer = slowdowns(
        Tail(90, 1.0, 0.01, tuple(4.0 + n / 10 for n in range(10))),
        Tail(90, 1.0, 0.01, tuple(40.0 + n / 10 for n in range(10))),
        Z,
    )
    assert longer[0].value == pytest.approx(math.log1p(0.1 * 4.45))
    assert longer[1].value == pytest.approx(math.log1p(0.1 * 40.45))


def test_a_long_stop_among_short_requests_is_filled_with_a_bounded_number() -> None:
    # given requests of a microsecond and one stop of a thousand seconds, which would be a thousand
    # million of them
    times = [index * 1e-6 for index in range(10)]
    filled = Completions({"w": [*times, 1000.0]}).with_slow_cycles_filled.by_worker["w"]
    assert len(filled) == len(times) + MOST_FILLED
    assert (filled[0], filled[-1]) == (times[0], 1000.0)
