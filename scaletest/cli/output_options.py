"""The options that say where a command writes its result, and in which form."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from scaletest.cli.headings import Decorator, F, join_options, under_heading
from scaletest.cli.output import Output
from scaletest.model.errors import UsageError
from scaletest.report import formats


def output(*forms: str, letter: bool = True) -> Callable[[F], F]:
    """Make -o/--output and --format, as one parameter `output`: an Output.

    The first form is the usual one.
    """
    forms = forms or ("text", "json", "yaml")

    def note_form(context: click.Context, _option: click.Parameter, form: str | None) -> None:
        context.meta["form"] = form

    def choose_output(context: click.Context, option: click.Parameter, file: str) -> Output:
        form, name = context.meta["form"], option.opts[0]
        if file in forms and not Path(file).exists():
            raise UsageError(
                f"{name} {file} names a format, not a file",
                hint=f"write --format {file}, or -o FILE.{file}",
            )
        suffix = Path(file).suffix
        if not form:
            form = formats.form_of(Path(file)) if suffix else forms[0]
            if suffix and form not in forms:
                raise UsageError(
                    f"{file}: unsupported output format {suffix.lower()}",
                    hint=f"give another FILE, or --format {' or '.join(forms)}",
                )
        _check_writable(file, name)
        return Output(Path(file), form)

    def decorate(function: F) -> F:
        # read before --output, whose suffix counts less
        function = click.option(
            "--format",
            "form",
            type=click.Choice(forms),
            is_eager=True,
            expose_value=False,
            callback=note_form,
            envvar="SCALETEST_FORMAT",
            help=(
                "Write the result in this format. [default: by the suffix of FILE, else"
                f" {forms[0]}]"
            ),
        )(function)
        return click.option(
            *(["-o"] if letter else []),
            "--output",
            default="-",
            callback=choose_output,
            metavar="FILE",
            help="Write the result to this file. [default: standard output]",
        )(function)

    return decorate


def report_output(*, letter: bool = True) -> Decorator:
    """Make -o/--output and --format of a command that writes a report."""
    first = ("text", "json", "yaml")
    others = [name for name in formats.names() if name not in first]
    return join_options(under_heading("Output"), output(*first, *others, letter=letter))


def _check_writable(file: str, option: str) -> None:
    """Refuse a file that cannot be written, before something is measured for it."""
    path = Path(file)
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    elif os.access(path if path.exists() else path.parent, os.W_OK) or file == "-":
        return
    else:
        reason = "permission denied"
    raise UsageError(f"{path} cannot be written: {reason}", hint=f"give another {option} FILE")
