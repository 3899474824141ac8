"""What sampling adds to a request: seconds that sum to its run time, nothing of other requests, no
open files. What `/proc` does not tell is not guessed, and fails no request.
"""

import gc
import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from scaletest.broker.fast_lane import TakenRequest
from scaletest.model import Activity, Outcome, State
from scaletest.observe import wait_targets
from scaletest.observe.sampler import SHORT_S, RequestSampler
from scaletest.processes import proc
from scaletest.processes.proc import Schedule
from scaletest.processes.wake import Wake
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from tests.integration.sampling import (
    LONG_S,
    activity_of,
    lock_held,
    longest,
    objects,
    programs,
    sampled,
)


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
    sampler.count_program(0.1)
    drawn = [sampler.draw() is not None for _ in range(1000)]
    assert 400 < sum(drawn) < 600
    assert all(sampler.draw("/dev/null") for _ in range(50))
    for _ in range(50):
        sampler.count_program(SHORT_S + 0.5)
    assert all(sampler.draw() for _ in range(50))


def test_a_request_tells_what_its_worker_waited_for_a_cpu_before_it() -> None:
    # given a worker that waits 0.01 s from one look at itself to the next
    sampler, looks = RequestSampler(sampled_part=0.0), itertools.count()
    sampler.own_schedule = lambda: Schedule(0.0, 0.01 * next(looks), 1)

    def waited_before_s() -> float:
        activity = sampler.begin().close_own(State.SLEEP)
        assert activity is not None
        return activity.waited_before_s

    assert waited_before_s() == 0.0  # nothing is known of the time before the first one
    assert waited_before_s() == pytest.approx(0.01)
    # behind a request that chance left out the last wait that is known counts
    sampler.count_program(0.1)
    assert sampler.draw() is None
    next(looks)
    assert waited_before_s() == pytest.approx(0.01)


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
    gc.collect()  # what earlier tests left open would be closed meanwhile
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
        reply = json.loads(runtime.reply_json(TakenRequest("a", 1, 0), "w", result, run_s)[0])
    finally:
        runtime.close()
    assert (result.activity is None) == no_causes
    assert reply.get("activity") == (result.activity and result.activity.to_dict())


NOBODY = 65534


def test_denied_system_calls_leave_the_state_and_the_lock_file(
    wake: Wake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # as Yama does it: nothing that needs the right to trace
    def denied(handle: int, size: int, offset: int, pread=os.pread) -> bytes:  # type: ignore[no-untyped-def]
        if proc.read_link(f"/proc/self/fd/{handle}").endswith(("/syscall", "/mem")):
            raise PermissionError(1, "Operation not permitted")
        return bytes(pread(handle, size, offset))

    monkeypatch.setattr("scaletest.observe.blocking.os.pread", denied)
    path = tmp_path / "lock"
    with lock_held(path), programs(wake) as program:
        locked = activity_of(program.run(["flock", str(path), "true"], 0.0, {}).result)
        slept = activity_of(program.run(["sleep", "1"], 0.0, {}).result)
    assert longest(locked) is State.FILE_LOCK and longest(slept) is State.SLEEP
    if _tells_inodes():
        assert objects(locked, State.FILE_LOCK) == {str(path)}
    assert caplog.text.count("system calls of some programs cannot be read") == 1


def _tells_inodes() -> bool:
    with open("/proc/self/fdinfo/0", encoding="utf-8") as file:  # noqa: PTH123
        return wait_targets.parse_inode(file.read()) is not None


def test_hidden_functions_beside_denied_calls_are_not_observed(
    wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = proc.read

    def hidden(path: str | Path, limit: int = 4096) -> bytes:
        return b"0" if str(path).endswith("/wchan") else read(path, limit)

    monkeypatch.setattr("scaletest.processes.proc.read", hidden)
    monkeypatch.setattr("scaletest.observe.blocking.call_kinds", dict)
    assert longest(sampled(wake, "sleep", "1")) is State.NOT_OBSERVED


def test_a_mistake_in_a_look_does_not_fail_the_request(
    wake: Wake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("scaletest.observe.tree.Tree.look", broken)
    with programs(wake) as program:
        for _ in range(2):
            assert (
                longest(activity_of(program.run(["sleep", "0.5"], 0.0, {}).result))
                is State.NOT_OBSERVED
            )
    assert caplog.text.count("sampling ended early: ZeroDivisionError: a mistake") == 1


@pytest.mark.skipif(
    os.getuid() != 0, reason="only root can make a program that runs as another user"
)
def test_a_setuid_program_of_another_user_does_not_fail_the_request(tmp_path: Path) -> None:
    folder = Path("/tmp") / f"scaletest-setuid-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        program = folder / "sleep"
        shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
        program.chmod(0o4755)
        activity = _as_nobody(str(program), "1")
    finally:
        shutil.rmtree(folder)
    # the call that it sleeps in may not be read, nor the function
    assert longest(activity) is State.NOT_OBSERVED
    assert activity.memory_bytes > 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_waits_are_named_for_a_user_without_privileges() -> None:
    folder = Path("/tmp") / f"scaletest-nobody-{os.getpid()}"
    folder.mkdir(mode=0o755)
    path = folder / "lock"
    try:
        with lock_held(path):
            path.chmod(0o666)
            activity = _as_nobody("flock", str(path), "true")
    finally:
        shutil.rmtree(folder)
    assert longest(activity) is State.FILE_LOCK and objects(activity, State.FILE_LOCK) == {
        str(path)
    }


def _as_nobody(*command: str) -> Activity:
    """The activity of a command whose worker is another user, in a fork of this process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            result, _ = Runtime(Settings(command=command), Wake()).run((), 0.0)
            os.write(write_end, json.dumps(activity_of(result).to_dict()).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:  # noqa: PTH123
        data = pipe.read()
    os.waitpid(child, 0)
    return Activity.from_dict(json.loads(data))
