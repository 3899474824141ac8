"""One grammar of the command line: a letter has one meaning, and quantities have units."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scaletest.cli.main import run
from scaletest.cli.options import DURATION, RATE, RATE_WITH_UNIT, Quantity
from scaletest.model.errors import UsageError
from tests.unit.runs import make
from tests.unit.test_cli_options import COMMANDS

# Options that Run:ai's scale test tool has, with its letters; -l is kubectl's.
OF_RUNAI = {"--output-dir", "--num-workloads", "--num-processes", "--project", "--workload-type"}
# Numbers whose names sound like a time but are none.
NO_TIMES = {"--repetitions"}
TIMES = ("time", "timeout", "interval", "delay", "duration", "grace", "wait", "warm", "heartbeat")
TIMES += ("seconds", "latency", "ttl", "window", "target", "pod-start", "max-step")

# A command that needs nothing and prints any form.
SIZE = ("size", "--rate", "1/s", "--latency", "1s")


def options() -> Iterator[tuple[str, click.Option]]:
    """Every option of every command, hidden ones too."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                yield name, parameter


def long_name(option: click.Option) -> str:
    return max(option.opts, key=len)


def test_no_letter_has_two_meanings() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for command, option in options():
        if command.startswith("lifecycle ") and long_name(option) in OF_RUNAI:
            continue
        for letter in option.opts:
            if len(letter) == 2:
                meanings[letter].add(long_name(option))
    assert {letter: names for letter, names in meanings.items() if len(names) > 1} == {}
    assert meanings["-o"] == {"--output"}
    assert meanings["-n"] == {"--namespace"}
    assert meanings["-f"] == {"--file"}


def test_every_output_has_its_letter_and_its_format() -> None:
    for name in COMMANDS:
        named = {long_name(option): option for where, option in options() if where == name}
        if "--output" in named:
            assert "--format" in named, name
            letter = [] if "--output-dir" in named else ["-o"]
            assert [*letter, "--output"] == named["--output"].opts, name
            assert named["--output"].metavar == "FILE", name


def test_every_namespace_has_its_letter() -> None:
    for name, option in options():
        if long_name(option) == "--namespace" and not name.startswith("lifecycle "):
            assert option.opts == ["-n", "--namespace"], name


def durations() -> Iterator[tuple[str, click.Option]]:
    for name, option in options():
        words = long_name(option).removeprefix("--")
        sounds = words in TIMES or words.rpartition("-")[2] in TIMES or words == "run-seconds"
        is_number = isinstance(option.type, click.types.FloatParamType | click.types.IntParamType)
        is_told = option.metavar in ("S", "SECONDS", "TIME")
        if long_name(option) not in NO_TIMES and (is_told or (sounds and is_number)):
            yield name, option
        assert option.metavar != "S", f"{name} {long_name(option)}: a duration has units"


def test_every_duration_takes_units() -> None:
    for name, option in durations():
        context = click.Context(COMMANDS[name])
        converted = [option.process_value(context, text) for text in ("90", "90s", "1.5m")]
        assert [float(value) for value in converted] == [90.0] * 3, f"{name} {long_name(option)}"
        assert float(option.process_value(context, "500ms")) == 0.5


def test_rates_and_sizes_have_units() -> None:
    rates = [option for _, option in options() if option.metavar == "RATE"]
    assert rates
    assert all(option.type in (RATE, RATE_WITH_UNIT) for option in rates)


@pytest.mark.parametrize(
    ("quantity", "text", "expected"),
    [
        (DURATION, "500ms", 0.5),
        (DURATION, "2 h", 7200.0),
        (DURATION, "1e-3", 0.001),
        (RATE, "20", 20.0),
        (RATE, "600/min", 10.0),
        (RATE_WITH_UNIT, "120/min", 2.0),
    ],
)
def test_quantities_are_read_in_base_units(
    quantity: Quantity, text: str, expected: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quantity.convert(text, None, None) == pytest.approx(expected)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (DURATION, "-1"),
        (DURATION, "nan"),
        (DURATION, "soon"),
        (DURATION, ""),
        (DURATION, "3/s"),
        (DURATION, "1e400"),
        (DURATION, "inf"),
        (RATE, "20s"),
        (RATE_WITH_UNIT, "60"),
    ],
)
def test_what_is_no_quantity_is_refused_with_an_example(quantity: Quantity, text: str) -> None:
    with pytest.raises(UsageError, match=f"is no {quantity.name}") as caught:
        quantity.convert(text, None, None)
    assert "as in" in caught.value.hint


@pytest.mark.parametrize(
    ("file", "begins"),
    [("r.json", "{"), ("r.yml", "schema_version:"), ("r.txt", "1 requests"), ("r", "1 requests")],
)
def test_the_suffix_of_the_file_chooses_the_form(file: str, begins: str, tmp_path: Path) -> None:
    assert run([*SIZE, "-o", str(tmp_path / file)]) == 0
    assert (tmp_path / file).read_text().startswith(begins)


def test_a_form_that_the_command_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*SIZE, "-o", str(tmp_path / "rules.html")]) == 2
    assert "no form for .html" in capsys.readouterr().err
    assert run([*SIZE, "-o", str(tmp_path / "r.html"), "--format", "json"]) == 0


@pytest.mark.parametrize(
    ("output", "begins"),
    [
        (["-o", "report.html"], "<!doctype html>"),
        (["-o", "report.HTM"], "<!doctype html>"),
        (["-o", "junit.xml"], "<testsuites"),
        (["-o", "report.yaml"], "schema_version:"),
        (["-o", "report.html", "--format", "md"], "#"),
    ],
)
def test_a_report_is_written_in_the_form_of_its_file(
    output: list[str], begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("pass", tmp_path)
    assert run(["report", "pass", *output]) == 0
    assert (tmp_path / output[1]).read_text().lower().startswith(begins)


def test_a_rate_without_its_unit_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["autoscale", "--rate", "60"]) == 2
    assert "write it as in 2/s or 120/min" in capsys.readouterr().err
