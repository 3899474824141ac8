"""Settings in texts: packages below the command line name them, and the command line words them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from scaletest.cli.main import cli
from scaletest.model.wording import SETTINGS, as_arguments, as_options, option_name

ROOT = Path(__file__).parents[3]
BELOW = [
    path
    for package in ("scaletest", "workers")
    for path in (ROOT / package).rglob("*.py")
    if ROOT / "scaletest" / "cli" not in path.parents
]


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        yield from parameter.opts
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            own = command.get_command(context, name)
            assert own is not None
            yield from options(own, click.Context(own, info_name=name, parent=context))


def named_below() -> Iterator[str]:
    """What texts below the command line name in brackets, but for docstrings."""
    for path in BELOW:
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = getattr(node, "value", None)
            if isinstance(node, ast.Constant) and isinstance(text, str) and id(node) not in docs:
                yield from re.findall(r"(?<!\?P)<([a-z][a-z_]*)>", text)


def test_each_setting_is_an_option_of_a_command() -> None:
    known = set(options(cli, click.Context(cli, info_name="scaletest")))
    assert not [name for name in SETTINGS if f"--{option_name(name)}" not in known]


def test_texts_name_settings_and_nothing_else() -> None:
    assert set(named_below()) == SETTINGS


@pytest.mark.parametrize(
    ("text", "shell", "python"),
    [
        ("a longer <max_step>", "a longer --max-step", "a longer max_step"),
        ("<limit> 4", "--limit 4", "limit 4"),
        ("without <keep>", "without --no-wait", "without keep=True"),
        ("<html> is <Foreign>", "<html> is <Foreign>", "<html> is <Foreign>"),
    ],
)
def test_a_setting_is_an_option_or_an_argument(text: str, shell: str, python: str) -> None:
    assert (as_options(text), as_arguments(text)) == (shell, python)
