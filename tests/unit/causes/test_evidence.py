"""What resources say: of a cause, for it, against it, or nothing; of what disturbed a run; and of
the machine before it.
"""

import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.causes.busy_machine import busy_machine_warnings
from scaletest.causes.causes import Causes
from scaletest.causes.interference import clock_text, costliest_between
from scaletest.load.busy_check import BusyCheck
from scaletest.model import Activity, Measurement, Record, State, VerdictKind
from scaletest.model.node_sample import FIGURES, NodeSample
from scaletest.observe.node.used_time import cpu_used_s, own_processes_cpu_s
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.judging.measurement_grounds import CHANGES
from scaletest.validation.plan import Plan
from tests.unit import made_runs as runs
from tests.unit.activities import Injected, Phase, run
from tests.unit.causes.test_causes import INJECTED
from tests.unit.made import Records
from tests.unit.node_samples import Resources, cpu, on_one_node, samples_of
from tests.unit.valid import checked

RENDER = "/dev/dri/renderD128"
DEVICE, OTHER = f"device:{RENDER}", "device:/dev/dri/renderD129"
PLAN = Plan(limit=4, command=("work",), queue="q")
Read = Callable[[str, int, float], Resources]


def waiting(state: State, named: str = "") -> Injected:
    """Four workers in turn wait for something."""
    return Injected(lambda _, n: [Phase(State.ON_CPU, 0.1), Phase(state, 0.25 * n, object=named)])


def _judged(
    records: Records, measurements: Sequence[Measurement], samples: Sequence[NodeSample]
) -> Evaluation:
    return evaluate(PLAN, measurements, records, random.Random(1), samples=samples)


def compared(injected: Injected, first: Resources, later: Resources) -> Evaluation:
    """One node whose resources are these in the two steps that are compared."""
    measurements, records, after = _run(injected)
    samples = samples_of(records, lambda node, workers, at_s: first if workers < after else later)
    return _judged(records, measurements, samples)


@cache
def _run(injected: Injected) -> tuple[list[Measurement], Records, int]:
    """A run on node-a, and the workers of the step that shows the growth."""
    measurements, records, _ = run(injected, PLAN.steps)
    records = on_one_node(records)
    causes = _judged(records, measurements, ()).causes
    assert causes is not None
    return measurements, records, causes.after


def causes_of(injected: Injected, read: Read, nodes: Sequence[str] = ("node-a",)) -> Causes:
    measurements, records, _ = run(injected, PLAN.steps)
    records = on_one_node(records) if len(nodes) == 1 else records
    causes = _judged(records, measurements, samples_of(records, read, nodes)).causes
    assert causes is not None and causes.causes
    return causes


