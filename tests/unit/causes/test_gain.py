"""What a run would gain without its main cause, and how it says so."""

import math
import random
from dataclasses import replace

import pytest

from scaletest.causes.causes import Cause, Causes
from scaletest.causes.gain import BETWEEN_RUNS, gain_without_cause
from scaletest.causes.places import GAP
from scaletest.causes.statement import cause_statement, short_cause
from scaletest.model import State
from scaletest.stats.estimate import Estimate
from scaletest.stats.scaling import MeasuredThroughput
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from tests.unit.activities import Injected, run
from tests.unit.causes.test_causes import INJECTED, plan

FIRST = MeasuredThroughput(1, 10.0, 0.0)
STUCK = MeasuredThroughput(4, 20.0, 0.0)
WHOLE = Estimate(1.0, 1.0, 1.0)


def caused(state: str = State.FILE_LOCK, named: str = "", share: Estimate = WHOLE) -> Causes:
    grown = Estimate(0.1, 0.09, 0.11)
    cause = Cause(state, share, grown, 0.02, 0.12, named, "sentence", "remedy")
    return Causes(2, 4, (cause,), grown, 1.0, 1.0, "", None, ())


def evaluated(injected: Injected, seed: int) -> Evaluation:
    measurements, records, _ = run(injected, plan().steps, seed=seed)
    return evaluate(plan(), measurements, records, random.Random(seed))


@pytest.mark.parametrize("name", ["file lock", "service"])
def test_a_run_promises_what_the_same_program_does_without_its_bottleneck(name: str) -> None:
    injected, _, _ = INJECTED[name]
    unlimited = replace(injected, slots=dict.fromkeys(injected.slots, 64))
    kept = 0
    for seed in range(6):
        gain = evaluated(injected, seed).gain
        assert gain is not None and gain.speedup.high < gain.without.value
        free = evaluated(unlimited, seed + 100).growth.scaling
        reached = next(step.speedup.value for step in free if step.workers == gain.workers)
        kept += gain.without.low <= reached <= gain.without.high
    assert kept == 6


def test_without_half_of_the_growth_a_cycle_grows_by_the_other_half() -> None:
    half = caused(share=Estimate(0.5, 0.5, 0.5))
    gain = gain_without_cause(half, half, FIRST, STUCK)
    assert gain is not None
    # cycles of 0.1 and 0.2 s
    assert gain.without.value == pytest.approx(4 / 0.15 / 10)
    assert gain.speedup.value == pytest.approx(2.0)


def test_an_interval_is_as_wide_as_two_runs_differ_at_least() -> None:
    gain = gain_without_cause(caused(), caused(), FIRST, STUCK)
    assert gain is not None
    assert gain.without.value == pytest.approx(4.0)
    assert math.log(gain.without.high / gain.without.low) == pytest.approx(2 * BETWEEN_RUNS)


def test_an_uncertain_share_and_uncertain_rates_widen_it() -> None:
    exact = gain_without_cause(caused(), caused(), FIRST, STUCK)
    shared = caused(share=Estimate(1.0, 0.5, 1.0))
    vague = gain_without_cause(shared, shared, FIRST, STUCK)
    part = caused(share=Estimate(0.5, 0.5, 0.5))
    exact_part = gain_without_cause(part, part, FIRST, STUCK)
    noisy = gain_without_cause(part, part, FIRST, replace(STUCK, relative=0.1))
    assert exact and vague and exact_part and noisy
    assert vague.without.low < 2.7 and vague.without.high == exact.without.high
    assert noisy.without.low < exact_part.without.low
    assert noisy.without.high > exact_part.without.high


def test_nothing_is_gained_where_no_cause_is_named() -> None:
    unknown = replace(caused(), headline="unknown: 90% was not observed")
    assert gain_without_cause(unknown, unknown, FIRST, STUCK) is None
    assert gain_without_cause(None, None, FIRST, STUCK) is None


@pytest.mark.parametrize(
    ("state", "named", "statement", "short"),
    [
        (
            State.FILE_LOCK,
            "/tmp/the.lock",
            "4 workers wait 0.12 s of each request for the lock /tmp/the.lock",
            "file lock the.lock",
        ),
        (
            State.CPU_WAIT,
            "",
            "4 workers wait 0.12 s of each request for a CPU",
            "waiting for a CPU",
        ),
        (
            State.PIPE,
            "/run/tokens (tokens)",
            "4 workers wait 0.12 s of each request for a token in the pipe /run/tokens",
            "pipe tokens",
        ),
        (
            State.SLEEP,
            "/data/a.sqlite",
            "4 workers sleep 0.12 s of each request between attempts to lock /data/a.sqlite",
            "sleep a.sqlite",
        ),
        (State.ON_CPU, "", "with 4 workers each request computes 0.1 s longer", "on a CPU"),
        (GAP, "", "4 workers are idle for 0.12 s before each request", "worker idle"),
    ],
)
def test_the_main_cause_in_a_sentence_and_in_a_few_words(
    state: str, named: str, statement: str, short: str
) -> None:
    causes = caused(state, named)
    assert cause_statement(causes) == statement
    assert short_cause(causes) == short
