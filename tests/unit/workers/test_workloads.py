"""Workloads, run for real: real programs, real signals, no Redis."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from scaletest.benchmarks.documents.result import read_framed_result
from scaletest.benchmarks.kinds.failure import Failure
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.broker.fast_lane import TakenRequest
from scaletest.model import Outcome, Reason, Reply
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.json_schema import json_type
from scaletest.model.writing import document_members
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceChooser, DeviceOptions
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import Interrupted, ProgramOptions, Result, WorkloadSetup
from scaletest_workers.workloads.bench import BenchWorkload
from scaletest_workers.workloads.program import Program, ProgramEnd
from tests.conftest import eventually, processes_with


def run(wake: Wake, settings: Settings, *arguments: str, limit_s: float = 0.0) -> Result:
    runtime = Runtime(settings, wake)
    try:
        return runtime.run(arguments, limit_s)[0]
    finally:
        runtime.close()


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *arguments)


class FakeProgram(Program):
    """Starts nothing."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []

    def run(self, argv: Any, *_: Any, **__: Any) -> ProgramEnd:
        self.lines.append(argv)
        return ProgramEnd(Result(Outcome.SUCCEEDED, exit_code=0), "", "")


def bench(program: Program, *, allow_commands: bool = False) -> BenchWorkload:
    """The workload of a worker that starts its programs by this one."""
    workload = BenchWorkload(
        WorkloadSetup(
            command=("bench",),
            interrupt=Wake(),
            devices=DeviceChooser(DeviceOptions()),
            program=ProgramOptions(),
            sampler=None,
            allow_commands=allow_commands,
            node="",
        )
    )
    workload.close()
    workload._program = program
    return workload


def document(kind: str, **spec: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "scaletest.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": "x"},
            "spec": spec,
        }
    )


@pytest.mark.parametrize(
    ("kind", "spec", "refused"),
    [
        ("RDMABandwidth", {"extraArgs": ["--out_json_file=/etc/x"]}, "extraArgs"),
        ("RDMALatency", {"extraArgs": ["-x"]}, "extraArgs"),
        ("Fio", {"directory": "/etc"}, "directory"),
        ("Fio", {"size": "1M"}, ""),
        ("IPerf", {"duration": 1}, ""),
    ],
)
def test_a_benchmark_decides_what_runs_only_where_that_is_allowed(
    kind: str, spec: dict[str, Any], refused: str
) -> None:
    for allowed in (False, True):
        program = FakeProgram()
        result = bench(program, allow_commands=allowed).run((document(kind, **spec),), 60.0, None)
        assert bool(program.lines) == (allowed or not refused)
        if not program.lines:
            assert (result.outcome, result.reason) == (Outcome.FAILED, Reason.EXIT)
            assert f"takes no {refused} of a benchmark" in result.error
            assert "--allow-commands" in result.error
            ended = read_framed_result(str(result.figures["result"]))
            assert ended is not None and ended.failure is Failure.REFUSED
            assert "<allow_commands>" in ended.advice and not ended.lines


def test_every_field_of_a_command_is_known() -> None:
    """Who adds a kind must say which of its fields decide what runs; texts without a pattern
    may.
    """
    free = {
        f"{kind.name}.{field.name}"
        for kind in KINDS.values()
        for field in document_members(kind.spec)
        if json_type(field.hint) in ("string", "array")
        and not field.rule.choices
        and not {"pattern", "trusted"} & {*field.rule.limits, *field.rule.extra}
    }
    common = {"image", "nodes"}  # for pods; a worker uses neither
    assert {name.split(".")[1] for name in free} == common


@pytest.mark.parametrize(
    "argument", ["--help", "--scratch=/etc", "", "[]", '{"kind": "Nothing"}', "kind: IPerf"]
)
def test_a_request_without_a_document_never_reaches_a_command_line(argument: str) -> None:
    program = FakeProgram()
    result = bench(program, allow_commands=True).run((argument,), 60.0, None)
    assert (result.outcome, program.lines) == (Outcome.FAILED, [])
    assert result.error


def test_a_document_is_written_anew_for_the_child() -> None:
    program = FakeProgram()
    twice = document("IPerf", duration=1).replace('"spec"', '"spec": {"duration": 2}, "spec"')
    bench(program).run((twice,), 60.0, None)
    assert json.loads(program.lines[0][-1])["spec"] == {"duration": 1}