# cause, resources in the two steps that are compared, whether they confirm it, and how the first
# line begins
TRUTH: list[tuple[str, Resources, Resources, bool | None, str]] = [
    ("cores", cpu(1.0), cpu(2.0), True, "2.0 of 2 cores are busy ("),
    ("cores", cpu(1.0, 16), cpu(2.0, 16), False, "but only 2.0 of 16 cores are busy ("),
    ("cores", cpu(1.0), cpu(1.5), None, "1.5 of 2 cores are busy ("),
    (
        "cores",
        cpu(1.0),
        {**cpu(1.5), "pressure": {"cpu_some": 0.5}},
        True,
        "1.5 of 2 cores are busy (",
    ),
    ("cores", cpu(1.0), cpu(1.0, steal=0.9), True, "1.0 of 2 cores are busy ("),
    ("cores", {}, {"pressure": {"cpu_some": 0.84}}, True, "pressure 84%"),
    ("cores", {}, {"memory": {"total": 1.0}}, None, ""),
    (
        "CPU limit",
        {"container": {"throttled_periods": 0.0, "cpu_limit": 0.2}},
        {"container": {"throttled_periods": 0.95, "cpu_limit": 0.2}},
        True,
        "the container's CPU limit is 0.2, throttled in 95% of its periods (0% before)",
    ),
    (
        "CPU limit",
        {},
        {"container": {"throttled_periods": 0.45}},
        True,
        "the container is throttled in 45% of",
    ),
    ("CPU limit", {}, {"container": {"reclaims": 1.0}}, None, ""),
    (
        "disk",
        {"disk:sda": {"busy": 0.4}},
        {"disk:sda": {"busy": 0.97}},
        True,
        "sda is busy for 97% of the time (40",
    ),
    (
        "disk",
        {},
        {"disk:sda": {"busy": 0.02}},
        False,
        "but no disk is busy for more than 2% of the time",
    ),
    (
        "disk",
        {},
        {"disk:sda": {"busy": 0.1}, "pressure": {"io_some": 0.6}},
        True,
        "sda is busy for 10% of the time",
    ),
    ("disk", {}, {"disk:sda": {"busy": 0.5}}, None, "sda is busy for 50% of the time"),
    ("disk", {}, {"pressure": {"io_some": 0.1}}, None, "pressure 10%"),
    ("memory", {}, {"pressure": {"memory_some": 0.4}}, True, "pressure 40%"),
    (
        "memory",
        {},
        {"container": {"reclaims": 12.0}},
        True,
        "memory is reclaimed 12.0 times per second",
    ),
    (
        "memory",
        {},
        {"memory": {"swap_in": 2e6, "swap_out": 0.0}},
        True,
        "swap: 2.00 MB/s in, 0 B/s out",
    ),
    (
        "memory",
        {},
        {
            "pressure": {"memory_some": 0.0},
            "container": {"reclaims": 0.0},
            "memory": {"swap_in": 0.0, "swap_out": 0.0},
        },
        False,
        "but pressure 0%",
    ),
    ("memory", {}, {"pressure": {"memory_some": 0.0}}, None, "pressure 0%"),
    (
        "service",
        {},
        {"network:eth0": {"sent": 1.2e8, "received": 0.0, "speed": 1.25e8}},
        True,
        "eth0 moves 120 MB/s",
    ),
    (
        "service",
        {},
        {"network:eth0": {"sent": 1e6, "speed": 1.25e8}},
        None,
        "eth0 moves 1.00 MB/s of 125 MB/s, so ",
    ),
    ("service", {}, {"network:eth0": {"sent": 1e6}}, None, ""),
    (
        "device",
        {DEVICE: {"busy": 0.5}},
        {DEVICE: {"busy": 0.98}},
        True,
        f"{RENDER} is busy for 98% of the time (50",
    ),
    (
        "device",
        {},
        {DEVICE: {"busy": 0.2}},
        False,
        f"but {RENDER} is busy for only 20% of the time",
    ),
    ("device", {}, {DEVICE: {"busy": 0.7}}, None, f"{RENDER} is busy for 70% of the time"),
    (
        "device",
        {},
        {DEVICE: {"throttled": 1.0, "busy": 0.9}},
        True,
        "heat, power or another limit lowers the clock of",
    ),
    (
        "device",
        {},
        {DEVICE: {"frequency": 0.4}, OTHER: {"frequency": 0.9}},
        True,
        f"the clock of {RENDER} is at 40%",
    ),
    ("device", {}, {DEVICE: {"temperature": 40.0}}, None, ""),
    (
        "caches",
        cpu(1, 16, frequency=0.98),
        cpu(4, 16, frequency=0.7),
        True,
        "clocks fell to 70% of the highest (98%",
    ),
    ("caches", cpu(1, 16), cpu(4, 16, steal=2.0), True, "the hypervisor takes 2.0 of 16 cores"),
    ("caches", cpu(1, 16), cpu(4, 16, frequency=0.9, steal=0.0), None, "4.0 of 16 cores are busy"),
    ("idle workers", cpu(1.0), cpu(2.0), True, "2.0 of 2 cores are busy"),
    ("idle workers", cpu(1.0, 16), cpu(2.0, 16), None, "2.0 of 16 cores are busy"),
    ("file lock", cpu(1.0), cpu(2.0), None, ""),
]
WORKLOADS = {name: injected for name, (injected, _, _) in INJECTED.items()} | {
    "memory": waiting(State.MEMORY),
    "device": waiting(State.DEVICE, RENDER),
}


@pytest.mark.parametrize(("name", "first", "later", "confirmed", "line"), TRUTH)
def test_resources_confirm_contradict_or_leave_open(
    name: str, first: Resources, later: Resources, confirmed: bool | None, line: str
) -> None:
    result = compared(WORKLOADS[name], first, later)
    cause = result.causes.causes[0]
    assert cause.confirmed is confirmed
    assert (cause.evidence[0] if cause.evidence else "").startswith(line)
    assert bool(cause.evidence) == bool(line)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


