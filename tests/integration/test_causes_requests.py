"""What sampling adds to a request: seconds that sum to its run time, nothing of other requests, no
open files.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from scaletest.model import Outcome, State
from scaletest.system.sampler import SHORT_S, RequestSampler
from scaletest.system.wake import Wake
from tests.integration.sampling import (
    LONG_S,
    activity_of,
    lock_held,
    longest,
    programs,
    sampled,
)
from workers.runtime import Runtime, Settings


def test_the_seconds_sum_to_the_run_time(wake: Wake) -> None:
    for tenths in "0147":
        runtime = Runtime(Settings(command=("sh", "-c", "sleep 0.$0; seq 20000 | tail -1")), wake)
        try:
            result, run_s = runtime.run((tenths,), 0.0)
        finally:
            runtime.close()
        activity = activity_of(result)
        total_s = sum(activity.seconds.values())
        # what the runtime does around the program counts for the request only; a busy machine
        # stretches it
        assert 0 <= run_s - total_s <= 0.5 * run_s
        assert total_s >= int(tenths) / 10
        assert all(seconds > 0 for seconds in activity.seconds.values())


def test_of_short_requests_a_part_is_sampled_and_of_long_ones_and_those_with_a_device_all() -> None:
    sampler = RequestSampler()
    assert sampler.draw() is not None  # nothing is known of the first one
    sampler.ended(0.1)
    drawn = [sampler.draw() is not None for _ in range(1000)]
    assert 400 < sum(drawn) < 600
    assert all(sampler.draw("/dev/null") for _ in range(50))
    for _ in range(50):
        sampler.ended(SHORT_S + 0.5)
    assert all(sampler.draw() for _ in range(50))


def test_a_second_command_has_no_waits_of_the_first(wake: Wake, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with programs(wake) as program:
        with lock_held(path):
            first = activity_of(program.run(["flock", str(path), "true"], 0.0, {}).result)
        second = activity_of(program.run(["sleep", "0.5"], 0.0, {}).result)
    assert State.FILE_LOCK in first.seconds and State.FILE_LOCK not in second.seconds
    assert not second.waits


def test_a_program_that_ends_at_once_has_its_sums(wake: Wake) -> None:
    activity = sampled(wake, "true")
    assert activity.cpu_s > 0 and activity.memory_bytes > 0
    assert activity.seconds[State.ON_CPU] > 0


def test_programs_leave_no_file_open(wake: Wake) -> None:
    with programs(wake) as program:
        counts = []
        for _ in range(4):
            program.run(["sh", "-c", "sleep 0.3 & sleep 0.3"], 0.0, {})
            counts.append(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
    assert len(set(counts)) == 1


def test_a_program_that_is_ended_at_its_limit_has_an_activity(wake: Wake) -> None:
    with programs(wake) as program:
        result = program.run(["sleep", "60"], LONG_S, {}).result
    assert result.outcome is Outcome.TIMED_OUT and result.activity is not None
    assert longest(result.activity) is State.SLEEP


@pytest.mark.parametrize("no_causes", [False, True])
def test_the_reply_carries_the_activity_if_there_is_one(wake: Wake, no_causes: bool) -> None:
    runtime = Runtime(Settings(command=("/bin/sleep", "0.5"), no_causes=no_causes), wake)
    try:
        result, run_s = runtime.run((), 0.0)
        reply = json.loads(runtime.reply_json("a", "w", result, run_s, 0, 0, 1)[0])
    finally:
        runtime.close()
    assert (result.activity is None) == no_causes
    assert reply.get("activity") == (result.activity and result.activity.to_dict())
