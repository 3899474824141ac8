"""Plans of lifecycle runs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.lifecycle.folder import new_run
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.errors import InvalidValue
from tests.unit.lifecycles import plan


@pytest.mark.parametrize("count", [0, -1])
def test_defect_03_a_number_of_workloads_is_asked_for(count: int) -> None:
    with pytest.raises(InvalidValue, match="the number of workloads"):
        plan(count=count)


@given(st.integers(1, 3000), st.integers(0, 0xFFFFFF))
def test_defect_04_exactly_so_many_names_and_no_two_alike(count: int, run: int) -> None:
    names = list(plan(count=count, run=f"{run:06x}").names())
    assert len(names) == len(set(names)) == count
    assert names == list(plan(count=count, run=f"{run:06x}").names())


@pytest.mark.parametrize("seconds", ["", "abc", "-1", "nan", "1 s", "1;reboot"])
def test_pods_that_could_not_sleep_are_refused(seconds: str) -> None:
    with pytest.raises(InvalidValue, match="pods cannot run for"):
        LifecyclePlan(new_run(), "job", "n", 1, seconds=seconds)
    for good in ("0", "2.5", "30m", "infinity"):
        LifecyclePlan(new_run(), "job", "n", 1, seconds=good)


def test_plans_come_back_as_they_were() -> None:
    written = plan(delay_s=2, gpus="0.5", pvc=True)
    assert LifecyclePlan.from_dict(json.loads(json.dumps(written.to_dict()))) == written
    assert len(new_run()) == 6
