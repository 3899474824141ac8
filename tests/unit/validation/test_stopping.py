"""When a step ends: not before there is enough, not before thresholds can be told, never after its
longest time.
"""

import random
from itertools import accumulate

import pytest

from scaletest.stats.completions import Completions
from scaletest.validation.judging.drift import has_settled
from scaletest.validation.judging.slow_requests import Tail
from scaletest.validation.judging.step_parts import StepPart
from scaletest.validation.judging.stopping import CAUSE_S, Stop, Stopping, requirements_of
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.judging.warm_up import cut_warm_up
from scaletest.validation.plan import Plan


def course(workers: int, seconds: float, until: float, spread: float = 0.0) -> Completions:
    """Completions by a time."""
    chance = random.Random(workers)
    ends: dict[str, list[float]] = {}
    for number in range(workers):
        at, times = 0.0, []
        while (at := at + seconds * max(0.05, chance.gauss(1, spread))) <= until:
            times.append(at)
        ends[f"w{number}"] = times
    return Completions({name: times for name, times in ends.items() if times})


def stopped(
    plan: Plan, workers: int, before: StepPart | None, spread: float = 0.0, length_s: float = 0.0
) -> tuple[Stop, float]:
    """Why and when a step ends that is looked at ten times a second."""
    rule = Stopping(plan, workers, before, length_s)
    for tenth in range(1, 100000):
        now = tenth / 10
        ends = course(workers, plan.seconds, now, spread)
        stop = rule.decide(ends.total, now, lambda ends=ends: (ends, 0.0))  # type: ignore[misc]
        if stop:
            return stop, now
    raise AssertionError("it never stopped")


def base(workers: int, per_s: float, relative: float = 0.01) -> StepPart:
    rate = Throughput(per_s, per_s * relative, 100, 99, True)
    return StepPart(
        workers, 0, 100.0, 50.0, rate, Tail(100 - workers, workers / per_s, relative / 2, ())
    )


def test_short_requests_are_measured_for_a_second_each_way() -> None:
    assert stopped(Plan(limit=1, seconds=0.01), 1, None) == (Stop.PRECISE, 1.0)


def test_a_clear_doubling_ends_before_the_interval_is_narrow() -> None:
    plan = Plan(limit=2, scale=1.5, seconds=10.0)
    decided, at = stopped(plan, 2, base(1, 0.1), spread=0.1)
    longest, later = stopped(plan, 2, None, spread=0.1)
    assert (decided, longest) == (Stop.DECIDED, Stop.LONGEST)
    assert at < later


def test_a_doubling_that_fails_is_measured_on_until_its_cause_can_be_known() -> None:
    plan = Plan(limit=2, seconds=0.1)
    # given 20 requests/s of two workers, where one did 10 and where it did 19
    assert stopped(plan, 2, base(1, 10.0, 0.001))[1] == pytest.approx(1.0, abs=0.11)
    assert stopped(plan, 2, base(1, 19.0, 0.001))[1] == pytest.approx(CAUSE_S, abs=0.6)
    # expect no more than the longest time of a step
    brief = Plan(limit=2, seconds=0.1, max_step_s=4.0)
    assert stopped(brief, 2, base(1, 19.0, 0.001))[1] <= 2.0


def test_parts_of_a_mirrored_step_are_half_as_long() -> None:
    # given requests of 1 s, expect the look to end a part that sees what those in flight will make
    # 4 of one worker, and 2 of each of four
    plan = Plan(limit=4)
    assert stopped(plan, 1, None) == (Stop.PRECISE, pytest.approx(3.0, abs=0.11))
    assert stopped(plan, 4, base(2, 2.0, 0.001)) == (Stop.PRECISE, pytest.approx(1.0, abs=0.11))
    assert stopped(Plan(limit=1, step_s=5), 1, None) == (Stop.FIXED, 3.5)
    assert stopped(Plan(limit=1, max_step_s=20), 1, None, spread=0.5) == (
        Stop.LONGEST,
        10.0,
    )


@pytest.mark.parametrize("max_step_s", [0.0, 110.0, 300.0])
def test_every_part_is_longer_than_its_warm_up(max_step_s: float) -> None:
    plan = Plan(limit=1, max_step_s=max_step_s, warmup_s=100.0 if max_step_s else 50.0)
    assert plan.longest_part_s > plan.warmup_s
    assert 2 * (plan.longest_part_s - plan.warmup_s) <= plan.longest_s - plan.warmup_s