FULL_LINK = {"network:eth0": {"received": 1.24e8, "sent": 0.0, "speed": 1.25e8}}


@pytest.mark.parametrize(
    ("name", "first", "later", "reason", "remedy"),
    [
        (
            "cores",
            cpu(1.1),
            {**cpu(2.0), "pressure": {"cpu_some": 0.84}},
            "of the added 0.3 s; 2.0 of 2 cores are busy (1.",
            "more cores, or a lower <limit>",
        ),
        (
            "cores",
            cpu(0.2, 16),
            cpu(0.4, 16),
            "; but only 0.4 of 16 cores are busy",
            "there are idle cores: look for CPU pinning (taskset, cpusets) or a CPU limit",
        ),
        ("service", FULL_LINK, FULL_LINK, "", "a faster link, or less data in each request"),
    ],
)
def test_the_verdict_holds_the_first_evidence_behind_the_cause_and_what_to_try(
    name: str, first: Resources, later: Resources, reason: str, remedy: str
) -> None:
    verdict = compared(WORKLOADS[name], first, later).verdict
    assert verdict.kind is VerdictKind.FAIL
    assert reason in verdict.reason
    assert verdict.remedy == remedy


def test_a_large_use_of_busy_cores_by_other_programs_is_reported() -> None:
    result = compared(WORKLOADS["cores"], cpu(2.0), cpu(4.0, 4))
    assert (
        "2.0 of them by other programs or scaletest itself" in result.causes.causes[0].evidence[0]
    )
    own = compared(WORKLOADS["cores"], cpu(1.0), cpu(2.0)).causes
    assert own is not None and not any("other programs" in line for line in own.causes[0].evidence)


def test_where_others_use_most_of_the_busy_cores_nothing_fails_and_the_verdict_says_why() -> None:
    result = compared(
        WORKLOADS["cores"], cpu(7.5, 8), {**cpu(7.5, 8), "pressure": {"cpu_some": 0.9}}
    )
    assert re.search(
        r"; 7\.5 of 8 cores are busy \(7\.5 before\), \d\.\d of them by other",
        result.verdict.reason,
    )
    assert result.verdict.kind is VerdictKind.INVALID
    assert result.verdict.remedy.startswith("stop the other programs")
    assert result.causes.causes[0].evidence[1:] == ("pressure 90%",)


@pytest.mark.parametrize("state", [State.LOCK, State.IDLE, State.ON_CPU])
def test_a_full_device_behind_a_lock_is_the_cause(state: State) -> None:
    result = compared(waiting(state), {DEVICE: {"busy": 0.6}}, {DEVICE: {"busy": 0.97}})
    cause = result.causes.causes[0]
    assert (cause.state, cause.object, cause.label, cause.confirmed) == (
        State.DEVICE,
        RENDER,
        "device",
        True,
    )
    assert result.causes.sentence.startswith(f"Cause: waiting for a device ({RENDER}), ")
    assert result.verdict.remedy == "more devices, or fewer workers on each of them"


@pytest.mark.parametrize(
    ("state", "first", "later"),
    [
        (State.LOCK, 0.6, 0.8),  # it has room
        (State.FILE_LOCK, 0.6, 0.97),  # no driver locks a file
        (State.LOCK, 0.88, 0.91),  # it did not do more
    ],
)
def test_a_lock_stays_a_lock_where_the_device_does_not_explain_it(
    state: State, first: float, later: float
) -> None:
    result = compared(waiting(state), {DEVICE: {"busy": first}}, {DEVICE: {"busy": later}})
    assert result.causes is not None and result.causes.causes[0].state == state


@pytest.mark.parametrize(("named", "place"), [(True, State.DEVICE), (False, State.LOCK)])
def test_a_device_that_is_always_full_is_the_cause_only_where_requests_name_it(
    named: bool, place: State
) -> None:
    measurements, records, _ = _run(waiting(State.LOCK))
    if not named:
        records = {
            key: [replace(row, reply=replace(row.reply, device="")) for row in rows]
            for key, rows in records.items()
        }
    samples = samples_of(records, lambda node, workers, at_s: {DEVICE: {"busy": 1.0}})
    causes = _judged(records, measurements, samples).causes
    assert causes is not None and causes.causes[0].state == place


