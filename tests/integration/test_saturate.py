"""scaletest saturate over HTTP against real services, and what is kept of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaletest.saturation.folder import SaturationFolder
from tests.conftest import call, call_here, eventually, program
from tests.integration.services import check_verdict, running


def test_a_search_over_http_ends_in_a_run_with_every_report(tmp_path: Path) -> None:
    # given a service so slow that even a busy machine is faster: 4 slots of 200 ms
    root = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}

    def shown(*arguments: str) -> str:
        return call_here(*arguments, env=root).stdout

    with running("--slots", "4", "--seconds", "0.2") as url:
        done = call(
            *(
                "saturate",
                url,
                "--load",
                "closed",
                "--step-time",
                "2",
                "--warm",
                "1",
                "--progress",
                "plain",
            ),
            *("--start", "2", "--maximum", "8", "--precision", "0.1"),
            *(
                "--wanted",
                "5",
                "--server-header",
                "Server-Time",
                "--format",
                "json",
            ),
            *("--header", "X-Key: secret"),
            env=root,
        )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    check_capacity(result)
    # the service runs on this machine, and was looked at
    assert any(
        step["around"]["activities"] and step["around"]["tester"] > 0 for step in result["steps"]
    )
    folder = SaturationFolder(Path(result["folder"]))
    assert "secret" not in (folder.path / "environment.json").read_text()
    assert sum(step.requests for step in folder.load().steps) == len(
        (folder.path / "records.jsonl").read_text().splitlines()
    )
    for form in ("text", "html", "md", "csv", "json", "junit"):
        assert "saturat" in shown("report", "LAST", "--format", form), form
    assert "<script" not in shown("report", "LAST", "--format", "html")
    judged = json.loads(shown("report", "LAST", "--format", "json"))
    assert judged["saturation_per_s"] == result["saturation_per_s"]
    assert judged["verdict"] == result["verdict"]
    assert "closed load on http" in shown("runs", "list")
    sized = json.loads(
        shown("size", "--run", "LAST", "--replicas", "2", "--rate", "100", "--format", "json")
    )
    each = result["saturation_per_s"]["value"] / 2
    assert sized["demand"]["per_pod_per_s"] == pytest.approx(each)


def check_capacity(result: dict[str, Any]) -> None:
    """Of what can do 20 requests a second: a quarter or four times as many would be that of
    something else.
    """
    assert 5 < result["saturation_per_s"]["value"] < 80, result


@pytest.mark.parametrize(
    ("service", "options", "message"),
    [
        (("--token", "right"), (), "401"),
        (("--fail", "422"), (), "does not fit the schema"),
        (("--fail", "503"), (), "no pod is ready"),
    ],
)
def test_a_probe_that_fails_names_the_likely_cause(
    service: tuple[str, ...], options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with running(*service) as url:
        done = call("saturate", url, *options, "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    # and no run is kept of which nothing is known
    assert not (tmp_path / "run").exists()


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("Authorization: Bearer right\n")
    with running("--token", "right", "--seconds", "0.5") as url:
        line = (
            "saturate",
            url,
            "--header",
            f"@{token}",
            "--run-dir",
            str(tmp_path / "run"),
            "--format",
            "json",
        )
        done = call(
            *line,
            "--load",
            "closed",
            "--start",
            "1",
            "--maximum",
            "1",
            "--count",
            "4",
            "--warm",
            "0",
        )
    result = json.loads(done.stdout)
    check_verdict(done.returncode, result)
    assert {step["success"] for step in result["steps"]} == {1.0}
    assert all("right" not in path.read_text() for path in (tmp_path / "run").iterdir())


def test_an_interrupted_run_is_stored_and_reported_as_interrupted(tmp_path: Path) -> None:
    with running() as url:
        line = program(
            "saturate",
            url,
            "--step-time",
            "60",
            "--warm",
            "0.5",
            "--run-dir",
            str(tmp_path / "run"),
        )
        process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        eventually(lambda: (tmp_path / "run" / "steps.jsonl").exists())
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 4 and "interrupted by Ctrl-C" in out
    assert "interrupted" in call("report", str(tmp_path / "run")).stdout
