"""Throughput and its course: exact where it can be, honest where it cannot."""

import random
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.stats.completions import Completions
from scaletest.validation.judging.drift import (
    CUSUM_95_PERCENT,
    CUSUM_99_PERCENT,
    cusum,
    find_drift,
    has_settled,
    may_still_change,
)
from scaletest.validation.judging.throughput import throughput
from scaletest.validation.judging.warm_up import cut_by_mser, mser_cut


def even(workers: int, seconds: float, count: int, offset: float = 0.0) -> Completions:
    return Completions(
        {f"w{n}": [100 + n * offset + i * seconds for i in range(count)] for n in range(workers)}
    )


def noisy(chance: random.Random, workers: int, count: int, spread: float = 0.1) -> Completions:
    ends: dict[str, list[float]] = {}
    for number in range(workers):
        at = 0.0
        ends[f"w{number}"] = [at := at + max(0.05, chance.gauss(1, spread)) for _ in range(count)]
    return Completions(ends)


@pytest.mark.parametrize("offset", [0.0, 0.07])
def test_workers_in_lockstep_are_counted_exactly(offset: float) -> None:
    # given 8 workers that finish in bursts every half second, when measured, expect 16 a second,
    # not 17
    assert throughput(even(8, 0.5, 10, offset), 8).per_s == pytest.approx(16.0)


def test_devices_of_different_speed_add_up() -> None:
    ends = {"fast": [float(n) for n in range(61)], "slow": [3.0 * n for n in range(21)]}
    assert throughput(Completions(ends), 2).per_s == pytest.approx(1 + 1 / 3, rel=1e-6)


@given(st.integers(1, 5), st.floats(0.01, 100), st.integers(9, 40), st.floats(0, 1))
def test_perfectly_even_completions_have_an_interval_of_zero_width(
    workers: int, seconds: float, count: int, offset: float
) -> None:
    rate = throughput(even(workers, seconds, count, offset * seconds), workers)
    assert rate.per_s == pytest.approx(workers / seconds, rel=1e-6)
    assert rate.relative < 1e-4


@pytest.mark.parametrize(("workers", "count"), [(1, 30), (4, 10), (16, 5)])
def test_interval_covers_the_truth(workers: int, count: int) -> None:
    covered = 0
    for seed in range(400):
        rate = throughput(noisy(random.Random(seed), workers, count), workers)
        covered += abs(rate.per_s - workers) <= rate.half_width
    assert 0.92 <= covered / 400 <= 0.99


def lasting(chance: random.Random, count: int, correlation: float) -> list[float]:
    """Completions of a worker whose cycles follow each other alike, as a first-order
    autoregression does, 10 % around 1 s.
    """
    deviation, cycles = chance.gauss(0, 1), []
    for _ in range(count):
        noise = chance.gauss(0, 1)
        deviation = correlation * deviation + (1 - correlation**2) ** 0.5 * noise
        cycles.append(max(0.05, 1 + 0.1 * deviation))
    return list(accumulate(cycles, initial=chance.random()))


def test_few_cycles_that_follow_each_other_alike_still_have_a_useful_interval() -> None:
    """The correlation of so few is hardly known, and at its highest it would leave less than one
    degree of freedom.
    """
    covered, widest = 0, 0.0
    for seed in range(200):
        chance = random.Random(seed)
        ends = {f"w{index}": lasting(chance, 9, 0.9) for index in range(8)}
        rate = throughput(Completions(ends), 8)
        covered += abs(rate.per_s - 8) <= rate.half_width
        widest = max(widest, rate.relative)
    assert covered >= 0.92 * 200
    assert widest < 0.3


def shared(chance: random.Random, workers: int, count: int) -> Completions:
    """All workers slow down and speed up together: correlation 0.6 from second to second, by 10
    %.
    """
    course, z = [], 0.0
    for _ in range(count * 2):
        z = 0.6 * z + 0.8 * chance.gauss(0, 1)
        course.append(max(0.3, 1 + 0.1 * z))
    ends: dict[str, list[float]] = {}
    for number in range(workers):
        at = chance.random() * 0.1
        ends[f"w{number}"] = [at := at + course[int(at)] for _ in range(count)]
    return Completions(ends)


def test_fluctuations_that_all_workers_share_widen_the_interval() -> None:
    # given 8 workers whose run times rise and fall together, when the 8 are taken as independent,
    # the interval would cover the truth in about half of the runs; expect over 90 %
    covered = 0
    for seed in range(200):
        rate = throughput(shared(random.Random(seed), 8, 60), 8)
        covered += abs(rate.per_s - 8 / 1.0) <= rate.half_width
    assert covered / 200 >= 0.9


def test_too_few_requests_are_not_enough_for_a_rate() -> None:
    assert not throughput(Completions({}), 1).enough
    assert not throughput(even(1, 1.0, 3), 1).enough
    assert throughput(even(1, 1.0, 4), 1).enough
    assert not throughput(even(4, 1.0, 1), 4).enough
    # given a worker that never finished anything
    assert not throughput(even(3, 1.0, 10), 4).enough
    # given workers that never worked at the same time
    assert not throughput(Completions({"a": [1.0, 2, 3, 4], "b": [5.0, 6, 7, 8]}), 2).enough