def test_a_slow_device_among_several_is_named_with_its_difference() -> None:
    slow = Injected(
        lambda index, _: [Phase(State.ON_CPU, 0.1), Phase(State.DEVICE, 0.8 if index % 2 else 0.2)]
    )
    first, second = {"frequency": 0.95}, {"frequency": 0.4, "throttled": 1.0}
    causes = causes_of(slow, lambda node, n, at_s: {DEVICE: first, OTHER: second})
    assert "lowers the clock of /dev/dri/renderD129 for 100% of the time" in causes.slow.sentence
    assert (
        "the clock of /dev/dri/renderD129 is at 40% of its highest, at 95% elsewhere"
        in causes.slow.sentence
    )


def test_one_full_node_is_enough() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return cpu(8.0 if node == "node-b" else 2.0, 8)

    causes = causes_of(WORKLOADS["cores"], read, ("node-a", "node-b"))
    first = causes.causes[0]
    assert first.confirmed is True and first.evidence[0].startswith("10.0 of 16 cores are busy")


def test_figures_of_several_nodes_name_the_node() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return {"disk:sda": {"busy": 0.95 if node == "node-b" else 0.1}}

    causes = causes_of(WORKLOADS["disk"], read, ("node-a", "node-b"))
    assert causes.causes[0].evidence[0].startswith("sda on node-b is busy for 95% of the time")


def test_samples_of_a_single_step_are_not_compared_with_another() -> None:
    result = compared(WORKLOADS["cores"], {}, cpu(2.0))
    assert result.causes.causes[0].evidence == ("2.0 of 2 cores are busy",)


figure = st.floats(0, 1e12, allow_nan=False)
resources = st.dictionaries(
    st.sampled_from(
        [
            kind if kind in ("cpu", "memory", "pressure", "container") else f"{kind}:x"
            for kind in FIGURES
        ]
    ),
    st.dictionaries(
        st.sampled_from([name for figures in FIGURES.values() for name in figures]),
        figure,
        max_size=5,
    ),
    max_size=4,
)


@settings(max_examples=30)
@given(st.sampled_from(sorted(WORKLOADS)), resources, resources)
def test_any_samples_of_nodes_keep_the_cause_and_fit_the_schema(
    name: str, first: Resources, later: Resources
) -> None:
    result = compared(WORKLOADS[name], first, later)
    assert all(line for cause in result.causes.causes for line in cause.evidence)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def throttled(part: float) -> Resources:
    """A container that its CPU limit holds back in this part of its periods, on a node whose cores
    are all busy.
    """
    return {**cpu(2.0), "container": {"throttled_periods": part, "cpu_limit": 0.5}}


# by the throttled seconds alone, a tenth of the wait, it would be the number of cores
BARELY_COUNTED = replace(INJECTED["cores"][0], throttled=0.1)


@pytest.mark.parametrize(
    ("first", "later", "state"),
    [
        (throttled(0.4), throttled(0.9), State.THROTTLED),
        (throttled(0.97), throttled(0.95), State.THROTTLED),
        (throttled(0.0), throttled(0.4), State.CPU_WAIT),
        # containers of one worker each, which lack cores
        (throttled(0.95), throttled(0.6), State.CPU_WAIT),
        ({}, throttled(0.95), State.CPU_WAIT),
    ],
)
def test_a_limit_that_holds_a_container_back_most_of_the_time_is_the_cause(
    first: Resources, later: Resources, state: State
) -> None:
    """Other load drives its threads to one CPU: the kernel counts few throttled seconds then."""
    causes = compared(BARELY_COUNTED, first, later).causes
    assert [cause.state for cause in causes.causes] == [state]
    assert causes.causes[0].share.value > 0.9


@pytest.mark.parametrize(("part", "state"), [(0.05, State.CPU_WAIT), (0.45, State.THROTTLED)])
def test_throttled_seconds_of_many_cpus_are_no_more_than_the_periods(
    part: float, state: State
) -> None:
    # given throttled seconds that are four fifths of the added wait, since they are those of many
    # CPUs together
    causes = compared(
        replace(INJECTED["cores"][0], throttled=0.8), throttled(0.0), throttled(part)
    ).causes
    assert causes is not None and causes.causes[0].state == state


