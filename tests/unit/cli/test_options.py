"""The options of the command line: they are typed, follow one grammar, and are told in its help."""

import inspect
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import is_dataclass
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

import click
import cloup
import pytest

from scaletest.cli.headings import ManyOptionsCommand
from scaletest.cli.main import cli, run
from scaletest.cli.output import Output
from scaletest.cli.quantity import DURATION, RATE, RATE_WITH_UNIT, Quantity
from scaletest.cli.schema import documents
from scaletest.model.errors import UsageError
from tests.unit.made_runs import make


def walk(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """A group and all that is below it, by what is typed."""
    yield name.strip(), group
    context = click.Context(group)
    for child_name in group.list_commands(context):
        child = group.get_command(context, child_name)
        if isinstance(child, click.Group):
            yield from walk(child, f"{name}{child_name} ")
        else:
            yield f"{name}{child_name}", child


CALLS = dict(walk(cli))
COMMANDS = {
    name: command for name, command in CALLS.items() if not isinstance(command, click.Group)
}


def leaves(options_type: type) -> dict[str, Any]:
    """Types by name, of the fields of an options class and of its groups."""
    fields: dict[str, Any] = {}
    field_types = get_type_hints(options_type)
    for name in signature(options_type).parameters:
        field_type = field_types[name]
        is_group = is_dataclass(field_type) and field_type is not Output
        inner = leaves(field_type) if is_group else {name: field_type}
        assert not fields.keys() & inner.keys(), f"{options_type}: {name} stands twice"
        fields |= inner
    return fields


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_field_is_a_parameter_and_a_parameter_a_field(name: str) -> None:
    command = COMMANDS[name]
    assert command.callback is not None
    options_type = getattr(command.callback, "__wrapped__", None)
    if options_type is None:
        return
    exposed = {parameter.name for parameter in command.params if parameter.expose_value}
    # the field of a duration names its unit
    fields = {name if name in exposed else name.removesuffix("_s") for name in leaves(options_type)}
    # the note of a run is written later
    assert not fields - exposed - {"note"}, "no such parameter"
    # the plan file, and what comes from it too, are read by `validate_options`
    elsewhere = {"file", *documents()["plan-file"]()["properties"]}
    assert exposed - fields <= (elsewhere if name == "validate" else set()), "never read"


# Options that Run:ai's scale test tool has, with its letters; -l is kubectl's.
OF_RUNAI = {"--output-dir", "--num-workloads", "--num-processes", "--project", "--workload-type"}
# Numbers whose names sound like a time but are none.
NO_TIMES = {"--repetitions"}
TIMES = (
    "time",
    "timeout",
    "interval",
    "delay",
    "duration",
    "grace",
    "wait",
    "warm",
    "heartbeat",
    "seconds",
    "latency",
    "ttl",
    "window",
    "target",
    "pod-start",
    "max-step",
)

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
    with pytest.raises(UsageError, match=f"invalid {quantity.name}") as caught:
        quantity.convert(text, None, None)
    assert "e.g." in caught.value.hint


@pytest.mark.parametrize(
    ("line", "file", "begins"),
    [
        (SIZE, "r.json", "{"),
        (SIZE, "r.yml", "schema_version:"),
        (SIZE, "r.txt", "1 requests"),
        (SIZE, "r", "1 requests"),
        (("report", "pass"), "report.html", "<!doctype html>"),
        (("report", "pass"), "report.HTM", "<!doctype html>"),
        (("report", "pass"), "junit.xml", "<testsuites"),
        (("report", "pass", "--format", "md"), "report.html", "#"),
    ],
)
def test_the_suffix_of_the_file_chooses_the_form(
    line: tuple[str, ...], file: str, begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make("pass", tmp_path)
    assert run([*line, "-o", file]) == 0
    assert (tmp_path / file).read_text().lower().startswith(begins)


def test_a_form_that_the_command_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*SIZE, "-o", str(tmp_path / "rules.html")]) == 2
    assert "unsupported output format .html" in capsys.readouterr().err
    assert run([*SIZE, "-o", str(tmp_path / "r.html"), "--format", "json"]) == 0


# A command with more options than this has headings.
FEW = 4


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_of_many_stands_below_one_heading(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, cloup.Command)
    titles = [group.title for group in command.option_groups]
    assert len(titles) == len(set(titles))
    options_of_command = [option for option in command.params if isinstance(option, click.Option)]
    if sum(not option.hidden for option in options_of_command) > FEW:
        names = {option.name for option in command.ungrouped_options if not option.hidden}
        assert names <= {"help_all"}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_command_of_many_options_shows_the_common_ones_first(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*name.split(), "--help"]) == 0
    shown = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    if not isinstance(CALLS[name], ManyOptionsCommand):
        assert len(shown) < 15
        return
    assert len(shown) <= 12
    assert run([*name.split(), "--help-all"]) == 0
    every = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", capsys.readouterr().out, re.MULTILINE))
    assert shown < every and len(every) >= 15


def examples(command: click.Command) -> list[str]:
    """The command lines in the help of a command that begin with the program."""
    text = inspect.cleandoc(command.help or "").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.startswith("scaletest ")]


EXAMPLES = [line for command in CALLS.values() for line in examples(command)]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_an_example_of_itself(name: str) -> None:
    lines = examples(COMMANDS[name])
    # those that workers and pods call have none
    assert COMMANDS[name].hidden or any(
        f"{line} ".startswith(f"scaletest {name} ") for line in lines
    )


def accept(place: str, arguments: list[str]) -> None:
    """Parse a command line without running it; the test fails when it is not accepted."""
    unread = list(arguments)
    try:
        context = cli.make_context("scaletest", unread)
        while isinstance(context.command, click.Group):
            name, *unread = [*context._protected_args, *context.args]
            command = context.command.get_command(context, name)
            assert command is not None, f"{place}: there is no command {name}"
            context = command.make_context(name, unread, parent=context)
    except click.exceptions.Exit as ended:
        assert ended.exit_code == 0
    except Exception as error:
        pytest.fail(f"{place}: scaletest {' '.join(arguments)}: {error}")


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_can_be_typed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text("{}")
    _, *arguments = shlex.split(line, comments=True)
    ends = [arguments.index(sign) for sign in ("|", ">", ">>") if sign in arguments]
    accept(line, arguments[: min(ends, default=None)])
    # capitals stand for what a reader would have to replace
    assert not re.search(r"\b(NAME|FILE|HOST|NAMESPACE|COMMAND|ARG|BASE|RUN)\b", line)


@pytest.mark.parametrize("columns", [80, 100, 200])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_no_line_is_wider_than_the_terminal(
    name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run([*name.split(), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > min(columns, 100)] == []
    assert not any("\x1b" in line or line != line.rstrip() for line in lines)


@pytest.mark.parametrize("name", ["quick", "validate", "saturate", "worker", "bench run"])
def test_the_help_of_a_command_imports_no_run(name: str) -> None:
    code = (
        f"import sys; from scaletest.cli.main import run; run([*'{name}'.split(), '--help']);"
        " print(*sys.modules, file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stderr.split()
    heavy = {"redis", "rq", "rich", "scaletest.runs", "scaletest.broker", "scaletest.report.words"}
    assert not heavy & set(loaded)