ends_strategy = st.dictionaries(
    st.text(min_size=1, max_size=3),
    st.lists(st.floats(0, 1e9), max_size=30).map(sorted),
    max_size=5,
).map(Completions)


@given(ends_strategy, st.integers(1, 5))
def test_any_completions_give_a_throughput(ends: Completions, workers: int) -> None:
    rate = throughput(ends, workers)
    assert rate.per_s >= 0
    assert rate.half_width >= 0
    warm = cut_by_mser(ends)
    throughput(warm.rest, workers)
    find_drift(warm.rest)
    may_still_change(warm.rest)


@given(ends_strategy, st.integers(1, 20))
def test_progress_adds_up(ends: Completions, bins: int) -> None:
    first, last = ends.span
    if last - first > 1e-3:
        whole = sum(ends.progress((first, last)))
        parts = sum(ends.rates(bins)) * (last - first) / bins
        assert parts == pytest.approx(whole, rel=1e-6, abs=1e-6)


def ramped(seconds: float, ramp: int, count: int, chance: random.Random) -> Completions:
    """Requests that take up to five times as long while warming up, for the first `ramp` of
    them.
    """
    at = 0.0
    slow = [seconds * (5 - 4 * min(1, n / ramp)) if ramp else seconds for n in range(count)]
    return Completions({"w0": [at := at + cycle * chance.gauss(1, 0.05) for cycle in slow]})


def test_a_warm_up_is_cut_off_and_steady_data_are_not() -> None:
    warm = cut_by_mser(ramped(1.0, 20, 200, random.Random(1)))
    assert has_settled(warm)
    assert throughput(warm.rest, 1).per_s == pytest.approx(1.0, rel=0.02)
    steady = ramped(1.0, 0, 200, random.Random(2))
    assert cut_by_mser(steady).rest == steady


def test_a_ramp_without_end_has_not_settled() -> None:
    assert not has_settled(cut_by_mser(ramped(1.0, 200, 200, random.Random(3))))


def test_a_cut_leaves_enough_for_a_rate_and_says_that_it_asked_for_more() -> None:
    # given 16 workers whose second request takes longer than the two that follow, which are all
    # that MSER would keep
    times = {f"w{n}": [n / 99, 5 + n / 99, 8 + n / 99, 11 + n / 99] for n in range(16)}
    # when the warm-up is cut off
    warm = cut_by_mser(Completions(times))
    # then three of each remain, the rate is known, and the step is not called settled
    assert throughput(warm.rest, 16).enough
    assert not has_settled(warm)
    assert warm.share > 0


@given(st.lists(st.lists(st.floats(0.01, 9), min_size=8, max_size=20), min_size=1, max_size=16))
def test_no_cut_takes_what_a_rate_needs(gaps: list[list[float]]) -> None:
    ends = Completions({f"w{n}": list(accumulate(cycle)) for n, cycle in enumerate(gaps)})
    if throughput(ends, len(gaps)).enough:
        rest = cut_by_mser(ends).rest
        assert throughput(rest, len(gaps)).completions >= 8
        assert rest.fewest >= 3


def test_mser_cuts_the_warm_up_where_throughput_becomes_flat() -> None:
    assert mser_cut([1, 2, 3, 4, *[9.9, 10.1] * 8]) == 4
    assert mser_cut([10.0] * 20) == 0


@pytest.mark.parametrize(("limit", "share"), [(CUSUM_95_PERCENT, 0.05), (CUSUM_99_PERCENT, 0.01)])
def test_cusum_raises_false_alarms_as_often_as_it_says(limit: float, share: float) -> None:
    chance = random.Random(7)
    alarms = sum(cusum([chance.gauss(0, 1) for _ in range(20)])[0] > limit for _ in range(8000))
    assert alarms / 8000 == pytest.approx(share, rel=0.15)


def test_a_shift_is_found_where_it_happened() -> None:
    chance = random.Random(5)
    at = 0.0
    times = [at := at + (1.0 if n < 300 else 1.08) * chance.gauss(1, 0.05) for n in range(500)]
    rate = find_drift(Completions({"w0": times}))
    assert rate.unsteady
    assert rate.shift == pytest.approx(-0.074, abs=0.02)
    assert rate.shift_at_s == pytest.approx(300, abs=40)


def test_rising_sees_a_ramp_and_no_noise() -> None:
    assert may_still_change(ramped(1.0, 30, 30, random.Random(1)))
    calm = sum(not may_still_change(noisy(random.Random(seed), 1, 60)) for seed in range(100))
    assert calm >= 80


def test_two_cycles_of_each_worker_are_enough_for_a_spread_of_its_own() -> None:
    # workers that differ and do not vary: all cycles in one bag would scatter
    rate = throughput(Completions({"quick": [0.0, 1.0, 2.0], "slow": [0.0, 10.0, 20.0]}), 2)
    assert rate.half_width == 0.0
