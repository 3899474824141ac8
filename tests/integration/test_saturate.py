"""scaletest saturate over HTTP against real services, and what is kept of it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaletest.archive.queries import QUERIES
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
                "--url",
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
            *("--start", "2", "--maximum", "8", "--confirm", "1", "--precision", "0.1"),
            *(
                "--share",
                "0.2",
                "--wanted",
                "5",
                "--server-header",
                "Server-Time",
                "--format",
                "json",
            ),
            *(
                "--original-csv",
                str(tmp_path / "csv"),
                "--header",
                "X-Key: secret",
            ),
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
    assert [query["title"] for query in judged["queries"]] == list(QUERIES)
    messages = sum(step.requests for step in folder.load().steps)
    assert judged["queries"][0]["rows"] == [[messages]]
    assert "closed load on http" in shown("runs", "list")
    check_files(tmp_path, folder)
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


def check_files(tmp_path: Path, folder: SaturationFolder) -> None:
    """The three files of the original tool."""
    stored = folder.load()
    texts = {
        name: (tmp_path / "csv" / f"{name}.csv").read_text()
        for name in ("history", "timing", "scaling")
    }
    files = {name: list(csv.reader(text.splitlines())) for name, text in texts.items()}
    assert files["history"][0][:4] == ["TestNo", "TestCountTotal", "ThreadCount", "Records"]
    assert len(files["history"]) == 1 + len(stored.steps)
    assert files["timing"][0] == [
        "Time",
        "Record",
        "PayloadSize",
        "Success",
        "Attempts",
        "Response",
        "TotalTime",
        "AiTime",
    ]
    assert len(files["timing"]) == 1 + sum(step.requests for step in stored.steps)
    assert files["scaling"][0] == ["Time", "Scale"]


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
        done = call("saturate", "--url", url, *options, "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    # and no run is kept of which nothing is known
    assert not (tmp_path / "run").exists()


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("right\n")
    with running("--token", "right", "--seconds", "0.5") as url:
        line = (
            "saturate",
            "--url",
            url,
            "--token-file",
            str(token),
            "--run-dir",
            str(tmp_path / "run"),
            "--format",
            "json",
        )
        done = call(
            *line,
            "--mode",
            "sweep",
            "--load",
            "closed",
            "--start",
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


def test_the_original_tools_file_runs_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"input": 1}')
    with running("--slots", "16", "--seconds", "0.5") as url:
        plan = {
            "execution": {
                "autoScaling": False,
                "threadCount": 1,
                "maxThreadCount": 3,
                "threadStep": 1,
                "retryCount": 1,
            },
            "defaultProvider": {
                "endpointUrl": url,
                "fileInput": str(tmp_path / "one.json"),
                "recordCount": 6,
            },
            "logDirectory": str(tmp_path / "logs"),
        }
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        line = (
            "saturate",
            "-f",
            str(tmp_path / "plan.json"),
            "--warm",
            "0",
            "--run-dir",
            str(tmp_path / "run"),
        )
        done = call(*line)
    assert done.returncode in (0, 4), done.stderr
    steps = SaturationFolder(tmp_path / "run").load().steps
    assert {step.level for step in steps} == {1.0, 2.0, 3.0}
    assert {step.requests for step in steps} == {6}
    history, timing = (
        list(csv.DictReader((tmp_path / "logs" / f"{name}.csv").read_text().splitlines()))
        for name in ("history", "timing")
    )
    # six requests on one, two and three threads; none handles all while another has half a second
    # to do
    shares = {
        int(row["ThreadCount"]): (int(row["MinRecords"]), int(row["MaxRecords"])) for row in history
    }
    assert list(shares) == [1, 2, 3] and shares[1] == (6, 6)
    assert all(shares[threads][0] <= 6 / threads <= shares[threads][1] < 6 for threads in (2, 3))
    assert {row["PayloadSize"] for row in timing} == {str(len('{"input": 1}'))}


def test_an_interrupted_run_is_stored_and_reported_as_interrupted(tmp_path: Path) -> None:
    with running() as url:
        line = program(
            "saturate",
            "--url",
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
