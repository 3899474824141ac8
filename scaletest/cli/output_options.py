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
        form = context.meta["form"]
        path = Path(file)
        suffix = path.suffix
        if not form:
            form = formats.form_of(path) if suffix else forms[0]
            if suffix and form not in forms:
                raise UsageError(
                    f"{file}: unsupported output format {suffix.lower()}",
                    hint=f"give another FILE, or --format {' or '.join(forms)}",
                )
        # said before something is measured for it
        is_writable = os.access(path if path.exists() else path.parent, os.W_OK)
        if file != "-" and (path.is_dir() or not is_writable):
            raise UsageError(
                f"{path} cannot be written", hint=f"give another {option.opts[0]} FILE"
            )
        return Output(path, form)

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
