"""Workloads, run for real: real programs, real signals, no Redis."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaletest.model import Outcome, Reason
from scaletest.model.errors import InvalidValue
from scaletest.system.waiting import Wake
from tests.conftest import eventually, processes_with
from workers.runtime import Runtime, Settings
from workers.workloads.base import Interrupted, Result


@pytest.fixture
def wake() -> Iterator[Wake]:
    made = Wake()
    yield made
    made.close()


def run(wake: Wake, settings: Settings, *arguments: str, limit_s: float = 0.0) -> Result:
    runtime = Runtime(settings, wake)
    try:
        return runtime.run(arguments, limit_s)[0]
    finally:
        runtime.close()


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *arguments)


def test_sleep_succeeds_and_honours_its_limit(wake: Wake) -> None:
    assert run(wake, Settings(), "0.01").outcome is Outcome.SUCCEEDED
    result = run(wake, Settings(), "30", limit_s=0.05)
    assert (result.outcome, result.timeout_s) == (Outcome.TIMED_OUT, 0.05)
    assert "0.05 s" in result.error


def test_the_smaller_limit_of_worker_and_request_counts(wake: Wake) -> None:
    assert run(wake, Settings(time_limit_s=0.04), "30", limit_s=20).timeout_s == 0.04


@pytest.mark.parametrize("argument", ["-1", "nan", "inf", "abc", "", "1e300"])
def test_sleep_refuses_what_is_no_duration(wake: Wake, argument: str) -> None:
    result = run(wake, Settings(), argument)
    assert result.outcome is Outcome.FAILED
    assert "sleep needs seconds" in result.error


def test_sleep_without_arguments_says_what_it_needs(wake: Wake) -> None:
    assert "not 'nothing'" in run(wake, Settings()).error


def test_the_workers_own_arguments_win_for_sleep(wake: Wake) -> None:
    assert run(wake, Settings(command=("sleep", "0.01")), "abc").outcome is Outcome.SUCCEEDED


def test_a_program_gets_the_requests_arguments_and_no_shell(wake: Wake, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = "import sys; open(sys.argv[1], 'w').write(repr(sys.argv[2:]))"
    nasty = ("a b", "$(touch x)", "'; rm -rf /", "*", "ü\n")
    assert run(wake, Settings(command=python(code, str(out))), *nasty).outcome is Outcome.SUCCEEDED
    assert out.read_text() == repr(list(nasty))


def test_request_arguments_can_be_ignored(wake: Wake) -> None:
    settings = Settings(command=python("import sys; sys.exit(len(sys.argv) - 1)"), ignore_arguments=True)
    assert run(wake, settings, "a", "b").outcome is Outcome.SUCCEEDED


def test_an_exit_code_is_a_failure_with_the_end_of_its_errors(wake: Wake) -> None:
    result = run(wake, Settings(command=python("import sys; print('no frames', file=sys.stderr); sys.exit(3)")))
    assert (result.outcome, result.reason, result.exit_code) == (Outcome.FAILED, Reason.EXIT, 3)
    assert "returned error code 3: no frames" in result.error


def test_death_by_signal_is_named(wake: Wake) -> None:
    result = run(wake, Settings(command=python("import os; os.kill(os.getpid(), 9)")))
    assert (result.reason, result.exit_code) == (Reason.SIGNAL, -9)
    assert "SIGKILL" in result.error


@pytest.mark.parametrize("program", ["/nonexistent/tool", "no-such-tool-anywhere", "/etc/passwd", "/"])
def test_a_program_that_cannot_start_is_a_failure(wake: Wake, program: str) -> None:
    result = run(wake, Settings(command=(program,)))
    assert result.reason is Reason.NO_BINARY
    assert program in result.error


def test_a_missing_work_directory_is_told_apart_from_a_missing_program(wake: Wake) -> None:
    assert "work directory" in run(wake, Settings(command=("true",), directory="/nonexistent")).error


def test_the_limit_ends_the_whole_group(wake: Wake) -> None:
    # given a program that ignores TERM and starts a grandchild that does too
    mark = f"grandchild-{os.getpid()}"
    grandchild = f"import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)  # {mark}"
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {grandchild!r}])\n"
        "time.sleep(600)"
    )
    # when the limit is exceeded
    result = run(wake, Settings(command=python(code), kill_grace_s=0.1), limit_s=0.5)
    # expect both gone, and the reply to say after how long
    assert (result.outcome, result.timeout_s) == (Outcome.TIMED_OUT, 0.5)
    eventually(lambda: not processes_with(mark))


def test_a_program_that_ends_leaves_no_grandchild(wake: Wake) -> None:
    mark = f"orphan-{os.getpid()}"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)  # {mark}'])"
    assert run(wake, Settings(command=python(code))).outcome is Outcome.SUCCEEDED
    eventually(lambda: not processes_with(f"# {mark}"))


def test_null_input_can_be_read(wake: Wake) -> None:
    settings = Settings(command=python("import sys; sys.exit(len(sys.stdin.read()))"), null_input=True)
    assert run(wake, settings).outcome is Outcome.SUCCEEDED


def test_null_output_still_keeps_the_error_text(wake: Wake, capfd: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(1)"
    result = run(wake, Settings(command=python(code), null_output=True))
    assert result.error.endswith("err")
    assert capfd.readouterr() == ("", "")


def test_a_flood_of_errors_blocks_nothing(wake: Wake) -> None:
    code = "import sys; sys.stderr.write('x' * 3_000_000); sys.exit(1)"
    result = run(wake, Settings(command=python(code), null_output=True))
    assert result.exit_code == 1
    assert len(result.error) < 1000


@pytest.mark.parametrize("settings", [Settings(command=("sleep", "600")), Settings(command=("/bin/sleep", "600"))])
def test_an_interrupt_ends_a_run_at_once(wake: Wake, settings: Settings) -> None:
    threading.Timer(0.1, wake.set).start()
    with pytest.raises(Interrupted):
        run(wake, settings)


def test_filename_becomes_the_device(wake: Wake, tmp_path: Path) -> None:
    for name in ("renderD128", "renderD129"):
        (tmp_path / name).touch()
    code = "import os, sys; sys.exit(sys.argv[1] != '--in=' + os.environ['SCALETEST_DEVICE'])"
    for index, name in ((0, "renderD128"), (1, "renderD129"), (2, "renderD128")):
        settings = Settings(
            command=python(code, "--in=FILENAME"), device_glob=str(tmp_path / "renderD*"), device_index=index
        )
        result = run(wake, settings)
        assert result.outcome is Outcome.SUCCEEDED, result.error
        assert result.device == str(tmp_path / name)


def test_no_device_is_a_failure_that_names_the_pattern(wake: Wake, tmp_path: Path) -> None:
    settings = Settings(command=("true", "FILENAME"), device_glob=str(tmp_path / "none*"))
    result = run(wake, settings)
    assert result.reason is Reason.NO_DEVICE
    assert "none*" in result.error
    assert run(wake, Settings(command=("true", "FILENAME"))).reason is Reason.NO_DEVICE


def test_names_come_from_the_named_variables_else_the_host(wake: Wake) -> None:
    settings = Settings(node_variable="NODE", pod_variable="POD")
    runtime = Runtime(settings, wake, {"NODE": "n1"})
    assert runtime.node == "n1"
    assert runtime.pod == os.uname().nodename


def test_stock_workers_are_configured_by_variables() -> None:
    settings = Settings.from_environment(
        {
            "SCALETEST_WORKER_COMMAND": "ffmpeg -i 'a b' FILENAME",
            "SCALETEST_WORKER_TIME_LIMIT": "2.5",
            "SCALETEST_WORKER_NULL_INPUT": "true",
        }
    )
    assert settings == Settings(command=("ffmpeg", "-i", "a b", "FILENAME"), time_limit_s=2.5, null_input=True)
    with pytest.raises(InvalidValue, match="TIME_LIMIT"):
        Settings.from_environment({"SCALETEST_WORKER_TIME_LIMIT": "soon"})


def test_a_killed_worker_takes_its_group_along(tmp_path: Path) -> None:
    # given a process that runs a workload whose grandchild left its group
    mark = f"stray-{os.getpid()}"
    escape = f"import os, time; os.setsid(); open({str(tmp_path / 'up')!r}, 'w'); time.sleep(600)  # {mark}"
    code = (
        "import sys\n"
        "from scaletest.system.waiting import Wake\n"
        "from workers.runtime import Runtime, Settings\n"
        f"inner = 'import subprocess, sys; subprocess.Popen([sys.executable, \"-c\", ' + {escape!r}.__repr__() + "
        "']).wait()'\n"
        "Runtime(Settings(command=(sys.executable, '-c', inner)), Wake()).run((), 0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    eventually((tmp_path / "up").exists)
    assert processes_with(f"# {mark}")
    # when the process is killed
    process.send_signal(signal.SIGKILL)
    process.wait()
    # expect nobody left
    eventually(lambda: not processes_with(f"# {mark}"))


def test_a_device_in_place_of_the_program_is_a_pattern_without_quotes(wake: Wake) -> None:
    runtime = Runtime(Settings(command=("/dev/null", "--", "ffmpeg"), device_glob="/dev/zero", device_index=0), wake)
    result, _ = runtime.run((), 0.0)
    runtime.close()
    assert result.reason is Reason.NO_BINARY
    assert "put the pattern of --device-glob into quotes" in result.error
