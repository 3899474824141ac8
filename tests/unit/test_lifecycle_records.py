"""Records of a lifecycle as lines of JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.lifecycle.tracker import Tracker
from scaletest.model.errors import InvalidValue
from scaletest.model.lifecycle import LifecycleObject, Submission, read_line
from tests.unit.lifecycles import job, pod, sighting


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
