"""Plans of lifecycle runs, their records as lines of JSON, and times from the Run:ai database."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.lifecycle.measure.tracker import Tracker
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import LifecycleObject, Submission, read_line
from scaletest.lifecycle.runai import read_backend_times
from scaletest.model.errors import InvalidValue, UsageError
from tests.unit.lifecycles import job, plan, pod, sighting


def test_records_come_back_as_they_were() -> None:
    tracker = Tracker({"j"})
    tracker.see(sighting("workload", "ADDED", job("j", done=9.0), 0.25))
    tracker.see(sighting("pod", "MODIFIED", pod("p", "j", scheduled=1, started=2, finished=3), 3.5))
    workloads: dict[str, LifecycleObject] = {}
    for line in tracker.workloads["j"].lines():
        read_line(line, workloads)
    assert workloads == tracker.workloads


@given(
    st.text(max_size=60)
    | st.sampled_from(['{"record":"pod","workload":"x"}', '{"stamps":{"a":1}}', "[]", "{}"])
)
def test_foreign_records_are_refused_cleanly(line: str) -> None:
    for read_one in (lambda: read_line(line, {}), lambda: Submission.from_json(line)):
        with pytest.raises(InvalidValue):
            read_one()


def test_backend_times_are_read(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("jobName,time_created\nj-1,1790000000123\n")
    assert read_backend_times(path) == {"j-1": 1790000000.123}
    path.write_text("name,when\nj-1,3\n")
    with pytest.raises(UsageError, match="backend times"):
        read_backend_times(path)


@pytest.mark.parametrize("count", [0, -1])
def test_defect_03_a_number_of_workloads_is_asked_for(count: int) -> None:
    with pytest.raises(InvalidValue, match="the number of workloads"):
        plan(count=count)


@given(st.integers(1, 3000), st.integers(0, 0xFFFFFF))
def test_defect_04_exactly_so_many_names_and_no_two_alike(count: int, run: int) -> None:
    names = list(plan(count=count, run=f"{run:06x}").names())
    assert len(names) == len(set(names)) == count
    assert names == list(plan(count=count, run=f"{run:06x}").names())


def test_plans_come_back_as_they_were() -> None:
    written = plan(delay_s=2, gpus="0.5", pvc=True)
    assert LifecyclePlan.from_dict(json.loads(json.dumps(written.to_dict()))) == written