@pytest.mark.parametrize(
    ("container", "confirmed", "line"),
    [
        ({"throttled_periods": 0.01, "cpu_limit": 2.0}, False, "but the container's CPU limit"),
        ({"throttled_periods": 0.05}, None, "the container is throttled in 5% of"),
    ],
)
def test_a_limit_is_doubted_where_one_node_of_two_tells_of_its_periods(
    container: dict[str, float], confirmed: bool | None, line: str
) -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return {"container": container} if node == "node-a" else {"container": {"reclaims": 1.0}}

    cause, *_ = causes_of(INJECTED["CPU limit"][0], read, ("node-a", "node-b")).causes
    assert (cause.state, cause.confirmed) == (State.THROTTLED, confirmed) and cause.evidence[
        0
    ].startswith(line)


def test_a_limit_of_one_node_of_two_is_not_that_of_both() -> None:
    causes = causes_of(
        BARELY_COUNTED,
        lambda node, workers, at_s: throttled(0.9) if node == "node-a" else cpu(2.0),
        ("node-a", "node-b"),
    )
    assert causes.causes[0].state == State.CPU_WAIT


TWO_WORKERS = Plan(limit=2, seconds=0.3, queue="q")


def computing(workers: int, count: int = 80, cpu_s: float = 0.3) -> list[Record]:
    """Requests of 0.3 s that each say how much CPU time they used; steps follow each other."""
    rows = runs.rows(workers, 0.3, count, at_s=100.0 * workers, noise=0.05)
    activity = Activity({State.ON_CPU: 0.3}, cpu_s=cpu_s)
    return [
        replace(row, reply=replace(row.reply, node="node-a", activity=activity if cpu_s else None))
        for row in rows
    ]


def run_beside(read: Callable[[str, int, float], Resources], cpu_s: float = 0.3) -> Evaluation:
    records: Records = {(n, 0): computing(n, cpu_s=cpu_s) for n in TWO_WORKERS.steps}
    samples = samples_of(records, read)
    return _evaluated(records, samples)


def _evaluated(records: Records, samples: Sequence[NodeSample]) -> Evaluation:
    measurements = [Measurement(n, 0, 0.1, 25.0, "precise") for n, _ in records]
    return evaluate(TWO_WORKERS, measurements, records, random.Random(1), samples=samples)


def at(workers: int, second: int) -> float:
    """That many seconds into a step."""
    return runs.BEGAN_S + 100.0 * workers + second


@pytest.mark.parametrize(
    ("read", "cpu_s"),
    [
        (lambda node, workers, at_s: cpu(float(workers)), 0.3),
        # of one sample
        (
            lambda node, n, at_s: cpu(float(n), steal=0.6 if at(1, 5) <= at_s < at(1, 6) else 0.0),
            0.3,
        ),
        # requests that do not say what they used
        (lambda node, workers, at_s: cpu(workers + 2.0, 8.0), 0.0),
    ],
)
def test_cpu_time_that_requests_may_have_used_is_no_interference(
    read: Callable[[str, int, float], Resources], cpu_s: float
) -> None:
    assert run_beside(read, cpu_s).disturbed == []


def test_other_programs_are_named_with_their_time_and_their_cores() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return cpu(workers + 1.3 if at(1, 8) <= at_s < at(1, 16) else float(workers), 4.0)

    result = run_beside(read)
    (spell,) = result.disturbed
    assert spell.kind == "other programs" and "1.3 of 4 cores" in spell.sentence
    assert spell.begin_s == pytest.approx(at(1, 8), abs=2.5) and spell.end_s == pytest.approx(
        at(1, 16), abs=2.5
    )
    time = f"({clock_text(spell.begin_s)} to {clock_text(spell.end_s)} UTC)"
    assert spell.sentence == f"{spell.text} {time}"
    assert spell.sentence in result.warnings
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def test_other_programs_that_run_all_the_time_are_named_too() -> None:
    result = run_beside(lambda node, workers, at_s: cpu(workers + 1.5, 8.0))
    assert [spell.kind for spell in result.disturbed] == ["other programs"] * 2
    (line,) = [line for line in result.warnings if "other programs used" in line]
    costliest = max(result.disturbed, key=lambda spell: spell.weight)
    assert line == costliest.sentence


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
    assert _evaluated({(1, 0): rows}, samples).disturbed == []


def test_a_tester_that_costs_a_notable_part_is_not_taken_for_another_program() -> None:
    rows = {
        (n, 0): [replace(row, total_s=row.total_s + 0.02) for row in computing(n)]
        for n in TWO_WORKERS.steps
    }
    steady = samples_of(rows, lambda node, workers, at_s: cpu(workers + 1.0, 4.0))
    assert _evaluated(rows, steady).disturbed == []