@pytest.mark.parametrize("path", ["pipe", "folder", "/dev/zero"])
def test_a_transcode_reads_plain_files_only(wake: Wake, tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    result = run(
        wake,
        Settings(command=("transcode",), program=ProgramOptions(str(tmp_path))),
        "--input",
        path,
    )
    assert result.outcome is Outcome.FAILED
    assert "is not a plain file" in result.error


def test_figures_that_are_no_numbers_stay_out_of_the_reply(wake: Wake) -> None:
    runtime = Runtime(Settings(), wake)
    figures = {"fps": float("nan"), "mbps": float("inf"), "frames": 25, "mean": 0.5, "text": "nan"}
    result = Result(Outcome.SUCCEEDED, exit_code=0, figures=figures)
    text, _ = runtime.reply_json(TakenRequest("r", 1, 0), "w", result, 1.0)
    assert Reply.from_json(text).figures == {"frames": 25, "mean": 0.5, "text": "nan"}
    runtime.close()


def test_sleep_succeeds_and_honours_its_limit(wake: Wake) -> None:
    assert run(wake, Settings(), "0.01").outcome is Outcome.SUCCEEDED
    result = run(wake, Settings(), "30", limit_s=0.05)
    assert (result.outcome, result.timeout_s) == (Outcome.TIMED_OUT, 0.05)
    assert "0.05 s" in result.error


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
    settings = Settings(
        command=python("import sys; sys.exit(len(sys.argv) - 1)"), ignore_arguments=True
    )
    assert run(wake, settings, "a", "b").outcome is Outcome.SUCCEEDED


def test_an_exit_code_is_a_failure_with_the_end_of_its_errors(wake: Wake) -> None:
    result = run(
        wake,
        Settings(command=python("import sys; print('no frames', file=sys.stderr); sys.exit(3)")),
    )
    assert (result.outcome, result.reason, result.exit_code) == (Outcome.FAILED, Reason.EXIT, 3)
    assert "returned error code 3: no frames" in result.error


def test_the_signal_that_ended_a_program_is_named(wake: Wake) -> None:
    result = run(wake, Settings(command=python("import os; os.kill(os.getpid(), 9)")))
    assert (result.reason, result.exit_code) == (Reason.SIGNAL, -9)
    assert "SIGKILL" in result.error


@pytest.mark.parametrize(
    "program", ["/nonexistent/tool", "no-such-tool-anywhere", "/etc/passwd", "/"]
)
def test_a_program_that_cannot_start_is_a_failure(wake: Wake, program: str) -> None:
    result = run(wake, Settings(command=(program,)))
    assert result.reason is Reason.NO_BINARY
    assert program in result.error


def test_a_missing_work_directory_is_told_apart_from_a_missing_program(wake: Wake) -> None:
    assert (
        "work directory"
        in run(wake, Settings(command=("true",), program=ProgramOptions("/nonexistent"))).error
    )


def test_the_time_limit_ends_the_whole_process_group(wake: Wake) -> None:
    # given a program that ignores TERM and starts a grandchild that does too
    mark = f"grandchild-{os.getpid()}"
    grandchild = (
        f"import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)  # {mark}"
    )
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {grandchild!r}])\n"
        "time.sleep(600)"
    )
    # when the limit is exceeded
    result = run(
        wake, Settings(command=python(code), program=ProgramOptions(kill_grace_s=0.1)), limit_s=0.5
    )
    # expect both gone, and the reply to say after how long
    assert (result.outcome, result.timeout_s) == (Outcome.TIMED_OUT, 0.5)
    eventually(lambda: not processes_with(mark))


def test_a_program_that_ends_leaves_no_grandchild(wake: Wake) -> None:
    mark = f"orphan-{os.getpid()}"
    code = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time;"
        f" time.sleep(600)  # {mark}'])"
    )
    assert run(wake, Settings(command=python(code))).outcome is Outcome.SUCCEEDED
    eventually(lambda: not processes_with(f"# {mark}"))


def test_null_input_can_be_read(wake: Wake) -> None:
    settings = Settings(
        command=python("import sys; sys.exit(len(sys.stdin.read()))"),
        program=ProgramOptions(null_input=True),
    )
    assert run(wake, settings).outcome is Outcome.SUCCEEDED


