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
from pathlib import Path

import click
import cloup
import pytest

from scaletest.cli.headings import heading
from scaletest.cli.main import cli, run
from tests.unit.test_cli_options import COMMANDS

# A command with more options than this has headings.
FEW = 4


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


def visible(command: click.Command) -> list[click.Option]:
    """The options of a command that its help shows, without --help."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    return [option for option in options if not option.hidden]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_of_many_stands_below_one_heading(name: str) -> None:
    command = COMMANDS[name]
    assert isinstance(command, cloup.Command)
    titles = [group.title for group in command.option_groups]
    assert len(titles) == len(set(titles))
    if len(visible(command)) > FEW:
        assert not [option.name for option in command.ungrouped_options if not option.hidden]


def test_a_heading_holds_the_options_that_follow_it() -> None:
    @cloup.command()
    @click.option("--a")
    @heading("Load")
    @click.option("--b")
    @heading("Target")
    @click.option("--c")
    @heading("Load")
    @click.option("--d")
    def command() -> None: ...

    sections = {group.title: [each.name for each in group] for group in command.option_groups}
    assert sections == {"Load": ["b", "d"], "Target": ["c"]}
    assert [option.name for option in command.ungrouped_options] == ["a"]


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
        # parsed and checked, and not called
        context = command.make_context(name, arguments, parent=context)
        arguments = [*context._protected_args, *context.args]
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