@pytest.mark.parametrize(
    ("kind", "usual", "then", "text"),
    [
        ("steal", cpu(1.0), cpu(1.0, steal=0.4), "the hypervisor took 0.4 of 2 cores"),
        (
            "clock",
            cpu(1.0, frequency=0.9),
            cpu(1.0, frequency=0.6),
            "the clocks were at 60% of their highest, usua",
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

    (spell,) = [spell for spell in run_beside(read).disturbed if spell.kind != "other programs"]
    assert spell.kind == kind and text in spell.sentence
    assert spell.begin_s == pytest.approx(at(2, 4), abs=1.1) and spell.end_s == pytest.approx(
        at(2, 9), abs=1.1
    )


def test_too_many_disturbances_leave_the_costliest_in_the_order_of_time() -> None:
    result = run_beside(
        lambda node, workers, at_s: cpu(1.0, steal=(at_s % 40) / 20 if at_s % 4 < 2 else 0.0)
    )
    begins = [spell.begin_s for spell in result.disturbed]
    assert sum("the hypervisor took" in line for line in result.warnings) == 1
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
        "other programs used 1." in result.verdict.remedy
        and "neighbours" not in result.verdict.remedy
    )
    assert sum("other programs used" in line for line in result.warnings) == 2
    without = evaluate(plan, measurements, records, random.Random(1))
    assert "thermal throttling, frequency scaling, other programs" in without.verdict.remedy


def test_the_costliest_disturbance_of_a_time_is_chosen() -> None:
    result = run_beside(
        lambda node, workers, at_s: cpu(workers + 1.3, 4.0, steal=0.3 if at_s < at(1, 9) else 0.0)
    )
    spells = result.disturbed
    worst = costliest_between(spells, at(1, 0), at(1, 9))
    assert worst is not None and worst.kind == "other programs"
    assert costliest_between(spells, at(9, 0), at(9, 1)) is None


BUSY = [
    (cpu(1.3), "other programs used 1.3 of 2 cores"),
    (cpu(0.1, steal=0.5), "the hypervisor took 0.5 of 2 cores"),
    ({"pressure": {"memory_some": 0.3}}, "the pressure on memory was 30%"),
    ({DEVICE: {"throttled": 1.0}}, "limit lowered the clock of /dev/dri/renderD128"),
]


@pytest.mark.parametrize(("resources", "text"), BUSY)
def test_a_busy_machine_gives_a_warning_with_its_figure(resources: Resources, text: str) -> None:
    (line,) = busy_machine_warnings(resources, 0.0)
    assert line.startswith("before the run, ") and text in line
    assert line.endswith(": stop the other programs, or run again when the machine is idle")


def test_other_programs_are_one_sign_and_need_no_second() -> None:
    (line,) = busy_machine_warnings({**cpu(1.5, load=4.1), "pressure": {"cpu_some": 0.9}}, 0.0)
    assert line == (
        "before the run, other programs used 1.5 of 2 cores: stop the other programs, or run again"
        " when the machine is idle"
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
    assert busy_machine_warnings(resources, 0.0) == []


def test_warnings_from_before_the_run_come_first_and_once() -> None:
    records: Records = {(n, 0): computing(n) for n in TWO_WORKERS.steps}
    samples = samples_of(
        records, lambda node, workers, at_s: cpu(1.5 if not workers else float(workers), 2.0)
    )
    measurements = [Measurement(n, 0, 0.1, 25.0, "precise") for n, _ in records]
    evaluation = evaluate(
        TWO_WORKERS,
        measurements,
        records,
        random.Random(1),
        noticed=["it was busy"],
        samples=samples,
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
    assert verdict.remedy.startswith("other programs used ")
    assert verdict.remedy.endswith(" UTC): stop that, and run it again")
    without = evaluate(plan, measurements, records, random.Random(1)).verdict
    assert without.remedy == f"find what changed ({CHANGES}), and run it again"


RECORDS: Records = {(n, 0): computing(n) for n in TWO_WORKERS.steps}
KINDS = [
    kind if kind in ("cpu", "memory", "pressure", "container") else f"{kind}:x" for kind in FIGURES
]
NAMES = sorted({name for figures in FIGURES.values() for name in figures})
any_figure = st.one_of(st.floats(-10, 10), st.sampled_from([0.0, 1.0, -1e300, 1e300]))
any_read = st.dictionaries(
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(NAMES), any_figure, max_size=6),
    max_size=5,
)
sample = st.builds(
    NodeSample,
    st.just("node-a"),
    st.just("worker-0"),
    st.floats(runs.BEGAN_S + 90, runs.BEGAN_S + 240) | st.sampled_from([0.0, -1e300, 1e300]),
    st.floats(0, 5),
    any_read,
)


@settings(max_examples=60)
@given(st.lists(sample, max_size=30))
def test_whatever_samples_hold_the_run_is_judged(samples: list[NodeSample]) -> None:
    """Impossible figures, times of other days, intervals of nothing, and two samplers at once."""
    result = _evaluated(RECORDS, samples)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def test_samples_of_two_samplers_whose_intervals_overlap_are_judged() -> None:
    began_s = min(row.reply.started_s for row in RECORDS[1, 0]) + 1.0
    samples = [
        NodeSample("node-a", "worker-0", began_s + end_s, interval_s, cpu(1.0))
        for end_s, interval_s in ((4.5, 3.0), (5.0, 5.0), (8.0, 3.0), (12.0, 3.0))
    ]
    assert _evaluated(RECORDS, samples).disturbed == []


# The sums of processor times are of floats.
ROUNDING_S = 1e-6


class Machine:
    """Figures, a clock and a wait that are moved by hand."""

    def __init__(self, resources: Resources, own_cores: float = 0.0) -> None:
        self.resources, self.own_cores, self.now, self.waited, self.reads = (
            resources,
            own_cores,
            50.0,
            0.0,
            0,
        )

    def read(self) -> Resources:
        self.reads += 1
        return self.resources if self.reads > 1 else {}

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.waited += seconds

    def before(self) -> BusyCheck:
        return BusyCheck(
            self.read, lambda: self.own_cores * (self.now - 50.0), lambda: self.now, self.wait
        )


def test_a_busy_machine_gives_a_warning_after_a_look_of_one_second() -> None:
    machine = Machine(cpu(1.5))
    look = machine.before()
    machine.now += 0.3
    (line,) = look.warnings()
    assert line.startswith("before the run, other programs used 1.5 of 2 cores")
    assert machine.waited == pytest.approx(0.7)


def test_workers_that_take_longer_are_not_waited_for() -> None:
    machine = Machine(cpu(0.1))
    look = machine.before()
    machine.now += 3.0
    assert look.warnings() == [] and machine.waited == 0.0


def test_the_cpu_time_of_the_run_itself_is_not_counted_as_busy() -> None:
    machine = Machine(cpu(1.5), own_cores=1.4)
    look = machine.before()
    machine.now += 2.0
    assert look.warnings() == []


def test_cpu_time_holds_that_of_children_that_live_and_of_those_that_ended() -> None:
    script = "import sys; sum(range(10**7)); print('done', flush=True); sys.stdin.read()"
    before_s = own_processes_cpu_s()
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"done\n"
        living_s = cpu_used_s([process.pid])
        assert living_s > 0 and own_processes_cpu_s() - before_s > living_s - ROUNDING_S
        process.stdin.close()
        process.wait()
    assert own_processes_cpu_s() - before_s > living_s - ROUNDING_S
    assert cpu_used_s([process.pid]) == 0.0


def test_more_cores_do_not_help_requests_that_are_pinned_to_one() -> None:
    measurements, records, _ = run(WORKLOADS["cores"], PLAN.steps)
    records = {
        key: [
            replace(row, reply=replace(row.reply, activity=replace(row.reply.activity, cpus=(1,))))
            for row in rows
        ]
        for key, rows in on_one_node(records).items()
    }
    samples = samples_of(records, lambda node, workers, at_s: cpu(1.0))
    causes = _judged(records, measurements, samples).causes
    assert causes is not None and causes.pinned_cpus == 1
    assert causes.causes[0].evidence[0] == "all workers share 1 of 2 cores (pinned)"
    assert causes.causes[0].confirmed and "affinity" in causes.remedy
    # expect the usual where all cores may be used, by workers that have one each
    samples = samples_of(records, lambda node, workers, at_s: cpu(1.0, 1))
    causes = _judged(records, measurements, samples).causes
    assert causes is not None and "affinity" not in causes.remedy
