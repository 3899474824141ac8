"""A password in the Redis URL: a run, its reports and its workloads do not know it."""

import os
import stat
from pathlib import Path

import pytest

from scaletest.broker import EmbeddedServer, connect
from tests.conftest import call, call_here

PASSWORD, TOKEN = "S3CRETPW", "T0KEN"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """As in a pod of the chart, with an archive of its own."""
    secrets = {"REDIS_PASSWORD": PASSWORD, "SCALETEST_CLIENT_TOKEN": TOKEN}
    return {**os.environ, **secrets, "XDG_DATA_HOME": str(tmp_path / "data")}


def rights(folder: Path) -> set[int]:
    """The rights of every file below a folder."""
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


def test_workloads_get_no_password_of_the_redis_url(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with EmbeddedServer() as server:
        # given a Redis with a password, which stands in the query of its URL
        connect(server.url).config_set("requirepass", PASSWORD)
        url = f"{server.url}?password={PASSWORD}"
        # when a validation runs, whose workload writes down what it sees
        line = [
            "validate",
            "--redis-url",
            url,
            "--limit",
            "1",
            "--step-time",
            "0.5",
            "--ready-timeout",
            "120",
            "--",
        ]
        environment_file = tmp_path / "workload.env"
        done = call(*line, "/bin/sh", "-c", f"env > {environment_file}", env=environment)
        assert done.returncode in (0, 3, 4), done.stderr
        # expect the password in no file of the run, in no report, and not in what was printed
        run = tmp_path / "data" / "scaletest" / "runs"
        texts = [path.read_text() for path in run.rglob("*") if path.is_file()]
        assert any("password=***" in text for text in texts)
        for form in ("html", "md", "csv", "junit", "json", "text"):
            texts.append(call_here("report", "LAST", "--format", form, env=environment).stdout)
        texts += [done.stdout, done.stderr]
        assert len([text for text in texts if text]) > 7
        assert not [text for text in texts if PASSWORD in text or TOKEN in text]
        # nor in the environment of the workload
        assert "PATH=" in environment_file.read_text()
        assert (
            PASSWORD not in environment_file.read_text()
            and TOKEN not in environment_file.read_text()
        )
        # and everything for the eyes of its owner
        assert rights(run) == {0o600}
        assert {stat.S_IMODE(path.stat().st_mode) for path in run.iterdir()} == {0o700}


def test_a_tool_of_a_benchmark_gets_no_secrets(environment: dict[str, str], tmp_path: Path) -> None:
    # given a tool that writes down what it sees, and then fails
    folder, environment_file = tmp_path / "bin", tmp_path / "tool.env"
    folder.mkdir()
    tool = folder / "fio"
    tool.write_text(f"#!/bin/sh\nenv > {environment_file}\nexit 1\n")
    tool.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    # when a benchmark runs it on this machine
    document = tmp_path / "fio.yaml"
    document.write_text("kind: Fio\nmetadata: {name: disk}\nspec: {}\n")
    done = call("bench", "run", str(document), env={**environment, "PATH": path}, cwd=tmp_path)
    # expect no secret in it, and its output for the eyes of its owner
    assert environment_file.exists(), done.stderr
    assert (
        PASSWORD not in environment_file.read_text() and TOKEN not in environment_file.read_text()
    )
    assert rights(tmp_path / "data" / "scaletest" / "runs") == {0o600}
