"""Thresholds of a lifecycle."""

import pytest

from scaletest.lifecycle.options import Conditions
from scaletest.lifecycle.records import Stamp
from scaletest.model.errors import InvalidValue
from scaletest.model.verdict import VerdictKind
from tests.unit.lifecycles import of, workload


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
        ("ready.p98<1s", "asks for p98"),
        ("ready<1s", "asks for nothing"),
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
