"""Workers that share devices, through validation: all are full in every step, and memory that ends
is seen.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import call
from tests.integration.services import check_verdict
from tests.unit.valid import checked

# Steps of a fixed time, in which every worker finishes more than one request.
BRIEF = ("--seconds", "0.3", "--step-time", "1.5")


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for made devices, whose runs meet there."""
    monkeypatch.setenv("SCALETEST_FAKEDEV", str(tmp_path / "meet"))
    folder = tmp_path / "devices"
    folder.mkdir()
    return folder


def compare(run: Path, devices: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    line = [
        "validate",
        "--local",
        "--run-dir",
        str(run),
        "--device-glob",
        f"{devices}/fake*",
        "--format",
        "json",
    ]
    done = call(*line, *arguments)
    assert done.stdout, done.stderr
    return done.returncode, checked(json.loads(done.stdout))


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]


def test_a_number_of_workers_at_the_device_memory_limit_is_excluded(
    tmp_path: Path, devices: Path
) -> None:
    (devices / "fake0").touch()
    fake = ("--", "fakedev", "--seconds", "0.3", "--memory", "400", "--device-memory", "1000")
    code, result = compare(tmp_path / "run", devices, "--per-device", "1,2,4", *BRIEF, *fake)
    # expect a failure, and no other number to be taken out for that
    assert code == 3, result["verdict"]
    excluded = [row["excluded"] for row in result["sharing"]["candidates"]]
    assert ["at the memory limit" in reason for reason in excluded] == [False, False, True]
    assert "reached the limit of a device's memory" in result["verdict"]["reason"]
    assert [step["memory_limit_hits"] > 0 for step in result["steps"]] == [False, False, True]


def test_numbers_of_workers_per_device_are_compared_on_the_way_up_and_down(
    tmp_path: Path, devices: Path
) -> None:
    # given two devices and steps of a fixed time
    for number in range(2):
        (devices / f"fake{number}").touch()
    fake = ("--", "fakedev", "--seconds", "0.3")
    _, result = compare(tmp_path / "run", devices, "--per-device", "1,2", *BRIEF, *fake)
    # expect both ways of both, with all devices full in each
    lines = (tmp_path / "run" / "steps.jsonl").read_text().splitlines()
    ways = [(row["workers"], row["repeat"]) for row in map(json.loads, lines)]
    assert ways == [(2, 0), (4, 0), (4, 1), (2, 1)]
    assert [[way["repeat"] for way in step["repeats"]] for step in result["steps"]] == [
        [0, 1],
        [0, 1],
    ]
    for workers, repeat in ways:
        own = [
            row
            for row in records(tmp_path / "run")
            if (row["step"], row["repeat"]) == (workers, repeat)
        ]
        assert len({(row["device"], row["device_info"]["slot"]) for row in own}) == workers
    page = call("report", str(tmp_path / "run"), "--format", "html").stdout
    assert all(
        f"<h3>{workers} workers, {way}</h3>" in page
        for workers in (2, 4)
        for way in ("ascending pass", "descending pass")
    )


def test_a_single_number_per_device_is_an_ordinary_run_with_that_sharing(
    tmp_path: Path, devices: Path
) -> None:
    (devices / "fake0").touch()
    options = ("--per-device", "2", "--limit", "2", "--scale", "1.1", *BRIEF)
    code, result = compare(tmp_path / "run", devices, *options, "--", "fakedev", "--seconds", "0.3")
    assert result["sharing"] is None
    # so short a run may say too little
    check_verdict(code, result)
    assert {(row["step"], row["per_device"]) for row in records(tmp_path / "run")} == {
        (1, 2),
        (2, 2),
    }
