"""What a hostile user types: every error says what and what to do, has its exit code, and shows no
traceback.
"""

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis

from scaletest.broker.redis_errors import explain_redis_errors
from scaletest.cli.main import run
from scaletest.model.errors import Unreachable
from tests.conftest import program
from tests.unit.made_runs import make


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without runs, cluster or settings, in a folder with files of every wrong kind."""
    for name in [name for name in os.environ if name.startswith(("SCALETEST_", "KUBE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "text").write_text("just text")
    (tmp_path / "broken").write_text("[1, 2")
    (tmp_path / "deep.yaml").write_text("[" * 5000)
    return tmp_path


LONG = "x" * 5000
BAD = [
    (("report", LONG), "there is no run"),
    (("compare", LONG, LONG), "there is no run"),
    (("bench", "run", "deep.yaml"), "deep.yaml is not valid YAML"),
    (("bench", "run", "IPerf", "--set", "streams=" + "[" * 5000), "is not valid YAML"),
    (
        ("bench", "part", "--role", "x", "--index", "0", "--folder", ".", "--scratch", "."),
        "contains no benchmark.json",
    ),
    (("validate", "--local", "--dry-run", "-f", "empty"), "empty is empty"),
    (("autoscale", "--rate", "0/min"), "rate is 0.0"),
    (("autoscale", "--rate", "60"), "--rate: invalid rate '60'"),
    (("autoscale", "--variation", "nan"), "variation is nan"),
    (("autoscale", "--rule", "demand:target=nan"), "target is nan"),
    (("autoscale", "--rule", "demand:target=x"), "invalid target 'x'"),
    (("autoscale", "--run", "nope"), "there is no run 'nope'"),
    (("lifecycle", "plot", "-o", LONG), "File name too long"),
    (("saturate", "http://127.0.0.1:1", "--start", "nan", "--dry-run"), "start is nan"),
    (("saturate", "-f", "broken", "--dry-run"), "broken is not valid YAML"),
    (("saturate", "-f", "broken", "--dry-run"), "write one OPTION: VALUE per line"),
]


@pytest.mark.parametrize(
    ("line", "problem"), BAD, ids=lambda value: " ".join(value)[:50] if value else ""
)
def test_invalid_input_prints_one_line_of_error_and_one_line_of_remedy(
    line: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(list(line)) == 2
    out, errors = capsys.readouterr()
    message, remedy, *more = errors.splitlines()
    assert (out, more) == ("", [])
    assert message.startswith("error: ")
    assert problem in errors
    assert remedy.strip()
    if line[0] in ("autoscale", "cluster"):  # a rate or a share is no time
        assert " s" not in message.removeprefix("error: ").partition(" is ")[2][-2:]
        assert "seconds" not in remedy


@pytest.mark.parametrize("file", ["binary", "text", "broken", "deep.yaml"])
def test_an_invalid_kubeconfig_is_reported_as_no_cluster(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", file)
    assert run(["cluster", "check"]) == 7
    errors = capsys.readouterr().err
    assert "the kubeconfig cannot be read" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "line",
    [("report", "closed/run"), ("runs", "list"), ("lifecycle", "plot", "-o", "closed")],
)
def test_a_folder_without_permission_is_a_usage_error(
    line: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # given that nobody may look anywhere, whoever runs the tests
    def refuse(path: Path, **options: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    assert run(list(line)) == 2
    errors = capsys.readouterr().err
    assert "Permission denied" in errors
    assert "permissions" in errors
    assert "Traceback" not in errors


def test_too_few_open_files_are_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, **options: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "stat", refuse)
    assert run(["runs", "list"]) == 2
    errors = capsys.readouterr().err
    assert "cannot be used: Too many open files" in errors and "ulimit -n" in errors
    assert "Traceback" not in errors


def test_a_validation_is_no_lifecycle(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make("pass", home)
    assert run(["lifecycle", "plot", "--output-dir", "pass"]) == 2
    assert "run pass is not a lifecycle run: it is a validation run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [("size", "--rate", "1/s", "--latency", "1s"), ("schema", "benchmark"), ("report", "pass")],
)
def test_a_closed_pipe_ends_a_command_without_a_traceback(
    home: Path, line: tuple[str, ...]
) -> None:
    make("pass", home)
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        program(*line),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        ("DB index is out of range", "correct the database"),
        (
            "unknown command 'SENTINEL', with args beginning with: 'MASTERS'",
            "correct the Redis URL",
        ),
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "look at what its keys hold",
        ),
    ],
)
def test_the_remedy_follows_the_error_of_redis(answer: str, remedy: str) -> None:
    with pytest.raises(Unreachable) as error, explain_redis_errors("redis://h"):
        raise redis.exceptions.ResponseError(answer)
    assert remedy in error.value.hint
