"""The settings file as `scaletest config init` writes it: each key with its help, in a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import click

from scaletest.cli.settings import SHARED, Route, options_of
from scaletest.cli.settings_keys import command_of

HEAD = """\
# Settings of scaletest: defaults of options, for every call by this user.
# Take the sign # before a key away, and write your value; or: scaletest config set KEY VALUE
#
# What counts: the command line, then the environment (SCALETEST_...), then this file, then the
# default. A key is the name of an option with underscores, below the command that has it; all
# options of all commands may stand here. To see what counts: scaletest config view
# SCALETEST_CONFIG names another file; SCALETEST_CONFIG= (empty) does without one.

# Options that many commands share.
"""
# What stands behind a shared key as an example.
EXAMPLES = {
    "redis_url": "redis://127.0.0.1:6379/0",
    "namespace": "default",
    "context": "kind-kind",
    "format": "text",
}
# Options that people change, by the route of their command.
OFTEN: dict[Route, tuple[str, ...]] = {
    ("validate",): (
        *("limit", "scale", "precision", "seconds", "max_step", "order", "repeats"),
        *("time_limit", "tolerate_failures", "device_glob", "preset"),
        *("run_dir", "progress"),
    ),
    ("saturate",): (
        *("step_time", "warm", "success", "latency_limit", "precision", "timeout", "agents"),
        "progress",
    ),
    ("worker",): ("queue", "device_glob", "preset", "per_device", "time_limit", "grace"),
    ("client",): ("queue", "parallel", "time_limit", "listen"),
    ("ui",): ("listen", "archive"),
    ("exporter",): ("listen", "window"),
    ("bench", "run"): ("repetitions", "queue"),
    ("lifecycle", "run"): ("num_gpus", "image", "timeout"),
}
WIDTH = 96


def text(root: click.Group) -> str:
    """The file with these commands' options; every value is in a comment."""
    return HEAD + "".join(f"{line}\n" for line in (*_shared(), *_commands(root)))


def _shared() -> Iterator[str]:
    for name, help_text in SHARED.items():
        yield from _comment(help_text, "")
        yield f"# {name}: {EXAMPLES[name]}"


def _commands(root: click.Group) -> Iterator[str]:
    for route, names in OFTEN.items():
        options = options_of(command_of(root, route))
        yield ""
        yield from (f"{'  ' * depth}{word}:" for depth, word in enumerate(route))
        for name in names:
            yield from _option(options[name], name, "  " * len(route))


def _option(option: click.Option, name: str, indent: str) -> Iterator[str]:
    yield from _comment(option.help or "", indent)
    default = option.default
    if isinstance(option.type, click.Choice):
        yield from _comment(f"One of: {', '.join(filter(None, option.type.choices))}.", indent)
    if isinstance(default, int | float):
        default = f"{default:g}"
    yield f"{indent}# {name}: {default if isinstance(default, str) else ''}".rstrip()


def _comment(sentence: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        sentence, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# "
    )
