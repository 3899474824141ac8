"""Validation end to end: known truths come out, and a run that was killed goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Gate, call, eventually, processes_with, program
from tests.unit.valid import checked

# A request that takes T (1 + a (n - 1) + b n (n - 1)) s with n workers: each leaves a file by which those that live are
# counted. In whole milliseconds and thousandths, so that the shell needs no other program: what starts one uses the
# processor, of which there may be little, and that is shared as well.
SHARED = (
    ': >"$1/$PPID"; t=$2 a=$3 b=$4 n=0; for worker in "$1"/*; do [ -d "/proc/${worker##*/}" ] && n=$((n + 1)); done; '
    "exec sleep $((t * (1000 + a * (n - 1) + b * n * (n - 1))))e-6"
)
# The longest step is what a busy machine takes: it ends steps by their precision late or never.
BOUNDED = ("--max-step", "20")
# For sleeps, which have no warm-up: who looks for one in a short step finds it in noise now and then.
STEADY = (*BOUNDED, "--warmup", "0.5")


def measured(run: Path) -> list[tuple[int, int]]:
    """Workers and repeat of every measuring of a run, in the order of measuring; odd repeats are on the way down."""
    rows = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    return [(row["workers"], row["repeat"]) for row in rows]


def validate(run: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    result = call("validate", "--local", "--run-dir", str(run), "-o", "json", *arguments)
    assert result.stdout, result.stderr
    return result.returncode, checked(json.loads(result.stdout))


def shared(folder: Path, seconds: float, contention: float, coherency: float) -> list[str]:
    folder.mkdir()
    thousandths = [str(round(1000 * value)) for value in (seconds, contention, coherency)]
    return ["--", "sh", "-c", SHARED, "sh", str(folder), *thousandths]


def near(interval: dict[str, float], truth: float) -> bool:
    """Within three times its interval: a test that asked for the interval itself would fail once in twenty runs."""
    width = interval["high"] - interval["low"] + 0.005
    return interval["low"] - width <= truth <= interval["high"] + width


def part_of_one(result: dict[str, Any], shared_s: float) -> float:
    """What part of a request's time with one worker `shared_s` is: starting its processes takes time of its own."""
    return shared_s / float(result["steps"][0]["run_s"]["mean"])


def test_contention_comes_out_within_its_interval_and_fails(tmp_path: Path) -> None:
    workload = shared(tmp_path / "workers", 0.4, 0.15, 0)
    code, result = validate(tmp_path / "run", *BOUNDED, "--limit", "16", "--seconds", "0.4", *workload)
    assert (code, result["verdict"]["kind"]) == (3, "FAIL"), result["verdict"]
    law = result["law"]
    # a processor that is short when many begin at once looks like coherency
    assert law["name"] in ("amdahl", "usl"), law
    assert near(law["intervals"]["contention"], part_of_one(result, 0.15 * 0.4)), law


def test_a_lock_around_every_request_is_contention_of_one(tmp_path: Path) -> None:
    workload = ["--", "flock", str(tmp_path / "lock"), "sleep", "0.4"]
    code, result = validate(tmp_path / "run", *BOUNDED, "--limit", "8", "--seconds", "0.4", *workload)
    assert (code, result["verdict"]["kind"]) == (3, "FAIL"), result["verdict"]
    # every step was measured on the way up and on the way down, and both ways say the same
    for step in result["steps"]:
        assert [measuring["repeat"] for measuring in step["repeats"][:2]] == [0, 1]
    assert all(max(step["ratio"]["up"], step["ratio"]["down"]) < 1.8 for step in result["steps"][1:]), result["steps"]
    law = result["law"]
    if law["name"] == "capped":
        # the lock is held while sleep starts, so no more than one in 0.4 s, and no fewer than one worker did alone
        alone = float(result["steps"][0]["throughput_per_s"])
        assert 0.9 * alone <= law["ceiling_per_s"] <= 1.05 / 0.4, law
    else:
        assert near(law["intervals"]["contention"], part_of_one(result, 0.4)), law


