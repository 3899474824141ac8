"""Programs that are sampled for tests, and what their activities say."""

import fcntl
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.benchmarks.causes_injectors import Injected
from scaletest.model import Activity, Outcome, State
from scaletest.observe.sampler import RequestSampler
from scaletest.processes.wake import Wake
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import ProgramOptions, Result
from scaletest_workers.workloads.program import Program

# What is waited for lasts so long: on a busy machine a program needs a second to begin, and a look
# comes late.
LONG_S = 4.0


@contextmanager
def programs(wake: Wake) -> Iterator[Program]:
    program = Program(ProgramOptions(), wake, RequestSampler(sampled_part=1.0))
    try:
        yield program
    finally:
        program.close()


def sampled(wake: Wake, *command: str) -> Activity:
    """The activity of a command that succeeds, which has all states and sums that hold for any
    command.
    """
    with programs(wake) as program:
        return activity_of(program.run(command, 0.0, {}).result)


def activity_of(result: Result) -> Activity:
    assert result.outcome is Outcome.SUCCEEDED, result.error
    assert result.activity is not None
    return result.activity


def sampled_apart(injected: Injected) -> Activity:
    """The activity of an injected bottleneck's command, run by a process of its own, which may have
    to join a control group.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_run_once, (injected,))


def _run_once(injected: Injected) -> Activity:
    if injected.join:
        Path(injected.join).write_text(str(os.getpid()), encoding="ascii")
    runtime = Runtime(Settings(command=injected.command), Wake())
    result, _ = runtime.run((), 0.0)
    runtime.close()
    return activity_of(result)


def longest(activity: Activity) -> State:
    """The state with most seconds, but for waiting for a CPU: how much of that there is the
    machine's others decide.
    """
    waiting = {State.CPU_WAIT, State.THROTTLED}
    return max(set(activity.seconds) - waiting, key=lambda state: activity.seconds[state])


def objects(activity: Activity, state: State) -> set[str]:
    return {wait.object for wait in activity.waits if wait.state is state}


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """A lock of ours that is given back after a second or so by a process of its own."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with subprocess.Popen(["sleep", str(LONG_S)], pass_fds=[file.fileno()]):
            # only the child holds it from here on
            file.close()
            yield


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that tells by a line when it is ready."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