def test_null_output_still_keeps_the_error_text(
    wake: Wake, capfd: pytest.CaptureFixture[str]
) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(1)"
    result = run(wake, Settings(command=python(code), program=ProgramOptions(null_output=True)))
    assert result.error.endswith("err")
    assert capfd.readouterr() == ("", "")


def test_a_program_that_writes_many_errors_does_not_block(wake: Wake) -> None:
    code = "import sys; sys.stderr.write('x' * 3_000_000); sys.exit(1)"
    result = run(wake, Settings(command=python(code), program=ProgramOptions(null_output=True)))
    assert result.exit_code == 1
    assert len(result.error) < 1000


@pytest.mark.parametrize(
    "settings", [Settings(command=("sleep", "600")), Settings(command=("/bin/sleep", "600"))]
)
def test_an_interrupt_ends_a_run_at_once(wake: Wake, settings: Settings) -> None:
    threading.Timer(0.1, wake.set).start()
    with pytest.raises(Interrupted):
        run(wake, settings)


def test_the_placeholder_filename_becomes_the_device(wake: Wake, tmp_path: Path) -> None:
    for name in ("renderD128", "renderD129"):
        (tmp_path / name).touch()
    code = "import os, sys; sys.exit(sys.argv[1] != '--in=' + os.environ['SCALETEST_DEVICE'])"
    for index, name in ((0, "renderD128"), (1, "renderD129"), (2, "renderD128")):
        settings = Settings(
            command=python(code, "--in=FILENAME"),
            devices=DeviceOptions(str(tmp_path / "renderD*"), index),
        )
        result = run(wake, settings)
        assert result.outcome is Outcome.SUCCEEDED, result.error
        assert result.device == str(tmp_path / name)


def test_no_device_is_a_failure_that_names_the_pattern(wake: Wake, tmp_path: Path) -> None:
    settings = Settings(
        command=("true", "FILENAME"), devices=DeviceOptions(str(tmp_path / "none*"))
    )
    result = run(wake, settings)
    assert result.reason is Reason.NO_DEVICE
    assert "none*" in result.error
    assert run(wake, Settings(command=("true", "FILENAME"))).reason is Reason.NO_DEVICE


def test_names_come_from_the_named_variables_else_the_host(
    wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODE", "n1")
    monkeypatch.delenv("POD", raising=False)
    settings = Settings(node_env="NODE", pod_env="POD")
    runtime = Runtime(settings, wake)
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
    assert settings == Settings(
        command=("ffmpeg", "-i", "a b", "FILENAME"),
        time_limit_s=2.5,
        program=ProgramOptions(null_input=True),
    )
    words = {
        "SCALETEST_WORKER_WORKLOAD": "thumbs.py:Thumbs",
        "SCALETEST_WORKER_COMMAND": "--width 640",
    }
    assert Settings.from_environment(words).command == ("thumbs.py:Thumbs", "--width", "640")
    with pytest.raises(UsageError, match="there is no workload 'thumb'"):
        Settings.from_environment({"SCALETEST_WORKER_WORKLOAD": "thumb"})
    with pytest.raises(InvalidValue, match="TIME_LIMIT"):
        Settings.from_environment({"SCALETEST_WORKER_TIME_LIMIT": "soon"})


def test_killing_a_worker_ends_its_process_group(tmp_path: Path) -> None:
    # given a process that runs a workload whose grandchild left its group
    mark = f"stray-{os.getpid()}"
    escape = (
        f"import os, time; os.setsid(); open({str(tmp_path / 'up')!r}, 'w'); time.sleep(600)  #"
        f" {mark}"
    )
    code = (
        "import sys\nfrom scaletest.processes.wake import Wake\nfrom scaletest_workers.runtime"
        " import Runtime, Settings\n"
        "inner = 'import subprocess, sys; subprocess.Popen([sys.executable,"
        f' "-c", \' + {escape!r}.__repr__() +'
        " ']).wait()'\nRuntime(Settings(command=(sys.executable, '-c', inner)), Wake()).run((), 0)"
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
    runtime = Runtime(
        Settings(command=("/dev/null", "--", "ffmpeg"), devices=DeviceOptions("/dev/zero", 0)),
        wake,
    )
    result, _ = runtime.run((), 0.0)
    runtime.close()
    assert result.reason is Reason.NO_BINARY
    assert "put the pattern of --device-glob into quotes" in result.error