def test_a_peak_is_found_when_throughput_falls_again(tmp_path: Path) -> None:
    # given coherency 2 % and contention 3 %, the peak lies at sqrt(0.97 / 0.02) = 6.96 workers
    workload = shared(tmp_path / "workers", 0.3, 0.03, 0.02)
    code, result = validate(tmp_path / "run", *BOUNDED, "--limit", "16", "--seconds", "0.3", *workload)
    assert code == 3, result["verdict"]
    # the law names it; on a busy machine the intervals may be too wide for a law with a peak, and then the steps do
    peak = result["peak"]
    assert peak["workers"] is not None, result
    assert 4 <= peak["workers"] <= 12, peak
    assert peak["extrapolated"] is False
    if result["law"]["name"] == "usl":
        assert peak["workers"] == pytest.approx(6.96, rel=0.2)


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    # given a run that is killed in its third step
    run = tmp_path / "run"
    options = [*STEADY, "--limit", "8", "--seconds", "0.4", "--scale", "1.5"]
    process = subprocess.Popen(
        program("validate", "--local", *options, "--run-dir", str(run)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    steps = run / "steps.jsonl"
    eventually(lambda: steps.exists() and len(steps.read_text().splitlines()) >= 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {name: (run / name).read_text() for name in ("steps.jsonl", "records.jsonl")}
    queue = json.loads((run / "plan.json").read_text())["queue"]
    eventually(lambda: not processes_with(queue))
    # and whose last step left records without a line that says it is complete, and half a line
    stray = json.loads(before["records.jsonl"].splitlines()[-1]) | {"step": 4}
    with (run / "records.jsonl").open("a") as file:
        file.write(json.dumps(stray) + "\n" + '{"queue":"va')
    # when it is resumed
    resumed = call("validate", "--local", "--resume", str(run), "-o", "json")
    # then steps 1 and 2 are as they were, and the result has the shape of one that was never interrupted
    assert resumed.returncode in (0, 4), resumed.stderr
    for name, text in before.items():
        assert (run / name).read_text().startswith(text)
    assert measured(run)[:8] == [(1, 0), (2, 0), (4, 0), (8, 0), (8, 1), (4, 1), (2, 1), (1, 1)]
    result = json.loads(resumed.stdout)
    check_whole(result)
    _, whole = validate(tmp_path / "whole", *options)
    assert shape(result) == shape(whole)
    assert result["elapsed_s"] > 0


def check_whole(result: dict[str, Any]) -> None:
    """PASS, or INVALID for what else the machine did meanwhile; but nothing is missing."""
    verdict = result["verdict"]
    assert verdict["kind"] in ("PASS", "INVALID"), verdict
    assert not any(word in verdict["reason"] for word in ("interrupted", "cut short", "missing", "too many")), verdict


# What depends on how many requests were counted, or on what they told.
BY_CHANCE = ("fairness", "drift", "law", "lacking", "p50", "p90", "p95", "p99", "p99_9", "warnings")


def shape(value: Any) -> Any:
    """Which fields there are, whatever they hold; of a step the first way up and down, since chance asks for more."""
    if isinstance(value, dict):
        value = {**value, "repeats": value["repeats"][:2]} if isinstance(value.get("repeats"), list) else value
        return {name: shape(one) for name, one in value.items() if name not in BY_CHANCE}
    return [shape(one) for one in value] if isinstance(value, list) and value and isinstance(value[0], dict) else None


def test_an_interrupted_step_is_measured_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = (*STEADY, "--limit", "2", "--seconds", "0.4", "--scale", "1.5", "--run-dir", str(run))
    line = program("validate", "--local", *options)
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    eventually(lambda: (run / "steps.jsonl").exists())
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) == 4
    resumed = call("validate", "--local", "--resume", str(run), "-o", "json")
    check_whole(json.loads(resumed.stdout))
    stops = [json.loads(line)["stop"] for line in (run / "steps.jsonl").read_text().splitlines()]
    assert measured(run)[:4] == [(1, 0), (2, 0), (2, 1), (1, 1)]
    assert len(set(measured(run))) == len(stops)
    assert "ended early" not in stops


# Long enough for a test that looks what was measured, and with a fixed time nothing is measured again for its noise.
UNHURRIED = ("--limit", "4", "--seconds", "0.4", "--step-time", "8", "--warmup", "0.5", "--scale", "1.5")


def on_its_way_down(run: Path) -> subprocess.Popen[str]:
    """A run of 1, 2 and 4 workers that has measured the ways up, and 4 workers on the way down, and goes on."""
    process = subprocess.Popen(
        program("validate", "--local", *UNHURRIED, "--run-dir", str(run)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    steps = run / "steps.jsonl"
    eventually(lambda: steps.exists() and len(steps.read_text().splitlines()) >= 4)
    return process


def test_a_run_that_was_killed_on_its_way_down_measures_only_what_is_missing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = on_its_way_down(run)
    process.kill()
    process.communicate()
    before = {name: (run / name).read_bytes() for name in ("steps.jsonl", "records.jsonl")}
    assert measured(run) == [(1, 0), (2, 0), (4, 0), (4, 1)]
    queue = json.loads((run / "plan.json").read_text())["queue"]
    eventually(lambda: not processes_with(queue))
    # when it is resumed
    resumed = call("validate", "--local", "--resume", str(run), "-o", "json")
    # then what was measured is as it was, byte for byte, and the way down goes on with 2 workers
    assert resumed.returncode in (0, 4), resumed.stderr
    for name, data in before.items():
        assert (run / name).read_bytes().startswith(data)
    assert measured(run) == [(1, 0), (2, 0), (4, 0), (4, 1), (2, 1), (1, 1)]
    result = checked(json.loads(resumed.stdout))
    check_whole(result)
    assert all(step["ratio"]["down"] is not None for step in result["steps"][1:])


def test_an_interrupt_on_the_way_down_gives_invalid_and_the_table_so_far(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = on_its_way_down(run)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=120)
    assert process.returncode == 4
    # every step has its row, by the way up where there is nothing else, and the run can go on
    rows = [line.split()[0] for line in shown.partition("requests/s")[2].splitlines() if line[:1].isdigit()]
    assert rows == ["1", "2", "4"]
    assert "INVALID  interrupted" in shown
    assert "--resume" in shown
    assert (1, 1) not in measured(run)
    # and every form of report tells it
    for form in ("text", "html", "md", "json", "junit"):
        assert "INVALID" in call("report", str(run), "-t", form).stdout
    assert len(call("report", str(run), "-t", "csv").stdout.splitlines()) == 4


def test_a_load_beside_a_run_has_a_row_for_both_ways_of_every_step(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    beside = "{name: storage, parallel: 2, seconds: 0.1}"
    plan.write_text(f"limit: 2\nseconds: 0.2\nstep_time: 3\nbackground:\n  - {beside}\n")
    _, result = validate(tmp_path / "run", "-f", str(plan))
    rows = {(row["workers"], row["repeat"]): row for row in result["background"]}
    assert sorted(rows) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert all(row["completions"] > 0 for row in rows.values()), rows
    page = call("report", str(tmp_path / "run"), "-t", "html").stdout.partition("Other queues")[2]
    assert [page.count(f">{way}</td>") for way in ("way up", "way down")] == [2, 2]


def test_a_finished_run_is_judged_again_and_nothing_is_measured(tmp_path: Path) -> None:
    run = tmp_path / "run"
    code, _ = validate(run, *STEADY, "--limit", "1", "--seconds", "0.5")
    lines = (run / "steps.jsonl").read_text()
    assert call("validate", "--local", "--resume", str(run)).returncode == code
    assert (run / "steps.jsonl").read_text() == lines


def test_a_run_in_use_cannot_be_resumed(tmp_path: Path, gate: Gate) -> None:
    # given a run that goes on until the test lets its requests end
    run = tmp_path / "run"
    line = program(
        "validate", "--local", "--limit", "1", "--step-time", "1", "--run-dir", str(run), "--", *gate.command
    )
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    eventually(lambda: (run / "workers.log").exists())
    second = call("validate", "--local", "--resume", str(run))
    assert second.returncode == 2
    assert "in use by another process" in second.stderr
    # and the other goes on
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    gate.open()
    assert process.wait(120) == 4


def test_repeats_are_shuffled_in_blocks_and_their_spread_is_the_interval(tmp_path: Path) -> None:
    _, result = validate(tmp_path / "run", "--limit", "2", "--seconds", "0.1", "--step-time", "1", "--repeats", "3")
    assert [len(step["repeats"]) for step in result["steps"]] == [3, 3]
    assert {step["interval"] for step in result["steps"]} == {"between repeats"}
    order = [json.loads(line) for line in (tmp_path / "run" / "steps.jsonl").read_text().splitlines()]
    assert [row["repeat"] for row in order] == [0, 0, 1, 1, 2, 2]
    assert sorted(row["workers"] for row in order) == [1, 1, 1, 2, 2, 2]
