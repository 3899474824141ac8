"""The result of a lifecycle: timelines, books and percentiles, durations between milestones, and
thresholds.
"""

import pytest

from scaletest.lifecycle.judging.result import judge_run
from scaletest.lifecycle.judging.timeline import duration_between, timeline_of
from scaletest.lifecycle.options import Conditions, WorkloadSelection
from scaletest.lifecycle.records import LifecycleObject, LifecyclePod, Stamp, TimeSource
from scaletest.model.errors import InvalidValue
from scaletest.model.verdict import VerdictKind
from tests.unit.lifecycles import BEGAN, VIEW, of, submission, workload


def test_defect_09_all_series_are_ordered_alike() -> None:
    # given workloads that were submitted in the same second, with values that differ
    rows = [workload(f"j-{index}", submitted=0.0, step=1.0 + index) for index in (3, 1, 2)]
    lifecycle = of(*rows)
    assert [timeline.workload.name for timeline in lifecycle.timelines] == ["j-1", "j-2", "j-3"]
    for name in ("created", "scheduled", "ready"):
        step = lifecycle.find_phase(name)
        assert list(step.values) == sorted(step.values, key=lambda value: value or 0.0)


def test_defect_11_percentiles_and_parts_of_seconds() -> None:
    rows = [workload(f"j-{index:03}", step=0.001 * (index + 1)) for index in range(300)]
    created = of(*rows).find_phase("created")
    assert created.spread.p50.value == pytest.approx(0.1505)
    assert created.spread.p99.value == pytest.approx(0.29701)
    # refused ones are seen
    refused = [submission("j-x", False, status=403, reason="exceeded quota")]
    lifecycle = judge_run(
        rows, [*(submission(submitted.name) for submitted in rows), *refused], "finished", VIEW
    )
    assert lifecycle.books.rejected == 1
    assert lifecycle.books.rejections == {"403 exceeded quota": 1}
    assert lifecycle.verdict.kind is VerdictKind.FAIL


def test_rejections_that_differ_in_a_number_are_counted_together() -> None:
    refused = [
        submission(f"j-{used}", False, status=403, reason=f"exceeded quota, used {used} of 9")
        for used in (9, 8, 7)
    ]
    books = judge_run([], refused, "finished", VIEW).books
    assert books.rejections == {"403 exceeded quota, used 9 of 9": 3}


def test_defect_12_the_answer_of_the_api_has_a_step_of_its_own() -> None:
    accepted = of(workload("j-1", accepted=0.02)).find_phase("accepted")
    assert accepted is not None and accepted.values[0] == pytest.approx(0.02)


def test_workloads_are_selected_by_head_tail_and_errors() -> None:
    rows = [workload(f"j-{index}", submitted=float(index)) for index in range(6)]
    rows[2].mark(
        "pod_group_created", Stamp(watch_s=BEGAN - 100)
    )  # older than its pod: the pod was replaced

    def shown(view: WorkloadSelection) -> list[str]:
        return [timeline.workload.name for timeline in of(*rows, view=view).timelines]

    assert shown(WorkloadSelection()) == ["j-0", "j-1", "j-3", "j-4", "j-5"]
    assert shown(WorkloadSelection(skip_errors=False)) == [f"j-{index}" for index in range(6)]
    assert shown(WorkloadSelection(skip_errors=False, head=4, tail=2)) == ["j-2", "j-3"]
    # the books are of all, whatever is shown
    assert of(*rows, view=WorkloadSelection(head=1)).books.measured == 6


def test_both_ends_come_from_one_clock_where_one_saw_both() -> None:
    start, end = Stamp(10.0, 110.2), Stamp(15.0, 113.7)
    assert duration_between(start, end) == (pytest.approx(3.5), TimeSource.WATCH)
    assert duration_between(Stamp(watch_s=9.5), Stamp(api_s=12.0)) == (2.5, TimeSource.MIXED)
    assert duration_between(Stamp(), end) is None


@pytest.mark.parametrize(("back", "value"), [(0.4, 0.0), (1.5, -1.5)])
def test_a_little_below_zero_is_zero(back: float, value: float) -> None:
    duration = duration_between(Stamp(watch_s=100.0), Stamp(watch_s=100.0 - back))
    assert duration is not None and duration.value_s == pytest.approx(value)


def test_missing_values_are_counted_and_are_no_zero() -> None:
    whole, half = workload("j-1"), workload("j-2")
    del half.pods["j-2-0"].stamps["ready"]
    ready = of(whole, half).find_phase("ready")
    assert (ready.spread.count, ready.missing, ready.values[1]) == (1, 1, None)


def test_a_failed_pod_keeps_no_workload_of_unknown_size_from_finishing() -> None:
    # given a workload that does not say how many pods it has, one of which finished while the other
    # failed
    pods = {
        "uid-0": LifecyclePod("uid-0", "j-0", stamps={"finished": Stamp(9.0)}),
        "uid-1": LifecyclePod("uid-1", "j-1", stamps={"evicted": Stamp(8.0)}, failed=True),
    }
    times = timeline_of(LifecycleObject("j", kind="PodGroup", pods=pods))
    assert "finished" in times.passed
    assert times.stamp("finished") == Stamp(9.0)
    # and one whose pods have all failed has not finished
    pods["uid-0"].failed = True
    assert "finished" not in timeline_of(LifecycleObject("j", kind="PodGroup", pods=pods)).passed


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ready.mean<1s", VerdictKind.PASS),
        ("ready.mean<10ms", VerdictKind.FAIL),
        ("total_ready.p50<=6.5s", VerdictKind.PASS),
        ("ready.p99<30s", VerdictKind.INVALID),  # too few
        ("pvc_bound.p50<1s", VerdictKind.INVALID),  # nothing measured
        ("failed<=0", VerdictKind.PASS),
        ("rejected<1%", VerdictKind.PASS),
        ("throughput>=0.5/min", VerdictKind.PASS),
    ],
)
def test_thresholds_pass_fail_or_stay_undecided_by_the_measured_times(
    text: str, kind: VerdictKind
) -> None:
    rows = [
        workload(f"j-{index}", submitted=float(index), step=1.0 if index % 2 else 0.999)
        for index in range(20)
    ]
    for row in rows:
        stamps = row.pods[f"{row.name}-0"].stamps
        stamps["ready"] = Stamp(watch_s=(stamps["scheduled"].watch_s or 0.0) + 0.5)
    lifecycle = of(*rows, thresholds=[text])
    assert lifecycle.thresholds[0].kind is kind, lifecycle.thresholds[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ready.p99", "cannot be read"),
        ("redy.p99<1s", "not measured"),
        ("ready.p98<1s", "names ready.p98, which is not measured"),
        ("ready<1s", "names ready, which is not measured"),
        ("failed<1s", "unit s"),
        ("throughput>1%", "unit %"),
        ("x" * 300, "cannot be read"),
    ],
)
def test_bad_thresholds_are_explained(text: str, problem: str) -> None:
    with pytest.raises(InvalidValue, match=problem):
        Conditions((text,))


def test_pending_workloads_make_a_run_invalid() -> None:
    half = workload("j-2")
    del half.stamps["finished"]
    lifecycle = of(workload("j-1"), half)
    assert lifecycle.verdict.kind is VerdictKind.INVALID
    assert "1 of 2 have not reached finished" in lifecycle.verdict.reason
    assert "<run_seconds>" in lifecycle.verdict.remedy
