"""Validation end to end: a run that was killed or interrupted goes on, and every measuring is on
record.
"""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Gate, call, eventually, processes_with, program
from tests.integration.services import all_judged, check_verdict
from tests.unit.valid import checked

# A step of so little time says nothing precise, and nothing is measured again for its noise. A run
# waits for requests twice as long as their limit is: longer than any test holds them.
BRIEF = (
    "--limit",
    "4",
    "--seconds",
    "0.1",
    "--step-time",
    "1",
    "--warmup",
    "0.1",
    "--scale",
    "1.1",
    "--time-limit",
    "300",
)
# Requests of 0.1 s that end until so many steps are measured, and then not before the file "go" is
# there.
WORKLOAD_HELD = """
while [ -e "$1/steps.jsonl" ] && [ "$(wc -l <"$1/steps.jsonl")" -ge "$2" ] && ! [ -e "$1/go" ]; do
    : >"$1/held"
    sleep 0.05
done
exec sleep 0.1
"""


def measured(run: Path) -> list[tuple[int, int]]:
    """Workers and repeat of every measuring of a run, in the order of measuring; odd repeats are on
    the way down.
    """
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    return [(row["workers"], row["repeat"]) for row in rows]


WAYS = [(1, 0), (2, 0), (4, 0), (4, 1), (2, 1), (1, 1)]