def test_steady_requests_behind_a_known_warm_up_end_a_part_as_early_as_without() -> None:
    # given a warm-up of 5 s, after which what is in flight at 5.5 s makes two requests of each
    # worker by 6 s
    plan = Plan(limit=4, warmup_s=5.0)
    assert stopped(plan, 4, base(2, 2.0, 0.001)) == (Stop.PRECISE, pytest.approx(5.5, abs=0.11))


def test_few_alike_requests_do_not_end_a_part_of_scattering_ones() -> None:
    # given requests that scatter by 10 %, of which the first three of one worker are alike by
    # chance now and then
    plan = Plan(limit=1)
    early = 0
    for seed in range(200):
        chance = random.Random(seed)
        ends = Completions({"w0": list(accumulate(chance.gauss(1, 0.1) for _ in range(3)))})
        rule = Stopping(plan, 1, None)
        early += rule.decide(3, 3.3, lambda ends=ends: (ends, 0.0)) is not None  # type: ignore[misc]
    assert early <= 4


def test_the_way_down_is_as_long_as_the_way_up_and_has_requests_enough() -> None:
    plan = Plan(limit=4)
    assert stopped(plan, 4, None, length_s=7.0) == (Stop.MIRRORED, pytest.approx(7.0, abs=0.01))
    # a machine that has become slower is waited for, so that what then runs makes two of each
    assert stopped(Plan(limit=4, seconds=3.0), 4, None, length_s=2.0)[1] == pytest.approx(
        3.0, abs=0.11
    )


def test_a_percentile_is_waited_for() -> None:
    plan = Plan(limit=1, seconds=0.2, thresholds=("wait.p90<1s",))
    stop, at = stopped(plan, 1, None)
    assert stop is Stop.PRECISE
    # 2 x 29 requests of 0.2 s on both ways
    assert at >= 29 * 0.2 - 0.01


def test_requests_that_end_after_the_last_look_leave_a_step_steady() -> None:
    # given sleeps of 0.4 s of 8 workers on a noisy machine, and steps that a look at 2 s finds to
    # have settled
    chance, doubted = random.Random(3), 0
    for _ in range(300):
        noise = [
            [0.4 + chance.choice((0.01, chance.expovariate(20))) for _ in range(5)]
            for _ in range(8)
        ]
        whole = Completions({f"w{n}": list(accumulate(row)) for n, row in enumerate(noise)})
        rule = Stopping(Plan(limit=8, seconds=0.4, precision=0.5), 8, None)
        by_worker = whole.by_worker.items()
        so_far = Completions({name: [at for at in row if at < 2] for name, row in by_worker})
        if rule.decide(so_far.total, 2.0, lambda so_far=so_far: (so_far, 0.0)) is None:  # type: ignore[misc]
            continue
        # when the requests in flight have ended, expect the cut of that look, and a rate
        warm = cut_warm_up(whole, None, 0.0, rule.warm_at_s)
        assert has_settled(warm)
        assert throughput(warm.rest, 8).enough
        assert [len(row) for row in warm.rest.by_worker.values()] == [
            sum(at >= (rule.warm_at_s or 0.0) for at in row) for row in whole.by_worker.values()
        ]
        doubted += not has_settled(cut_warm_up(whole, None, 0.0))
    # as there are steps that would be in doubt without it
    assert doubted > 2


def test_a_look_that_ends_no_step_sets_no_warm_up() -> None:
    rule = Stopping(Plan(limit=1), 1, None)
    assert rule.decide(2, 2.0, lambda: (Completions({"w0": [1.0, 2.0]}), 0.0)) is None
    assert rule.warm_at_s is None


@pytest.mark.parametrize(
    ("threshold", "workers", "requests", "precise"),
    [
        ("run.p99<1s", 1, 598, False),
        ("run.p99(2)<1s", 1, 0, False),
        ("efficiency(4)>=0.8", 1, 0, True),
        ("efficiency(4)>=0.8", 2, 0, False),
        ("ratio(4)>=1.8", 2, 0, True),
        ("failures<1%", 2, 0, False),
    ],
)
def test_thresholds_ask_for_what_they_need(
    threshold: str, workers: int, requests: int, precise: bool
) -> None:
    wanted = requirements_of(Plan(limit=4, thresholds=(threshold,)), workers)
    assert (wanted.requests, wanted.precise) == (requests, precise)
