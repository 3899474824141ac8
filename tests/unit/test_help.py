"""The help of every command: options below headings, sentences that stand alone, examples that can
be typed, and lines that fit a terminal.
"""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click
import pytest

from scaletest.cli.headings import (
    ALL,
    FEW,
    MOST_FIRST,
    NO_HEADING,
    HeadedCommand,
    HeadedGroup,
    first,
    heading,
    options_by_heading,
    visible,
)
from scaletest.cli.main import cli, run
from tests.unit.test_cli_options import COMMANDS

# A group with more commands than this has headings.
MOST_COMMANDS = 6


def groups(group: click.Group, route: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Group]]:
    """The group and all groups below it, by what is typed."""
    yield " ".join(route), group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from groups(command, (*route, name))


GROUPS = dict(groups(cli))
CALLS = [*COMMANDS, *GROUPS]


def helped(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run([*name.split(), flag]) == 0
    return capsys.readouterr().out


def test_every_command_has_the_help_with_headings() -> None:
    assert all(isinstance(command, HeadedCommand) for command in COMMANDS.values())
    assert all(isinstance(group, HeadedGroup) for group in GROUPS.values())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_stands_below_a_heading(name: str) -> None:
    command = COMMANDS[name]
    sections = options_by_heading(command)
    assert sorted(chain.from_iterable(sections.values()), key=id) == sorted(
        visible(command), key=id
    )
    if len(visible(command)) > FEW:
        assert NO_HEADING not in sections, [each.name for each in sections[NO_HEADING]]


def test_an_option_without_a_heading_is_seen() -> None:
    @click.command(cls=HeadedCommand)
    @click.option("--a")
    @heading("Load")
    @click.option("--b")
    @click.option("--c")
    @heading("Target")
    @click.option("--d")
    @click.option("--e")
    def command() -> None: ...

    sections = {
        title: [option.name for option in options]
        for title, options in options_by_heading(command).items()
    }
    assert sections == {"Target": ["d", "e"], "Load": ["b", "c"], NO_HEADING: ["a"]}


def test_options_that_are_shown_first_must_exist() -> None:
    with pytest.raises(AssertionError):
        first("--nosuch")(click.option("--such")(lambda: None))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_first_help_of_many_options_is_short(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = COMMANDS[name]
    if command.context_settings.get("ignore_unknown_options"):
        pytest.skip("it takes the options of another command")
    if len(visible(command)) <= MOST_FIRST:
        assert run([*name.split(), "--help-all"]) == 2
        assert "has no option --help-all" in capsys.readouterr().err
        return
    short, full = (helped(name, flag, capsys) for flag in ("--help", "--help-all"))
    shown = list(chain.from_iterable(options_by_heading(command, is_short=True).values()))
    assert 5 <= len(shown) <= MOST_FIRST
    for option in visible(command):
        spelled = re.compile(rf"^  (-\w, )?{max(option.opts, key=len)}\b(?!-)", re.M)
        assert bool(spelled.search(short)) == (option in shown), option.name
        assert spelled.search(full), option.name
    last = f"All {len(visible(command))} options are shown by: scaletest {name} --help-all\n"
    assert short.endswith(f"\n\n{last}") and last not in full


@pytest.mark.parametrize(("name", "group"), GROUPS.items())
def test_commands_stand_below_headings(name: str, group: HeadedGroup) -> None:
    context = click.Context(group)
    shown = [each for each in group.list_commands(context) if group.summary(context, each)]
    if group.headings or len(shown) > MOST_COMMANDS:
        assert sorted(chain.from_iterable(group.headings.values())) == sorted(shown), name
    for each in shown:
        assert re.fullmatch(r"[A-Z].*\.", group.summary(context, each)), f"{name} {each}"


def examples(command: click.Command) -> list[str]:
    """The command lines in the help of a command that begin with the program."""
    text = inspect.cleandoc(command.help or "").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.startswith("scaletest ")]


EXAMPLES = [line for name, command in {**COMMANDS, **GROUPS}.items() for line in examples(command)]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_an_example_of_itself(name: str) -> None:
    lines = examples(COMMANDS[name])
    # those that workers and pods call have none
    assert COMMANDS[name].hidden or any(
        f"{line} ".startswith(f"scaletest {name} ") for line in lines
    )


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_can_be_typed(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text("{}")
    program, *arguments = shlex.split(line, comments=True)
    ends = [arguments.index(sign) for sign in ("|", ">", ">>") if sign in arguments]
    arguments = arguments[: min(ends, default=None)]
    context = click.Context(cli, info_name=program, **cli.context_settings)
    while isinstance(context.command, click.Group) and arguments:
        name, command, arguments = context.command.resolve_command(context, arguments)
        assert name and command
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=name, parent=context)
        else:
            # parsed and checked, and not called
            context = command.make_context(name, arguments, parent=context)
    # capitals stand for what a reader would have to replace
    assert not re.search(r"\b(NAME|FILE|HOST|NAMESPACE|COMMAND|ARG|BASE|RUN)\b", line)


@pytest.mark.parametrize("columns", [80, 100, 200])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_no_line_is_wider_than_the_terminal(
    name: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for flag in ("--help", "--help-all"):
        if run([*name.split(), flag]) == 0:
            lines = capsys.readouterr().out.splitlines()
            assert [line for line in lines if len(line) > min(columns, 100)] == []
            assert not any("\x1b" in line or line != line.rstrip() for line in lines)


def test_limits_of_numbers_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(helped("bench run", "--help-all", capsys).split())
    assert "Measure each permutation N times. [1 to 1000]" in text
    assert "<=x" not in text and "x>=" not in text


def test_a_broken_settings_file_does_not_hide_the_help(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("validate:\n  nosuch: 1\n")
    monkeypatch.setenv("SCALETEST_CONFIG", str(path))
    assert "Accuracy:" in helped("validate", "--help-all", capsys)


def test_the_full_help_is_asked_for_by_its_context() -> None:
    context = click.Context(COMMANDS["worker"], info_name="worker", **cli.context_settings)
    assert context.get_help().endswith("--help-all")
    context.meta[ALL] = True
    assert "--heartbeat" in context.get_help()


@pytest.mark.parametrize("name", ["quick", "validate", "saturate", "worker"])
def test_the_help_of_a_command_imports_no_run(name: str) -> None:
    code = (
        f"import sys; from scaletest.cli.main import run; run(['{name}', '--help']);"
        " print(*sys.modules, file=sys.stderr)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stderr.split()
    heavy = {"redis", "rq", "rich", "scaletest.runs", "scaletest.broker", "scaletest.report.words"}
    assert not heavy & set(loaded)