def validate(run: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    result = call("validate", "--local", "--run-dir", str(run), "--format", "json", *arguments)
    assert result.stdout, result.stderr
    return result.returncode, checked(json.loads(result.stdout))


def held_run(run: Path, steps: int) -> subprocess.Popen[str]:
    """A run of 1, 2 and 4 workers that has measured so many steps, and measures the next until
    `go_on`.
    """
    process = subprocess.Popen(
        program(
            "validate",
            "--local",
            *BRIEF,
            "--run-dir",
            str(run),
            "--",
            "sh",
            "-c",
            WORKLOAD_HELD,
            "sh",
            str(run),
            str(steps),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    eventually(lambda: (run / "held").exists() or process.poll() is not None)
    assert measured(run) == WAYS[:steps]
    return process


def go_on(run: Path) -> None:
    """Let the requests of a run that is held end."""
    (run / "go").touch()


def check_whole(code: int, result: dict[str, Any]) -> None:
    """All that was asked for was measured."""
    check_verdict(code, result)
    assert [step["workers"] for step in result["steps"]] == [1, 2, 4]
    assert all([way["repeat"] for way in step["repeats"]] == [0, 1] for step in result["steps"]), (
        result["steps"]
    )


@pytest.mark.parametrize("steps", [2, 4], ids=["on the way up", "on the way down"])
def test_a_killed_run_measures_only_what_is_missing(tmp_path: Path, steps: int) -> None:
    # given a run that is killed while it measures a step
    run = tmp_path / "run"
    process = held_run(run, steps)
    process.kill()
    process.communicate()
    before = {name: (run / name).read_bytes() for name in ("steps.jsonl", "records.jsonl")}
    queue = json.loads((run / "plan.json").read_text())["queue"]
    eventually(lambda: not processes_with(queue))
    go_on(run)
    # and whose last step left records without a line that says it is complete, and half a line
    workers, repeat = WAYS[steps]
    stray = json.loads(before["records.jsonl"].splitlines()[-1]) | {
        "step": workers,
        "repeat": repeat,
    }
    with (run / "records.jsonl").open("a") as file:
        file.write(json.dumps(stray) + "\n" + '{"queue":"va')
    # when it is resumed
    resumed = call("validate", "--local", "--resume", str(run), "--format", "json")
    # then what was measured is as it was, byte for byte, and the rest is measured
    assert resumed.stdout, resumed.stderr
    for name, data in before.items():
        assert (run / name).read_bytes().startswith(data)
    assert measured(run) == WAYS
    result = checked(json.loads(resumed.stdout))
    check_whole(resumed.returncode, result)
    assert result["elapsed_s"] > 0
    # and a run that is finished is judged again, and nothing is measured
    lines = (run / "steps.jsonl").read_text()
    again = call("validate", "--local", "--resume", str(run), "--format", "json")
    assert (again.returncode, json.loads(again.stdout)["verdict"]) == (
        resumed.returncode,
        result["verdict"],
    )
    assert (run / "steps.jsonl").read_text() == lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_on_the_way_down_is_invalid_with_the_table_so_far(
    tmp_path: Path, number: int
) -> None:
    run = tmp_path / "run"
    process = held_run(run, 4)
    process.send_signal(number)
    go_on(run)
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 4
    queue = json.loads((run / "plan.json").read_text())["queue"]
    eventually(lambda: not processes_with(queue))
    # every step has its row, by the way up where there is nothing else, and the run can go on
    table = shown.partition("requests/s")[2].partition("\n±")[
        0
    ]  # sentences below it may begin with a figure too
    assert [line.split()[0] for line in table.splitlines()[1:]] == ["1", "2", "4"]
    # the verdict says it, or a warning where a busy machine is the first reason
    assert "INVALID" in shown and "interrupted: " in shown
    assert "--resume" in shown
    assert (1, 1) not in measured(run)
    # and every form of report tells it
    for form in ("text", "html", "md", "json", "junit"):
        assert "INVALID" in call("report", str(run), "--format", form).stdout
    assert len(call("report", str(run), "--format", "csv").stdout.splitlines()) == 4
    # when it is resumed, expect nothing to be left of the step that was cut short
    resumed = call("validate", "--local", "--resume", str(run), "--format", "json")
    check_whole(resumed.returncode, json.loads(resumed.stdout))
    assert measured(run) == WAYS
    assert "ended early" not in (run / "steps.jsonl").read_text()


def test_a_load_beside_a_run_has_a_row_for_both_ways_of_every_step(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    beside = "{name: storage, parallel: 2, seconds: 0.1}"
    plan.write_text(f"limit: 2\nseconds: 0.2\nstep_time: 1\nbackground:\n  - {beside}\n")
    _, result = validate(tmp_path / "run", "-f", str(plan))
    rows = {(row["workers"], row["repeat"]): row for row in result["background"]}
    assert sorted(rows) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all(row["completions"] > 0 for row in rows.values()), rows
    page = call("report", str(tmp_path / "run"), "--format", "html").stdout.partition(
        "Other queues"
    )[2]
    assert [page.count(f">{way}</td>") for way in ("ascending pass", "descending pass")] == [2, 2]


def test_a_run_in_use_cannot_be_resumed(tmp_path: Path, gate: Gate) -> None:
    # given a run that goes on until the test lets its requests end
    run = tmp_path / "run"
    line = program(
        "validate",
        "--local",
        "--limit",
        "1",
        "--step-time",
        "1",
        "--time-limit",
        "300",
        "--run-dir",
        str(run),
        "--",
        *gate.command,
    )
    process = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    eventually(lambda: (run / "workers.log").exists())
    second = call("validate", "--local", "--resume", str(run))
    assert second.returncode == 2
    assert "in use by another process" in second.stderr
    # and the other goes on
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    gate.open()
    assert process.wait(120) == 4


def test_repeats_are_pairs_of_ways_and_their_spread_is_the_interval(tmp_path: Path) -> None:
    _, result = validate(
        tmp_path / "run", "--limit", "2", "--seconds", "0.1", "--step-time", "0.5", "--repeats", "3"
    )
    assert [len(step["repeats"]) for step in result["steps"]] == [6, 6]
    # an interval between pairs of ways needs three pairs that may be judged
    if all_judged(tmp_path / "run"):
        assert {step["between_repeats"] for step in result["steps"]} == {True}
    order = [
        json.loads(line) for line in (tmp_path / "run" / "steps.jsonl").read_text().splitlines()
    ]
    assert [(row["workers"], row["repeat"]) for row in order[:4]] == [
        (1, 0),
        (2, 0),
        (2, 1),
        (1, 1),
    ]
    assert [row["repeat"] for row in order] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_files_of_the_working_folder_take_the_place_of_no_module(tmp_path: Path) -> None:
    for name in ("queue", "re", "select", "types"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('another module')\n")
    line = ("validate", "--local", "--limit", "1", "--seconds", "0.1", "--max-step", "3s")
    done = call(*line, cwd=tmp_path)
    # expect a verdict: its workers started
    assert done.returncode in (0, 4), done.stderr
