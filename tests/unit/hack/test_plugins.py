"""Entry points of installed packages, with real metadata: what works, and what is broken."""

import json
from pathlib import Path

import pytest

from scaletest.benchmarks.kinds import fio, registry
from scaletest.benchmarks.kinds.kind import Kind
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.plugins import Plugins, Registry
from scaletest.report import formats
from scaletest.validation.report.report import validation_report
from scaletest_workers.workloads import registry as workloads
from tests.conftest import call_here
from tests.unit import made_runs as runs

MODULE = """
from dataclasses import replace
from scaletest.benchmarks.kinds.fio import KIND
MINE = replace(KIND, name="Mine", help="It measures.")
OTHER = replace(KIND, name="Another")
def facts(report): return f"verdict {report.head.verdict.kind}\\n"
def fails(report): raise KeyError("no\\nsuch part")
def counts(report): return 5
NUMBER = 5
"""
ENTRY_POINTS = """
[scaletest.kinds]
Mine = plugin_of_tests:MINE
Fio = plugin_of_tests:MINE
benchmarkset = plugin_of_tests:MINE
Wrong = plugin_of_tests:NUMBER
Renamed = plugin_of_tests:OTHER
Absent = plugin_of_tests:ABSENT
Broken = no_such_plugin:KIND

[scaletest.reports]
facts = plugin_of_tests:facts
fails = plugin_of_tests:fails
counts = plugin_of_tests:counts
broken = no_such_plugin:render
html = plugin_of_tests:facts

[scaletest.workloads]
mine = plugin_of_tests:facts
torch = plugin_of_tests:facts
odd = plugin_of_tests
broken = no_such_plugin:Workload
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages, of which the second wants a name of the first."""
    (tmp_path / "plugin_of_tests.py").write_text(MODULE)
    again = "[scaletest.kinds]\nmine = plugin_of_tests:MINE\n"
    for name, entry_points in (("first", ENTRY_POINTS), ("second", again)):
        folder = tmp_path / f"{name}-1.2.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (folder / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(tmp_path)
    kinds = Registry("scaletest.kinds", Kind, registry.BUILT_IN, taken=[registry.SET])
    monkeypatch.setattr(registry, "KINDS", kinds)
    monkeypatch.setattr(formats, "_PLUGINS", Plugins("scaletest.reports", formats.names()))


def test_a_kind_of_a_package_is_a_kind_like_any_other() -> None:
    assert registry.kind_of("mine").help == "It measures."
    assert list(registry.KINDS) == [*registry.BUILT_IN, "Mine"]
    assert registry.kind_of("Fio") is fio.KIND


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Wrong", "it is of type int, not Kind"),
        ("Renamed", "it calls itself 'Another'"),
        ("Absent", "AttributeError: module 'plugin_of_tests' has no attribute 'ABSENT'"),
        ("Broken", "ModuleNotFoundError: No module named 'no_such_plugin'"),
    ],
)
def test_a_kind_that_cannot_be_used_says_so_to_who_names_it(name: str, why: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        registry.kind_of(name)
    assert refused.value.message == f"{name} of the package first 1.2 cannot be used: {why}"
    assert "correct or remove that package" in refused.value.hint


def test_the_list_of_kinds_says_where_each_comes_from_and_what_is_broken() -> None:
    listed = call_here("bench", "explain")
    assert listed.returncode == 0
    assert "It measures. (first 1.2)\n" in listed.stdout
    assert not any(
        " (" in line.rpartition(".")[2] for line in listed.stdout.splitlines() if "Mine" not in line
    )
    warnings = listed.stderr.splitlines()
    assert len(warnings) == 7 and all(line.startswith("warning: ") for line in warnings)
    assert sum("the name belongs to scaletest" in line for line in warnings) == 2
    assert sum("mine of the package second" in line for line in warnings) == 1


def test_a_format_of_a_package_shows_a_run(tmp_path: Path) -> None:
    report = validation_report(runs.make("pass", tmp_path))
    assert {"facts", "html", "csv"} <= set(formats.names()) and "facts" in formats.texts()
    assert formats.render(report, "facts") == "verdict PASS\n"
    assert formats.content(report, "facts") == b"verdict PASS\n"
    assert formats.render(report, "html").startswith("<!")


def test_a_format_whose_name_is_taken_is_told(tmp_path: Path) -> None:
    runs.make("pass", tmp_path)
    shown = call_here("report", str(tmp_path / "pass"), "--format", "brief")
    assert shown.returncode == 0
    assert shown.stderr == (
        "warning: html of the package first 1.2 cannot be used: the name belongs to scaletest\n"
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("fails", "KeyError: 'no\\nsuch part'"),
        ("counts", "it returned an object of type int, not text"),
        ("broken", "No module named 'no_such_plugin'"),
    ],
)
def test_a_format_that_fails_is_an_error_of_one_line(tmp_path: Path, name: str, why: str) -> None:
    report = validation_report(runs.make("pass", tmp_path))
    with pytest.raises(UsageError) as refused:
        formats.render(report, name)
    assert why in refused.value.message and "\n" not in refused.value.message


def test_a_workload_has_its_name_or_that_of_a_class_or_function() -> None:
    assert workloads.resolve_name("mine") == "plugin_of_tests:facts"
    assert workloads.resolve_name("a.b:C") == "a.b:C"
    assert workloads.resolve_name("sleep") == "sleep"
    with pytest.raises(UsageError, match="it is not MODULE:NAME"):
        workloads.resolve_name("odd")
    with pytest.raises(UsageError, match="there is no workload 'minne'") as refused:
        workloads.resolve_name("minne")
    assert "did you mean mine?" in refused.value.hint


@pytest.mark.parametrize("command", ["validate", "quick", "worker"])
def test_a_wrong_name_is_an_error_of_every_command_that_takes_it(command: str) -> None:
    ended = call_here(command, "--workload", "minne", "--", "1")
    assert ended.returncode == 2 and "did you mean mine?" in ended.stderr


def test_a_named_workload_takes_the_place_of_a_plan_files_command(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("command: [ffmpeg, -i, x]\nlimit: 2\n")
    line = ("validate", "--dry-run", "-f", str(plan), "--format", "json")
    for options in ([], ["--width", "3"]):
        planned = call_here(*line, "--workload", "mine", "--", *options)
        assert json.loads(planned.stdout)["command"] == ["plugin_of_tests:facts", *options]
    assert json.loads(call_here(*line).stdout)["command"] == ["ffmpeg", "-i", "x"]
