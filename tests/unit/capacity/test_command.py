"""The command autoscale."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from scaletest.capacity.commands.autoscale import command
from scaletest.model import Outcome, Record, Reply
from scaletest.model.errors import InvalidValue, UsageError
from tests.unit.valid import checked


def run(*arguments: str) -> Any:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def test_given_rules_are_played_and_shown_as_json_and_as_a_page(tmp_path: Path) -> None:
    page = tmp_path / "rules.html"
    line = (
        "--duration",
        "600",
        "--rule",
        "demand",
        "--rule",
        "desired:window=120",
    )
    first, again = run(*line, "--format", "json"), run(*line, "--format", "json")
    assert first.stdout == again.stdout
    rows = json.loads(first.stdout)
    run(*line, "-o", str(page))
    assert [row["rule"] for row in rows["rules"]] == ["demand", "desired:window=120"]
    text = page.read_text("utf-8")
    # each rule for wide screens and for phones, with a legend
    assert text.count("<svg ") == 4
    assert text.count('class="c-wanted"') == 8 and "requests that wait" in text
    assert "<script" not in text
    # the load can be read on the page
    assert "s on average, deviation" in text and "2/min for 10 min, poisson" in text
    assert "killed" in run("--duration", "300", "--rule", "demand").output


def test_a_simulation_replays_recorded_runs_and_traces(tmp_path: Path) -> None:
    record = Record("q", 1, Reply("r", Outcome.SUCCEEDED, run_s=7.0), 8.0)
    (tmp_path / "plan.json").write_text("{}")
    (tmp_path / "records.jsonl").write_text(record.to_json() + "\n")
    trace = tmp_path / "trace"
    trace.write_text("0\n5.5\n3\n")
    line = (
        "--run",
        str(tmp_path),
        "--trace",
        str(trace),
        "--rule",
        "demand:max=1",
        "--format",
        "json",
    )
    row = json.loads(run(*line, "--pod-start", "0").stdout)["rules"][0]
    assert (row["requests"], row["makespan_s"]) == (3, 21.0)
    for bad in (
        ("--trace", str(tmp_path / "no")),
        ("--run", str(tmp_path / "no")),
        ("--rate", "-1/min"),
        ("--rate", "60"),
    ):
        assert isinstance(run(*bad).exception, UsageError)
    for name in ("poisson", "burst", "wave"):
        huge = ("--pattern", name, "--rate", "1e6/min", "--duration", "1e6s")
        assert isinstance(run(*huge).exception, InvalidValue)
    (tmp_path / "records.jsonl").write_bytes(b"\xff\xfe")
    assert isinstance(run("--run", str(tmp_path)).exception, InvalidValue)
    trace.write_text("1\nnan\n")
    assert isinstance(run("--trace", str(trace)).exception, InvalidValue)


def test_recommend_prints_yaml_or_reports_that_no_rule_suffices() -> None:
    line = ("--seconds", "5", "--rate", "6/min", "--duration", "600", "--max-workers", "8")
    good = run(*line, "--wait-target", "60", "--format", "json")
    assert (good.return_value, json.loads(good.stdout)["met"]) == (0, True)
    assert isinstance(run(*line, "--format", "html").exception, UsageError)
    bad = run(*line, "--wait-target", "0.001", "--pod-start", "60")
    assert bad.return_value == 3
    assert yaml.safe_load(bad.stdout)["autoscaling"]["maxReplicas"] == 8


def test_the_command_exits_with_0_and_names_the_best_rule() -> None:
    line = ["--rule", "waiting-fast", "--rule", "demand-gentle", "--seconds", "4m"]
    shown = CliRunner().invoke(command, line)
    assert shown.exit_code == 0 and "BEST RULE  demand-gentle" in shown.output
    data = CliRunner().invoke(command, [*line, "--format", "json"])
    assert json.loads(data.stdout)["best"] == "demand-gentle"


@pytest.mark.parametrize("form", ["auto", "plain"])
def test_a_log_of_a_simulation_tells_how_much_is_played(form: str) -> None:
    line = ["--rule", "waiting", "--rule", "demand", "--progress", form]
    assert CliRunner().invoke(command, line).stderr == "simulation of 2 rules against 55 requests\n"
    assert CliRunner().invoke(command, [*line, "--progress", "none"]).stderr == ""


def test_programs_get_an_event_a_rule() -> None:
    for options, rules in ((["--rule", "demand", "--rule", "desired"], 2), ([], 40)):
        ended = CliRunner().invoke(command, [*options, "--progress", "json", "--duration", "5m"])
        lines = [line for line in ended.stderr.splitlines() if line.startswith("{")]
        events = [checked(json.loads(line), "progress-event") for line in lines]
        begun = [event for event in events if event["event"] == "step_begun"]
        assert [event["done"] for event in begun] == list(range(rules))
        assert {(event["steps"], event["unit"]) for event in begun} == {(rules, "rule")}
        assert begun[0]["left_most_s"] is None and begun[-1]["left_most_s"] is not None
        assert [events[0]["event"], events[-1]["event"]] == ["start", "end"]
        assert events[-1]["done"] == rules and events[-1]["run"] == ""
