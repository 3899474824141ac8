"""How many points a law needs, and whether a plan can tell contention from coherency."""

from __future__ import annotations

import random
import statistics
from typing import Any

import pytest

from scaletest.analysis.law import (
    PARAMETERS,
    REFERENCE,
    Law,
    choose,
    coefficient_errors,
    fit,
    inseparable,
    lacking,
    repeats_needed,
)
from scaletest.cli import validate
from scaletest.model import Plan
from scaletest.validation import launch


def test_single_points_ask_for_more_steps_or_repeats() -> None:
    plan = lacking([1, 2, 4, 8])
    assert set(plan) == {"usl"}
    assert plan["usl"].remedy == "measure 1 more step, or each step 2 times"
    assert set(lacking([1, 2, 4])) == {"amdahl", "usl", "capped"}
    assert lacking([1, 2, 4, 8, 16]) == {}


def test_repeats_do_not_replace_steps() -> None:
    plan = lacking([1, 2] * 10)
    assert {name: (lack.steps, lack.repeats) for name, lack in plan.items()} == {
        "usl": (1, None),
        "capped": (1, None),
    }
    assert plan["usl"].remedy == "measure 1 more step"
    choice = choose([(1, 1.0), (1, 1.1), (2, 1.6), (2, 1.5), (2, 1.55)])
    assert choice is not None
    assert choice.too_few == ("usl", "capped")


@pytest.mark.parametrize("distinct", range(1, 9))
def test_repeats_needed_are_just_enough(distinct: int) -> None:
    steps = [float(2**number) for number in range(distinct)]
    for name, repeats in repeats_needed(distinct).items():
        if repeats is None:
            assert name in lacking(steps * 50)
            continue
        assert name not in lacking(steps * repeats)
        assert distinct * repeats >= PARAMETERS[name] + 2
        assert repeats == 1 or name in lacking(steps * (repeats - 1))


@pytest.mark.parametrize(
    ("workers", "repeats", "noise", "separable"),
    [
        ((1, 2, 4, 8), 3, 0.05, False),
        (range(1, 9), 3, 0.05, False),
        (range(1, 9), 3, 0.02, True),
        ((1, 2, 4, 8, 16), 5, 0.05, True),
        ((1, 2, 4, 8, 16), 1, 0.02, True),
        ((1, 2, 4, 8, 16), 1, 0.08, False),
        ((1, 2, 4, 8, 16), 1, 0.01, True),
        ((1, 2, 4), 50, 0.001, False),
        ((1, 2), 50, 0.001, False),
        ((1,), 3, 0.02, False),
    ],
)
def test_plans_are_judged_by_whether_they_separate_the_laws(
    workers: tuple[int, ...], repeats: int, noise: float, separable: bool
) -> None:
    doubt = inseparable(workers, repeats, noise)
    assert (not doubt) is separable
    assert (": not enough to separate" in doubt) is not separable


def test_the_suggested_steps_or_repeats_suffice() -> None:
    doubt = inseparable((1, 2, 4, 8), 3, 0.05)
    assert doubt.endswith("go up to 16 workers or measure each step 12 times")
    assert not inseparable((1, 2, 4, 8, 16), 3, 0.05)
    assert not inseparable((1, 2, 4, 8), 12, 0.05)
    assert inseparable((1, 2, 4, 8), 11, 0.05)


def test_single_points_outside_the_fit_do_not_separate_laws() -> None:
    # given four single points with little noise, when the law needs five, expect no, and two
    # repeats to do
    _, coherency_error, _ = coefficient_errors((1, 2, 4, 8), 1, 0.01, REFERENCE)
    assert coherency_error < REFERENCE.coherency / 4
    assert inseparable((1, 2, 4, 8), 1, 0.01).endswith("or measure each step 2 times")


def test_noise_beyond_any_number_of_repeats_is_reported() -> None:
    doubt = inseparable((1, 2), 1, 10.0, Law("usl", 1.0, 0.9, 0.0))
    assert doubt.endswith("; for that measure with less noise")


@pytest.mark.parametrize(
    ("workers", "repeats", "noise", "share"),
    [
        ((1, 2, 4, 8, 16), 1, 0.02, 1.0),
        ((1, 2, 4, 8, 16), 1, 0.08, 0.02),
        ((1, 2, 4, 8), 3, 0.05, 0.33),
        ((1, 2, 4, 8), 2, 0.02, 0.74),
        ((1, 2, 4, 8, 16), 2, 0.02, 1.0),
    ],
)
def test_separable_plans_name_the_law_and_others_seldom_do(
    workers: tuple[int, ...], repeats: int, noise: float, share: float
) -> None:
    chance = random.Random(1)
    named = 0
    for _ in range(100):
        points = [
            (n, REFERENCE.at(n) * (1 + chance.gauss(0, noise)))
            for n in workers
            for _ in range(repeats)
        ]
        choice = choose(points, [noise] * len(points) if repeats == 1 else None)
        named += choice is not None and choice.law.name == "usl"
    assert named / 100 == pytest.approx(share, abs=0.12)
    assert (not inseparable(workers, repeats, noise)) is (share > 0.5)


@pytest.mark.parametrize(
    ("workers", "repeats", "noise"), [(range(1, 9), 3, 0.02), ((1, 2, 4, 8, 16), 5, 0.05)]
)
def test_computed_errors_are_those_of_simulated_fits(
    workers: tuple[int, ...], repeats: int, noise: float
) -> None:
    chance = random.Random(3)
    laws = [
        fit(
            "usl",
            [
                (n, REFERENCE.at(n) * (1 + chance.gauss(0, noise)))
                for n in workers
                for _ in range(repeats)
            ],
        )
        for _ in range(400)
    ]
    contention_error, coherency_error, correlation = coefficient_errors(
        sorted(workers), repeats, noise, REFERENCE
    )
    assert statistics.stdev(law.contention for law in laws) == pytest.approx(
        contention_error, rel=0.15
    )
    assert statistics.stdev(law.coherency for law in laws) == pytest.approx(
        coherency_error, rel=0.15
    )
    both = statistics.correlation([law.contention for law in laws], [law.coherency for law in laws])
    assert both == pytest.approx(correlation, abs=0.05)


def test_a_run_warns_of_its_law_only_where_a_threshold_needs_it() -> None:
    few: dict[str, Any] = {"limit": 4, "order": "mirrored", "queue": "q"}
    assert launch.doubts(Plan(**few), lambda plan: ())
    assert not launch.doubts_before(Plan(**few), lambda plan: ())
    bounded = Plan(**few, thresholds=("contention<5%",))
    (warning,) = launch.doubts_before(bounded, lambda plan: ())
    assert warning == launch.doubts(bounded, lambda plan: ())[0]


def test_the_steps_that_are_usual_are_enough_for_a_law() -> None:
    usual = {option.name: option.default for option in validate.command.params}
    plan = Plan(limit=usual["limit"], order=usual["order"], queue="q")
    assert not launch.doubts(plan, lambda plan: ())
