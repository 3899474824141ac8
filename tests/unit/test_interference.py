"""What disturbed a run: named with its time and figure, and nothing named that the requests did
themselves.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.evaluation import Evaluation, evaluate
from scaletest.analysis.interference import between, busy
from scaletest.analysis.judge import CHANGES
from scaletest.analysis.resources import clock_text
from scaletest.model import Activity, Measurement, Plan, Record, State, VerdictKind
from scaletest.model.measurement import FIGURES, NodeSample
from tests.unit import runs
from tests.unit.made import Records
from tests.unit.node_samples import Resources, cpu, samples_of
from tests.unit.valid import checked

DEVICE = "device:/dev/dri/renderD128"
PLAN = Plan(limit=2, seconds=0.3, queue="q")


def computing(workers: int, count: int = 80, cpu_s: float = 0.3) -> list[Record]:
    """Requests of 0.3 s that each say how much CPU time they used; steps follow each other."""
    rows = runs.rows(workers, 0.3, count, at_s=100.0 * workers, noise=0.05)
    activity = Activity({State.ON_CPU: 0.3}, cpu_s=cpu_s)
    return [
        replace(row, reply=replace(row.reply, node="node-a", activity=activity if cpu_s else None))
        for row in rows
    ]


def evaluated(read: Callable[[str, int, float], Resources], cpu_s: float = 0.3) -> Evaluation:
    records: Records = {(n, 0): computing(n, cpu_s=cpu_s) for n in PLAN.steps}
    samples = samples_of(records, read)
    return _judged(records, samples)


def _judged(records: Records, samples: Sequence[NodeSample]) -> Evaluation:
    measurements = [Measurement(n, 0, 0.1, 25.0, "precise") for n, _ in records]
    return evaluate(PLAN, measurements, records, random.Random(1), samples=samples)


def at(workers: int, second: int) -> float:
    """That many seconds into a step."""
    return runs.BEGAN_S + 100.0 * workers + second


def disturbed(
    read: Callable[[str, int, float], Resources], cpu_s: float = 0.3
) -> list[tuple[str, float, float]]:
    return [(spell.kind, spell.begin_s, spell.end_s) for spell in evaluated(read, cpu_s).disturbed]


def test_cpu_time_of_requests_is_no_interference() -> None:
    assert disturbed(lambda node, workers, at_s: cpu(float(workers))) == []


def test_other_programs_are_named_with_their_time_and_their_cores() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return cpu(workers + 1.3 if at(1, 8) <= at_s < at(1, 16) else float(workers), 4.0)

    result = evaluated(read)
    (spell,) = result.disturbed
    assert spell.kind == "other programs" and "1.3 of 4 cores" in spell.sentence
    assert spell.begin_s == pytest.approx(at(1, 8), abs=2.5) and spell.end_s == pytest.approx(
        at(1, 16), abs=2.5
    )
    assert spell.sentence.startswith(
        f"from {clock_text(spell.begin_s)} to {clock_text(spell.end_s)} UTC other programs"
    )
    assert spell.sentence in result.warnings
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def test_other_programs_that_run_all_the_time_are_named_too() -> None:
    result = evaluated(lambda node, workers, at_s: cpu(workers + 1.5, 8.0))
    assert [spell.kind for spell in result.disturbed] == ["other programs"] * 2
    (line,) = [line for line in result.warnings if "other programs used" in line]
    assert line.endswith(", and once more")


def test_without_cpu_time_of_requests_other_programs_are_not_reported() -> None:
    assert disturbed(lambda node, workers, at_s: cpu(workers + 2.0, 8.0), cpu_s=0.0) == []


def test_cpu_time_that_requests_may_have_used_in_one_go_is_no_interference() -> None:
    """Requests of 8 s that compute in their last second: the samples see bursts, and the requests
    only say sums.
    """
    rows = runs.rows(1, 8.0, 12, node="node-a")
    activity = Activity({State.ON_CPU: 1.0, State.SLEEP: 7.0}, cpu_s=1.0)
    rows = [
        replace(row, reply=replace(row.reply, node="node-a", activity=activity)) for row in rows
    ]
    ends = [row.reply.ended_s for row in rows]
    samples = samples_of(
        {(1, 0): rows},
        lambda node, workers, at_s: cpu(any(0 <= end - at_s < 1.0 for end in ends) * 1.0),
    )
    assert _judged({(1, 0): rows}, samples).disturbed == []


def test_a_tester_that_costs_a_notable_part_is_not_taken_for_another_program() -> None:
    rows = {
        (n, 0): [replace(row, total_s=row.total_s + 0.02) for row in computing(n)]
        for n in PLAN.steps
    }
    steady = samples_of(rows, lambda node, workers, at_s: cpu(workers + 1.0, 4.0))
    assert _judged(rows, steady).disturbed == []


@pytest.mark.parametrize(
    ("kind", "usual", "then", "text"),
    [
        ("steal", cpu(1.0), cpu(1.0, steal=0.4), "the hypervisor took 0.4 of 2 cores"),
        (
            "heat",
            cpu(1.0),
            cpu(1.0, heat_throttled=2.0),
            "heat lowered a CPU's clock 2.0 times a second",
        ),
        (
            "clock",
            cpu(1.0, frequency=0.9),
            cpu(1.0, frequency=0.6),
            "the clocks were at 60% of their highest, usua",
        ),
        (
            "pressure",
            {"pressure": {"io_some": 0.1}},
            {"pressure": {"io_some": 0.8}},
            "the pressure on disks was 80%, ",
        ),
        (
            "device",
            {DEVICE: {"throttled": 0.0}},
            {DEVICE: {"throttled": 1.0}},
            "limit lowered the clock of /dev/dri/",
        ),
    ],
)
def test_every_disturbance_is_named_with_its_time(
    kind: str, usual: Resources, then: Resources, text: str
) -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return then if at(2, 4) <= at_s < at(2, 9) else usual

    (spell,) = [spell for spell in evaluated(read).disturbed if spell.kind != "other programs"]
    assert spell.kind == kind and text in spell.sentence
    assert spell.begin_s == pytest.approx(at(2, 4), abs=1.1) and spell.end_s == pytest.approx(
        at(2, 9), abs=1.1
    )


def test_a_disturbance_of_one_sample_is_ignored() -> None:
    result = evaluated(
        lambda node, workers, at_s: cpu(1.0, steal=1.0 if at(1, 5) <= at_s < at(1, 6) else 0.0)
    )
    assert "steal" not in {spell.kind for spell in result.disturbed}


def test_too_many_disturbances_leave_the_costliest_in_the_order_of_time() -> None:
    result = evaluated(
        lambda node, workers, at_s: cpu(1.0, steal=(at_s % 40) / 20 if at_s % 4 < 2 else 0.0)
    )
    begins = [spell.begin_s for spell in result.disturbed]
    assert sum("the hypervisor took" in line for line in result.warnings) == 1
    assert any(line.endswith(", and 7 more times") for line in result.warnings)
    assert len(begins) == 8 and begins == sorted(begins)


def test_an_unsteady_step_is_invalid_with_the_disturbance_in_place_of_a_guess() -> None:
    first = runs.rows(1, 0.3, 300, at_s=100.0)
    second = runs.rows(1, 0.33, 100, at_s=100.0 + 300 * 0.302)
    activity = Activity({State.ON_CPU: 0.3}, cpu_s=0.3)
    rows = [
        replace(row, reply=replace(row.reply, node="node-a", activity=activity))
        for row in [*first, *second]
    ]
    began = runs.BEGAN_S + 100.0
    records = {
        (1, repeat): [replace(runs.later(row, 200.0 * repeat), repeat=repeat) for row in rows]
        for repeat in (0, 1)
    }
    samples = samples_of(
        records, lambda node, workers, at_s: cpu(1.9 if (at_s - began) % 200 > 90.6 else 1.0)
    )
    plan = Plan(limit=1, seconds=0.3, queue="q", warmup_s=0.0)
    long_s = rows[-1].reply.ended_s - began
    measurements = [Measurement(1, repeat, 0.1, long_s, "precise") for repeat in (0, 1)]
    result = evaluate(plan, measurements, records, random.Random(1), samples=samples)
    assert result.verdict.kind is VerdictKind.INVALID
    assert (
        "UTC other programs used 1." in result.verdict.remedy
        and "neighbours" not in result.verdict.remedy
    )
    assert sum("UTC other programs used" in line for line in result.warnings) == 2
    without = evaluate(plan, measurements, records, random.Random(1))
    assert "thermal throttling, frequency scaling, other programs" in without.verdict.remedy


def test_the_costliest_disturbance_of_a_time_is_chosen() -> None:
    result = evaluated(
        lambda node, workers, at_s: cpu(workers + 1.3, 4.0, steal=0.3 if at_s < at(1, 9) else 0.0)
    )
    spells = result.disturbed
    worst = between(spells, at(1, 0), at(1, 9))
    assert worst is not None and worst.kind == "other programs"
    assert between(spells, at(9, 0), at(9, 1)) is None


BUSY = [
    (cpu(1.3), "other programs used 1.3 of 2 cores"),
    (cpu(0.1, steal=0.5), "the hypervisor took 0.5 of 2 cores"),
    (cpu(0.1, heat_throttled=1.0), "heat lowered a CPU's clock 1.0 times a second"),
    ({"pressure": {"memory_some": 0.3}}, "the pressure on memory was 30%"),
    ({DEVICE: {"throttled": 1.0}}, "limit lowered the clock of /dev/dri/renderD128"),
]


@pytest.mark.parametrize(("resources", "text"), BUSY)
def test_a_busy_machine_gives_a_warning_with_its_figure(resources: Resources, text: str) -> None:
    (line,) = busy(resources, 0.0)
    assert line.startswith("before the run, ") and text in line
    assert line.endswith(": end the other programs there, or wait for them")


def test_other_programs_are_one_sign_and_need_no_second() -> None:
    (line,) = busy({**cpu(1.5, load=4.1), "pressure": {"cpu_some": 0.9}}, 0.0)
    assert line == (
        "before the run, other programs used 1.5 of 2 cores: end the other programs there, or wait"
        " for them"
    )


@pytest.mark.parametrize(
    "resources",
    [
        {},
        cpu(0.2, load=0.5, steal=0.0),
        cpu(0.1, load=4.1),
        {"pressure": {"cpu_some": 0.1}},
        {"cpu": {}},
    ],
)
def test_a_quiet_machine_gives_no_warning(resources: Resources) -> None:
    assert busy(resources, 0.0) == []


def test_warnings_from_before_the_run_come_first_and_once() -> None:
    records: Records = {(n, 0): computing(n) for n in PLAN.steps}
    samples = samples_of(
        records, lambda node, workers, at_s: cpu(1.5 if not workers else float(workers), 2.0)
    )
    measurements = [Measurement(n, 0, 0.1, 25.0, "precise") for n, _ in records]
    evaluation = evaluate(
        PLAN, measurements, records, random.Random(1), noticed=["it was busy"], samples=samples
    )
    assert evaluation.warnings[0] == "it was busy"


def test_a_change_of_the_machine_between_way_up_and_way_down_is_named() -> None:
    """Two workers are as fast as one on the way down, while another program runs."""
    activity = Activity({State.ON_CPU: 0.3}, cpu_s=0.3)
    records: Records = {}
    for turn, (workers, repeat, run_s) in enumerate(
        [(1, 0, 0.3), (2, 0, 0.3), (2, 1, 0.6), (1, 1, 0.3)]
    ):
        rows = runs.rows(workers, run_s, 60, repeat, noise=0.02, at_s=100.0 * turn)
        records[workers, repeat] = [
            replace(row, reply=replace(row.reply, node="node-a", activity=activity)) for row in rows
        ]
    began = runs.BEGAN_S + 200.0
    samples = samples_of(
        records, lambda node, workers, at_s: cpu(4.0 if began + 2 < at_s < began + 30 else 1.0, 4.0)
    )
    plan = Plan(limit=2, seconds=0.3, queue="q")
    measurements = [Measurement(*key, 0.1, 30.0, "precise") for key in records]
    verdict = evaluate(plan, measurements, records, random.Random(1), samples=samples).verdict
    assert verdict.kind is VerdictKind.INVALID and "the machine changed" in verdict.reason
    assert "UTC other programs used " in verdict.remedy and verdict.remedy.endswith(
        ": end that, and run it again"
    )
    without = evaluate(plan, measurements, records, random.Random(1)).verdict
    assert without.remedy == f"find what changed ({CHANGES}), and run it again"


RECORDS: Records = {(n, 0): computing(n) for n in PLAN.steps}
KINDS = [
    kind if kind in ("cpu", "memory", "pressure", "container") else f"{kind}:x" for kind in FIGURES
]
NAMES = sorted({name for figures in FIGURES.values() for name in figures})
figure = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1e300, 1e300]))
read = st.dictionaries(
    st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), figure, max_size=6), max_size=5
)
sample = st.builds(
    NodeSample,
    st.just("node-a"),
    st.just("worker-0"),
    st.floats(runs.BEGAN_S + 90, runs.BEGAN_S + 240) | st.sampled_from([0.0, -1e300, 1e300]),
    st.floats(0, 5),
    read,
)


@settings(max_examples=60)
@given(st.lists(sample, max_size=30))
def test_whatever_samples_hold_the_run_is_judged(samples: list[NodeSample]) -> None:
    """Impossible figures, times of other days, intervals of nothing, and two samplers at once."""
    result = _judged(RECORDS, samples)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
