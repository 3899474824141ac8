"""Validations from Python, really run: the guide's files, and that nothing is left whatever ends
them.
"""

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import scaletest
from scaletest.broker import Queues
from scaletest.model.run_progress import RunProgress
from tests.conftest import eventually, processes_with

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "how-to" / "python.md").read_text("utf-8")
FILES = [
    text
    for text in re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    if "scaletest.Client(" not in text  # tests/integration/api/test_client.py runs that one
]
BRIEF: dict[str, Any] = {"limit": 2, "seconds": 0.1, "step_time": 0.5, "warmup": 0.1}
# Ends with the line "interrupted" where Ctrl-C came.
SCRIPT = """
import sys
import scaletest
try:
    scaletest.validate(sys.argv[2:], limit=1, seconds=0.1, step_time=600, run_dir=sys.argv[1])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def own(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder in which a Redis of a run's own lies, and runs that nobody names."""
    # without the name of the test: a socket's path has 107 bytes at most
    folder = tmp_path_factory.mktemp("own")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return folder


def test_the_files_of_the_guide_are_typed_and_run(own: Path, tmp_path: Path) -> None:
    names = ("program.py", "test_program.py", "cell.py", "progress.py")
    for name, text in zip(names, FILES, strict=True):
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in names]
    typed = _called("mypy", "--strict", "--config-file=", *paths, cwd=ROOT)
    assert typed.returncode == 0, typed.stdout
    # the first one, as it stands
    ran = _called_file(tmp_path / names[0], cwd=tmp_path)
    assert ran.stdout.startswith(("PASS", "FAIL", "INVALID")), ran.stderr
    assert "2 workers: " in ran.stdout and "requests succeeded" in ran.stdout
    assert "</html>" in (tmp_path / "scaling.html").read_text()
    # the notebook's cell shows that run
    first, expression = FILES[2].strip().rsplit("\n\n", 1)
    scope: dict[str, Any] = {}
    exec(first, scope)
    shown = eval(expression, scope)._repr_html_()
    assert "validate sleep 0.2" in shown and "&lt;svg" in shown
    # and the test is one of pytest; a busy machine may refuse to say
    tested = _called("pytest", "-q", "-p", "no:cacheprovider", names[1], cwd=tmp_path)
    assert "1 passed" in tested.stdout or "is INVALID" in tested.stdout, tested.stdout
    shower = _called_file(tmp_path / names[3], cwd=tmp_path)
    assert "1 worker: measuring" in shower.stdout, shower.stderr
    assert list(own.glob("scaletest-*")) == []


def _called(module: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", module, *arguments]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, timeout=280, check=False)


def _called_file(path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(path)]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, timeout=280, check=False)


def test_two_runs_in_one_process_and_one_in_a_thread(own: Path, capfd: Any) -> None:
    states: list[RunProgress] = []
    before = signal.getsignal(signal.SIGINT)
    first = scaletest.validate(["sleep", "0.1"], **BRIEF, on_progress=states.append)
    results: list[scaletest.Result] = []
    thread = threading.Thread(
        target=lambda: results.append(scaletest.validate(["sleep", "0.1"], **BRIEF, name="second"))
    )
    thread.start()
    thread.join()
    # expect the data of every state, and an end
    assert [(state.run, state.ended) for state in states[-1:]] == [(first.name, True)]
    assert (states[-1].part, states[-1].steps) == (1.0, 4)
    assert any("measuring" in state.phase for state in states)
    assert [step.workers for step in results[0].steps] == [1, 2]
    assert scaletest.load_run("second").name == scaletest.load_run().name == results[0].name
    # and nothing printed, nothing changed, nothing left
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is before
    assert _left(first, *results) == [] and list(own.iterdir()) == []


def _left(*results: scaletest.Result) -> list[int]:
    """Processes of the queues of these runs."""
    return [pid for result in results for pid in processes_with(str(result.plan["queue"]))]


def test_an_exception_of_the_callback_ends_the_run_and_leaves_nothing(
    own: Path, url: str, redis: Any, tmp_path: Path
) -> None:
    def fail(state: RunProgress) -> None:
        if "measuring" in state.phase:
            raise RuntimeError("seen enough")

    with pytest.raises(RuntimeError, match="seen enough"):
        scaletest.validate(
            ["sleep", "0.1"], **BRIEF, redis_url=url, on_progress=fail, run_dir=tmp_path / "run"
        )
    result = scaletest.load_run(tmp_path / "run")
    assert _left(result) == [] and Queues(redis).names() == []
    # and what was measured until then is on disk, and the run may go on
    assert result.verdict.kind == "INVALID"
    resumed = scaletest.validate(redis_url=url, resume=tmp_path / "run")
    assert (resumed.name, [step.workers for step in resumed.steps]) == (result.name, [1, 2])
    assert "interrupted" not in resumed.verdict.reason
    assert _left(resumed) == [] and Queues(redis).names() == []


@pytest.mark.parametrize("seconds", ["0.1", "300"], ids=["in order", "at once"])
def test_ctrl_c_is_a_keyboard_interrupt_when_nothing_is_left(
    own: Path, tmp_path: Path, seconds: str
) -> None:
    run, marker = tmp_path / "run", tmp_path / "marker"
    workload = ["sh", "-c", f': >"{marker}"; exec sleep {seconds}']
    line = [sys.executable, "-c", SCRIPT, str(run), *workload]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(line, text=True, **streams) as process:
        # while a request runs, which may end by itself or not
        eventually(lambda: marker.exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "\n"
        assert "press Ctrl-C again to stop at once" in process.stderr.readline()
        if seconds == "300":
            process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        # then, while the program goes on
        assert _left(scaletest.load_run(run)) == [] and list(own.iterdir()) == []
        process.stdin.close()
        assert process.wait(60) == 0
    assert scaletest.load_run(run).verdict.kind == "INVALID"
