"""scaletest config: the settings file, the settings of a validation, and schemas of documents."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from scaletest.analysis.schemas import DOCUMENTS
from scaletest.archive.environment import make_folder, replace_private
from scaletest.cli import options as shared
from scaletest.cli import (
    saturate,
    saturate_options,
    settings,
    settings_keys,
    settings_template,
    validate,
    validate_options,
)
from scaletest.cli.headings import HeadedGroup
from scaletest.cli.output import Output, echo
from scaletest.documents import edit, reader
from scaletest.kinds import document_schemas
from scaletest.model import checks, plan
from scaletest.model.errors import UsageError
from scaletest.model.json_schema import Schema
from scaletest.model.texts import masked
from scaletest.render.contents import Table, aligned


@click.group("config", cls=HeadedGroup)
def command() -> None:
    """Write and show settings and where they come from, and print the schemas of documents."""


@command.command()
@click.argument("document", default="result", metavar="[DOCUMENT]")
@shared.output("json", "yaml")
def schema(document: str, output: Output) -> None:
    """Print the JSON Schema (draft 2020-12) of a document.

    \b
    scaletest config schema plan-file
    scaletest config schema benchmark -o benchmark.schema.json

    \b
    result                what validate --format json prints, and result.json
    plan-file             what validate -f takes
    saturation-plan-file  what saturate -f takes
    plan                  plan.json of a run
    record                a line of records.jsonl: one request
    measurement           a line of steps.jsonl: one measuring of a step
    node-sample           a line of samples.jsonl: what a node did in one interval
    environment           environment.json of a run
    comparison            what compare --format json prints
    lifecycle             lifecycle.json: what a lifecycle was to do
    lifecycle-result      result.json of a lifecycle, as its report prints it
    lifecycle-submission  a line of its submissions.jsonl
    lifecycle-record      a line of its records.jsonl: a workload or a pod
    benchmark             what bench run takes: a benchmark, or a BenchmarkSet
    """
    schemas: dict[str, Callable[[], Schema]] = {
        **DOCUMENTS,
        "benchmark": document_schemas.schema,
        saturate_options.NAME: lambda: saturate_options.schema(saturate.command),
    }
    output.show(schemas[checks.one_of(document, schemas, "document")](), ())


@command.command()
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.pass_context
def init(context: click.Context, force: bool) -> None:
    """Write a settings file to be edited: the options that people change, in comments.

    \b
    scaletest config init

    It lies in $XDG_CONFIG_HOME/scaletest/config.yaml, or where SCALETEST_CONFIG says. Only its
    owner may read it, because addresses may hold passwords.
    """
    path = _place()
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="edit it, or replace it with --force")
    _write(settings_template.text(_root(context)), path)


@command.command("set")
@click.argument("key", shell_complete=settings_keys.complete)
@click.argument("value")
@click.pass_context
def set_value(context: click.Context, key: str, value: str) -> None:
    """Set one KEY of the settings file; comments and the other lines stay as they are.

    \b
    scaletest config set redis_url redis://127.0.0.1:6379/0
    scaletest config set validate.limit 16
    scaletest config set validate.threshold "['ratio>=1.8']"

    A KEY is an option with underscores, behind the command that has it: bench.run.repetitions. It
    stands alone for options that many commands share: redis_url, namespace, context, format.
    """
    path, root = _place(), _root(context)
    route = settings_keys.key_of(root, key)
    checked = settings_keys.from_text(root, route, value)
    name = f"the settings file {path}"
    text = ""
    if path.exists():
        text = reader.text_of(path, name, "edit it by hand")
    _write(edit.with_value(text, route, checked, name), path)


def _place() -> Path:
    path = settings.place(os.environ)
    if path is None:
        raise UsageError(
            f"{settings.VARIABLE} is empty: no settings file is used",
            hint=f"unset it, or write a file's path into it: {settings.VARIABLE}=FILE",
        )
    # of a link the file that it leads to is written
    return path.resolve()


def _write(text: str, path: Path) -> None:
    """Write the file whole or not at all. A new one is for its owner only."""
    try:
        make_folder(path.parent)
        before = path.stat() if path.exists() else None
        replace_private(path, [text.encode()])
        if before is not None:
            path.chmod(stat.S_IMODE(before.st_mode))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}",
            hint=f"correct its folder's rights, or name another file: {settings.VARIABLE}=FILE",
        ) from error
    echo(f"{path} written", err=True)


def _root(context: click.Context) -> click.Group:
    root = context.find_root().command
    assert isinstance(root, click.Group)
    return root


@command.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF validate...]")
@click.pass_context
def view(context: click.Context, arguments: tuple[str, ...]) -> None:
    """Show every setting of validate with its value and where that comes from, and what the
    settings file says for other commands.

    \b
    scaletest config view
    scaletest config view -f plan.yaml --set limit=16 --repeats 3 --format json

    Takes the options of validate. A flag comes before --set, that before the environment, the plan
    file, the settings file, the default.
    """
    root = _root(context)
    rows = []
    try:
        file = settings.load()
        validate_map = settings.default_map(file, validate.command, ("validate",))
        rows = list(_of_other_commands(file, root))
    except UsageError as error:
        echo(f"warning: {error.message}: {error.hint}; it is left out here", err=True)
        file, validate_map, rows = settings.SettingsFile(), {}, []
    with validate.command.make_context(
        "scaletest validate",
        list(arguments),
        auto_envvar_prefix="SCALETEST_VALIDATE",
        default_map=validate_map,
    ) as inner:
        inner.meta[settings.META] = file
        rows = [*validate_options.settings(inner), *_others(inner), *rows]
        output, _ = validate_options.parameter(inner, "output")
        assert isinstance(output, Output)
    cells = [(row.key, _shown(row.value), row.origin) for row in rows]
    output.show(
        {row.key: {"value": row.value, "origin": row.origin} for row in rows},
        aligned(Table(("setting", "value", "origin"), cells, texts=(0, 1, 2))),
    )


def _of_other_commands(
    file: settings.SettingsFile, root: click.Group
) -> Iterator[validate_options.Setting]:
    """What the file says, without what stands for validate already; all of it is checked."""
    for key in settings.SHARED:
        if key in file.values and key != "redis_url":
            yield _setting(file, (key,), file.values[key])
    others = [name for name in file.values if name not in (*settings.SHARED, "validate")]
    for name in others:
        command = root.get_command(click.Context(root), name)
        assert command is not None
        for setting in settings.below(file, command, (name,)):
            yield _setting(file, setting.key, setting.value)


def _setting(
    file: settings.SettingsFile, key: settings.Route, value: object
) -> validate_options.Setting:
    return validate_options.Setting(".".join(key), _masked(value), file.origin(key))


def _masked(value: object) -> object:
    """A value without the passwords of addresses in it."""
    if isinstance(value, list):
        return list(map(_masked, value))
    return masked(value) if isinstance(value, str) else value


def _others(context: click.Context) -> list[validate_options.Setting]:
    """The settings of validate that are no part of a plan: where to run, what to print."""
    in_plan = {*plan.FILE_MEMBERS, "sets", "output"}
    rows = []
    for option in context.command.params:
        if option.expose_value and option.name and option.name not in in_plan:
            value, origin = validate_options.parameter(context, option.name)
            rows.append(validate_options.Setting(option.name, _masked(value), origin))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    if value in (None, ""):
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
