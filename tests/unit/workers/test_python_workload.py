"""Workloads in Python, run for real: real processes, no Redis."""

import functools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scaletest.model import Outcome, Reason, State
from scaletest.model.errors import UsageError
from scaletest.model.workload import reference_of
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceOptions
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads import persistent, registry
from scaletest_workers.workloads.base import Interrupted, ProgramOptions, Result
from tests.conftest import eventually

SOURCE = '''
from __future__ import annotations
import asyncio, os, resource, signal, sys, threading, time
from scaletest.model.errors import NoDevice
from scaletest.model.workload import Device

class Behaviour:
    def __init__(self, width: int = 320, device: Device | None = None) -> None:
        self.width, self.device, self.runs = width, device, 0
        print("it is set up")

    def run(self, how: str = "", seconds: float = 0.0) -> dict[str, object] | None:
        self.runs += 1
        if how == "exception":
            raise ValueError("no such\\n  picture")
        if how == "exit":
            os._exit(4)
        if how == "exit 0":
            os._exit(0)
        if how == "sys.exit":
            sys.exit("it gives up")
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "fault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "memory":
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
            bytearray(1 << 34)
        if how == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.system("sleep 600 &")
            time.sleep(600)
        if how.startswith("/"):
            open(how, "w").close()
        if how == "no device":
            raise NoDevice("the decoder is taken", hint="wait for it")
        if how == "text":
            return "done"
        if how == "set":
            return {1}
        if how == "list":
            return [1, (2.5, None, True), "x"]
        if how == "list of it":
            return [object()]
        if how == "list of nan":
            return [float("nan")]
        if how == "large":
            return ["x" * 65535]
        if how == "object":
            return {"width": object()}
        if how == "nan":
            return {"width": float("nan")}
        if how == "huge":
            return {"width": 10**400}
        if how == "nested":
            return {"width": {"pixels": 3}, "fps": 30, "codec": "av1"}
        if how == "cancelled":
            raise asyncio.CancelledError
        if how == "fork":
            os.fork()
        if how == "orphan":
            if os.fork() == 0:
                time.sleep(600)
            os._exit(5)
        if how == "binary":
            os.write(1, bytes(range(256)) * 50)
            os.write(2, b"\\xff\\xfe\\0\\n")
        if how == "much":
            return {str(number): number for number in range(1000)}
        if how == "answers":
            for handle in range(3, 20):
                try:
                    os.write(handle, b"no JSON" * 1000 + b"\\n")
                except OSError:
                    pass
            time.sleep(600)
        if how == "late":
            def write_late() -> None:
                time.sleep(seconds)
                for handle in range(3, 20):
                    try:
                        os.write(handle, b'{"figures": {"width": -1}}\\n')
                    except OSError:
                        pass
            threading.Thread(target=write_late).start()
            return {"width": 0}
        if how == "close":
            os.closerange(3, 256)
        if how == "stdin":
            return {"read": len(sys.stdin.read())}
        if how == "spin":
            while time.process_time() < seconds:
                pass
        elif how == "device":
            return {"path": self.device.path, "seen": os.environ["SCALETEST_DEVICE"]}
        else:
            time.sleep(seconds)
        if how == "nothing":
            return None
        return {"width": self.width, "pid": os.getpid(), "runs": self.runs}

def twice(number: float) -> dict[str, float]:
    return {"twice": 2 * number}

def needy(device: Device) -> None:
    """It uses a device."""

class Slow:
    def __init__(self, seconds: float = 0.0) -> None:
        time.sleep(seconds)

    def run(self, seconds: float = 0.0) -> None:
        time.sleep(seconds)

class WithoutRun:
    pass

async def later() -> None:
    pass

class OfProperty:
    @property
    def run(self):
        return lambda number=1: {"number": int(number)}

class NoMethod:
    run = 5

class Later:
    async def run(self) -> None:
        pass

def anything(**options: int) -> None:
    pass
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "behaviour.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def runtime(file: Path, wake: Wake) -> Iterator[Runtime]:
    """A worker's runtime with the class of the file."""
    with closing(make(wake, f"{file}:Behaviour", "--width", "64")) as python_runtime:
        yield python_runtime


def make(wake: Wake, *command: str, device: Path | None = None) -> Runtime:
    options = DeviceOptions(str(device), device_index=0) if device else DeviceOptions()
    return Runtime(
        Settings(command=command, devices=options, program=ProgramOptions(kill_grace_s=0.1)), wake
    )


def test_it_is_made_once_and_its_process_stays(runtime: Runtime) -> None:
    first, second = (runtime.run((), 0.0)[0] for _ in range(2))
    assert first.outcome is second.outcome is Outcome.SUCCEEDED
    assert (first.figures["width"], first.figures["runs"]) == (64, 1)
    assert (second.figures["pid"], second.figures["runs"]) == (first.figures["pid"], 2)
    assert runtime.run(("nothing",), 0.0)[0].figures == {}


@pytest.mark.parametrize(
    ("how", "value", "figures"),
    [
        ("text", "done", {}),
        ("list", [1, [2.5, None, True], "x"], {}),
        (
            "nested",
            {"width": {"pixels": 3}, "fps": 30, "codec": "av1"},
            {"fps": 30, "codec": "av1"},
        ),
        ("", None, {"width": 64}),
    ],
)
def test_what_it_returns_is_a_value_where_it_is_more_than_figures(
    runtime: Runtime, how: str, value: object, figures: dict[str, int]
) -> None:
    result, _ = runtime.run((how,), 60.0)
    assert (result.outcome, result.value) == (Outcome.SUCCEEDED, value), result.error
    assert figures.items() <= result.figures.items()


MEMORY = "out of memory"


@pytest.mark.parametrize(
    ("how", "outcome", "reason", "text"),
    [
        ("exception", Outcome.FAILED, Reason.EXIT, "ValueError: no such picture (behaviour.py, "),
        ("exit", Outcome.FAILED, Reason.EXIT, "ended by itself with code 4"),
        ("exit 0", Outcome.FAILED, Reason.EXIT, "ended by itself with code 0"),
        ("sys.exit", Outcome.FAILED, Reason.EXIT, "it gives up"),
        ("kill", Outcome.FAILED, Reason.SIGNAL, "SIGKILL; the memory limit of its container"),
        ("fault", Outcome.FAILED, Reason.SIGNAL, "was ended by SIGSEGV"),
        ("memory", Outcome.FAILED, Reason.EXIT, MEMORY),
        ("stubborn", Outcome.TIMED_OUT, Reason.NONE, "timed out after 1 s"),
        ("no device", Outcome.FAILED, Reason.NO_DEVICE, "the decoder is taken (wait for it)"),
        ("set", Outcome.FAILED, Reason.EXIT, "returned what JSON cannot hold: Object of type set"),
        ("list of it", Outcome.FAILED, Reason.EXIT, "returned what JSON cannot hold: "),
        ("list of nan", Outcome.FAILED, Reason.EXIT, "returned what JSON cannot hold: "),
        ("large", Outcome.FAILED, Reason.EXIT, "returned 65539 bytes of JSON, at most 65536 are"),
        ("object", Outcome.FAILED, Reason.EXIT, "width is an object of type object, not a number"),
        ("nan", Outcome.FAILED, Reason.EXIT, "width is nan, not a finite number"),
        ("huge", Outcome.FAILED, Reason.EXIT, "width is an object of type int, not a number"),
        ("cancelled", Outcome.FAILED, Reason.EXIT, "CancelledError (behaviour.py"),
        ("orphan", Outcome.FAILED, Reason.EXIT, "ended by itself with code 5"),
        ("much", Outcome.FAILED, Reason.EXIT, "returned 1000 figures"),
        ("answers", Outcome.FAILED, Reason.EXIT, "which does not answer"),
        ("close", Outcome.FAILED, Reason.EXIT, "Bad file descriptor"),
    ],
)
def test_a_request_that_fails_says_why_and_the_next_is_run(
    runtime: Runtime,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    outcome: Outcome,
    reason: Reason,
    text: str,
) -> None:
    runtime.prepare()
    result, _ = runtime.run((how,), 1.0 if outcome is Outcome.TIMED_OUT else 60.0)
    assert (result.outcome, result.reason, text in result.error) == (outcome, reason, True), result
    assert ("memory_limit_hits" in result.figures) == (text == MEMORY)
    # the next one is run, also the one after it
    assert [runtime.run((), 60.0)[0].outcome for _ in range(2)] == [Outcome.SUCCEEDED] * 2


def test_to_be_made_anew_takes_none_of_a_time_limit(file: Path, wake: Wake) -> None:
    """Else a limit that is shorter ends every process before it has run one request."""
    runtime = make(wake, f"{file}:Slow", "3")
    runtime.prepare()

    def made_anew() -> Result:
        assert runtime.run(("60",), 1.5)[0].outcome is Outcome.TIMED_OUT
        result, run_s = runtime.run((), 1.5)
        assert (result.outcome, run_s > 3.0) == (Outcome.SUCCEEDED, True), result
        return result

    # a busy machine looks at some of the short requests only
    activity = eventually(lambda: made_anew().activity)
    runtime.close()
    assert activity.seconds[State.SLEEP] > 2.5  # it is told what the time was


def test_one_that_is_never_made_ends_its_request(
    file: Path, wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistent, "READY_LIMIT_S", 1.5)
    with closing(make(wake, f"{file}:Slow", "60")) as runtime:
        result = runtime.run((), 0.5)[0]
    assert (result.outcome, result.timeout_s) == (Outcome.TIMED_OUT, 1.5)


def test_what_a_request_wrote_late_is_not_the_answer_to_the_next(runtime: Runtime) -> None:
    assert runtime.run(("late", "0.5"), 60.0)[0].figures == {"width": 0}
    result, _ = runtime.run(("", "30"), 60.0)
    assert "which does not answer this request" in result.error
    assert runtime.run((), 60.0)[0].figures["width"] == 64


def test_a_fork_that_comes_back_answers_nothing(runtime: Runtime) -> None:
    first = runtime.run(("fork",), 60.0)[0]
    following = [runtime.run((), 60.0)[0] for _ in range(3)]
    assert {result.figures["pid"] for result in following} == {first.figures["pid"]}
    assert [result.figures["runs"] for result in following] == [2, 3, 4]


def test_binary_output_is_no_answer(runtime: Runtime) -> None:
    assert runtime.run(("binary",), 60.0)[0].outcome is Outcome.SUCCEEDED
    assert runtime.run((), 60.0)[0].figures["runs"] == 2


def test_killed_from_outside_it_fails_and_the_next_request_runs(
    runtime: Runtime, tmp_path: Path
) -> None:
    pid = int(runtime.run((), 0.0)[0].figures["pid"])
    begun = tmp_path / "begun"

    def kill() -> None:
        eventually(begun.exists)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result, _ = runtime.run((str(begun), "600"), 0.0)
    killer.join()
    assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.SIGNAL)
    # one that ended between two requests is no failure
    pid = int(runtime.run((), 0.0)[0].figures["pid"])
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert runtime.run((), 0.0)[0].outcome is Outcome.SUCCEEDED


def test_arguments_that_do_not_fit_are_failed_requests(runtime: Runtime) -> None:
    result, _ = runtime.run(("", "soon"), 0.0)
    assert result.outcome is Outcome.FAILED
    assert "seconds in" in result.error and "is 'soon', not a number" in result.error
    assert "how: str = ''" in result.error


@pytest.mark.parametrize(("how", "state"), [("", State.SLEEP), ("spin", State.ON_CPU)])
def test_what_it_waits_for_and_uses_is_told(runtime: Runtime, how: str, state: State) -> None:
    activity = runtime.run((how, "1.5"), 0.0)[0].activity
    # other programs may keep it from the CPU, longer than it computes
    assert activity.seconds[state] > 1.0
    assert (activity.cpu_s > 1.0) == (state is State.ON_CPU)


def test_a_worker_that_must_stop_ends_the_process(runtime: Runtime, wake: Wake) -> None:
    pid = int(runtime.run((), 0.0)[0].figures["pid"])
    wake.set()
    with pytest.raises(Interrupted):
        runtime.run(("", "60"), 0.0)
    assert not Path(f"/proc/{pid}").exists()
    wake.clear()
    assert runtime.run((), 0.0)[0].figures["pid"] != pid


def test_its_process_ends_with_the_worker(file: Path, tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        from scaletest.processes.wake import Wake
        from scaletest_workers.runtime import Runtime, Settings
        runtime = Runtime(Settings(command=("{file}:Behaviour",)), Wake())
        print(runtime.run((), 0.0)[0].figures["pid"], flush=True)
        runtime.run(("", "600"), 0.0)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as worker:
        pid = int(worker.stdout.readline())
        worker.kill()
    assert eventually(lambda: not Path(f"/proc/{pid}/cmdline").exists(), 20)


def test_it_cannot_read_the_requests_of_others(runtime: Runtime) -> None:
    assert runtime.run(("stdin",), 10.0)[0].figures == {"read": 0}


def test_it_gets_the_device_of_the_worker(file: Path, tmp_path: Path, wake: Wake) -> None:
    device = tmp_path / "renderD128"
    device.touch()
    with closing(make(wake, f"{file}:Behaviour", device=device)) as runtime:
        result, _ = runtime.run(("device",), 0.0)
    assert result.figures == {"path": str(device), "seen": str(device)}


def test_without_a_device_that_it_needs_it_says_so(file: Path, wake: Wake) -> None:
    with closing(make(wake, f"{file}:needy")) as runtime:
        result, _ = runtime.run((), 0.0)
    assert result.reason is Reason.NO_DEVICE and "--device-glob" in result.error


def test_a_function_is_a_workload(file: Path, wake: Wake) -> None:
    with closing(make(wake, f"{file}:twice")) as runtime:
        assert runtime.run(("1.5",), 0.0)[0].figures == {"twice": 3.0}
        assert "needs the argument number" in runtime.run((), 0.0)[0].error


def test_run_may_be_a_property(file: Path, wake: Wake) -> None:
    with closing(make(wake, f"{file}:OfProperty")) as runtime:
        runtime.prepare()
        assert runtime.run(("3",), 0.0)[0].figures == {"number": 3}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no.such:thing", "there is no module no.such"),
        ("{file}:Behavior", "has no Behavior (did you mean Behaviour?)"),
        ("{file}:WithoutRun", "has no method run"),
        ("{file}:NoMethod", "has no method run"),
        ("{file}:later", "later is async"),
        ("{file}:Later", "Later.run is async"),
        ("{file}:anything", "takes any names (**options: int), which cannot be read"),
        ("{file}:os", "is neither a class nor a function"),
        ("{folder}/none.py:x", "there is no file"),
        ("{folder}/broken.py:x", "ZeroDivisionError: division by zero (broken.py, line 1)"),
        ("{folder}/lacking.py:x", "ModuleNotFoundError: No module named 'nothing_like_it'"),
    ],
)
def test_what_cannot_be_made_is_an_error_before_the_first_request(
    file: Path, tmp_path: Path, wake: Wake, name: str, why: str
) -> None:
    (tmp_path / "broken.py").write_text("x = 1 / 0\n")
    (tmp_path / "lacking.py").write_text("import nothing_like_it\n")
    with (
        closing(make(wake, name.format(file=file, folder=tmp_path))) as runtime,
        pytest.raises(UsageError) as refused,
    ):
        runtime.prepare()
    assert why in refused.value.message and refused.value.hint


def test_every_built_in_workload_is_where_its_name_leads(wake: Wake) -> None:
    for name, target in registry.BUILT_IN.items():
        module, _, function = target.partition(":")
        assert callable(getattr(__import__(module, fromlist=[function]), function)), name


def a_workload() -> None:
    """At the top of a module."""


@functools.wraps(a_workload)
def another_workload() -> None:
    """It has the name of the other."""


class AWorkload:
    def run(self) -> None:
        """Belongs to an object."""

    @classmethod
    def of_class(cls) -> None:
        """Belongs to the class."""


def test_a_class_or_function_has_a_name_that_another_process_can_import() -> None:
    assert reference_of(a_workload) == f"{__name__}:a_workload"
    with pytest.raises(UsageError, match="cannot be imported by another process"):
        reference_of(lambda: None)
    # an object has no name of its own
    with pytest.raises(UsageError, match="<partial> cannot be imported"):
        reference_of(functools.partial(a_workload))
    # the worker would run something else by that name
    with pytest.raises(UsageError, match="a_workload cannot be imported"):
        reference_of(another_workload)
    with pytest.raises(UsageError, match=r"AWorkload\.run cannot be imported"):
        reference_of(AWorkload().run)
    with pytest.raises(UsageError, match=r"list\.append cannot be imported"):
        reference_of([].append)
    assert reference_of(AWorkload.of_class) == f"{__name__}:AWorkload.of_class"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(("-m", "pack.program"), "pack.program:work"), (("pack/program.py",), "/program.py:work")],
    ids=["module", "file"],
)
def test_a_function_of_the_program_that_runs_has_the_name_of_that_program(
    tmp_path: Path, arguments: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "program.py").write_text(
        "from scaletest.model.workload import reference_of\n"
        "def work(): pass\nprint(reference_of(work))\n"
    )
    said = subprocess.check_output([sys.executable, *arguments], text=True, cwd=tmp_path)
    assert said.strip().endswith(expected)
