"""What resources say of a cause: for it, against it, or nothing; and devices that hide behind a
lock.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.causes import Causes
from scaletest.analysis.evaluation import Evaluation, evaluate
from scaletest.model import Measurement, Plan, State, VerdictKind
from scaletest.model.measurement import FIGURES, NodeSample
from tests.unit.activities import Injected, Phase, run
from tests.unit.made import Records
from tests.unit.node_samples import Resources, cpu, on_one_node, samples_of
from tests.unit.test_causes import INJECTED
from tests.unit.valid import checked

RENDER = "/dev/dri/renderD128"
DEVICE, OTHER = f"device:{RENDER}", "device:/dev/dri/renderD129"
PLAN = Plan(limit=4, command=("work",), queue="q")
Read = Callable[[str, int, float], Resources]


def waiting(state: State, named: str = "") -> Injected:
    """Four workers in turn wait for something."""
    return Injected(lambda _, n: [Phase(State.ON_CPU, 0.1), Phase(state, 0.25 * n, object=named)])


def evaluated(injected: Injected, read: Read, nodes: Sequence[str] = ("node-a",)) -> Evaluation:
    measurements, records, _ = run(injected, PLAN.steps)
    records = on_one_node(records) if len(nodes) == 1 else records
    return _judged(records, measurements, samples_of(records, read, nodes))


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
    causes = evaluated(injected, read, nodes).causes
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
        "the container's limit is 0.2 cores, throttled in 95% of its periods (0% before)",
    ),
    (
        "CPU limit",
        {},
        {"container": {"throttled_periods": 0.45}},
        True,
        "the container is throttled in 45% of",
    ),
    ("CPU limit", {}, {"container": {"memory_used": 1e9}}, None, ""),
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
        "memory is reclaimed 12.0 times a second",
    ),
    (
        "memory",
        {},
        {"memory": {"swap_in": 2e6, "swap_out": 0.0}},
        True,
        "swap: 2 MB/s in, 0 B/s out",
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
        "eth0 moves 1 MB/s of 125 MB/s, so ",
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
    (
        "caches",
        cpu(1, 16),
        cpu(4, 16, heat_throttled=3.0),
        True,
        "heat lowered a clock 3.0 times a second",
    ),
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
    assert result.causes is not None
    cause = result.causes.causes[0]
    assert cause.confirmed is confirmed
    assert (cause.evidence[0] if cause.evidence else "").startswith(line)
    assert bool(cause.evidence) == bool(line)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def test_the_verdict_holds_the_first_evidence_behind_the_cause() -> None:
    result = compared(WORKLOADS["cores"], cpu(1.1), {**cpu(2.0), "pressure": {"cpu_some": 0.84}})
    assert result.verdict.kind is VerdictKind.FAIL
    assert "of the added 0.3 s; 2.0 of 2 cores are busy (1." in result.verdict.reason
    assert result.verdict.remedy == "more cores, or a lower <limit>"


def test_a_large_use_of_busy_cores_by_other_programs_is_reported() -> None:
    result = compared(WORKLOADS["cores"], cpu(2.0), cpu(4.0, 4))
    assert result.causes is not None
    assert "2.0 of them by other programs or the tester" in result.causes.causes[0].evidence[0]
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
    assert result.verdict.remedy.startswith("free the cores that other programs or the tester use")
    assert result.causes is not None
    assert result.causes.causes[0].evidence[1:] == ("pressure 90%",)


def test_a_contradicted_cause_is_marked_with_where_to_look() -> None:
    result = compared(WORKLOADS["cores"], cpu(0.2, 16), cpu(0.4, 16))
    assert "; but only 0.4 of 16 cores are busy" in result.verdict.reason
    assert (
        result.verdict.remedy
        == "there are idle cores: look for CPU pinning (taskset, cpusets) or a CPU limit"
    )


def test_a_full_link_changes_what_to_try() -> None:
    link = {"network:eth0": {"received": 1.24e8, "sent": 0.0, "speed": 1.25e8}}
    result = compared(WORKLOADS["service"], link, link)
    assert result.verdict.remedy == "a faster link, or less data in each request"


@pytest.mark.parametrize("state", [State.LOCK, State.IDLE])
def test_a_full_device_behind_a_lock_is_the_cause(state: State) -> None:
    result = compared(waiting(state), {DEVICE: {"busy": 0.6}}, {DEVICE: {"busy": 0.97}})
    assert result.causes is not None
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


def test_a_device_that_no_request_ran_on_is_not_the_cause() -> None:
    busy = {"device:/dev/dri/renderD200": {"busy": 1.0}, DEVICE: {"busy": 0.1}}
    result = compared(waiting(State.LOCK), busy, busy)
    assert result.causes is not None and result.causes.causes[0].state == State.LOCK


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
    assert causes.slow is not None
    assert "lowers the clock of /dev/dri/renderD129 for 100% of the time" in causes.slow.sentence
    assert (
        "the clock of /dev/dri/renderD129 is at 40% of its highest, at 95% elsewhere"
        in causes.slow.sentence
    )


def test_a_node_that_differs_is_named_and_one_full_node_is_enough() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return cpu(8.0 if node == "node-b" else 2.0, 8)

    causes = causes_of(WORKLOADS["cores"], read, ("node-a", "node-b"))
    first = causes.causes[0]
    assert first.confirmed is True and first.evidence[0].startswith("10.0 of 16 cores are busy")
    assert "node-b: 8.0 of 8 cores are busy, 25% elsewhere" in first.evidence


def test_figures_of_several_nodes_name_the_node() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return {"disk:sda": {"busy": 0.95 if node == "node-b" else 0.1}}

    causes = causes_of(WORKLOADS["disk"], read, ("node-a", "node-b"))
    assert causes.causes[0].evidence[0].startswith("sda on node-b is busy for 95% of the time")


def test_samples_of_a_single_step_are_not_compared_with_another() -> None:
    result = compared(WORKLOADS["cores"], {}, cpu(2.0))
    assert result.causes is not None
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
    assert result.causes is not None
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
    assert causes is not None
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
        ({"throttled_periods": 0.01, "cpu_limit": 2.0}, False, "but the container's limit"),
        ({"throttled_periods": 0.05}, None, "the container is throttled in 5% of"),
    ],
)
def test_a_limit_is_doubted_where_one_node_of_two_tells_of_its_periods(
    container: dict[str, float], confirmed: bool | None, line: str
) -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return {"container": container} if node == "node-a" else {"container": {"memory_used": 1e9}}

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
