"""The `scaletest` program: finds the command; errors become one line and an exit code."""

from __future__ import annotations

import errno
import importlib
import io
import os
import resource
import sys
import traceback
from collections.abc import Mapping
from typing import ClassVar

import click
from click.shell_completion import CompletionItem

from scaletest import __version__
from scaletest.cli import index, mistakes, settings
from scaletest.cli.headings import HeadedGroup
from scaletest.cli.output import echo, set_up
from scaletest.model.errors import ScaletestError, Unreachable, UsageError

# command -> (module, one line of help); the module is imported only when the command is called
COMMANDS = {
    "quick": ("quick", "Look for half a minute how a program scales, and what stops it."),
    "validate": ("validate", "Measure how throughput grows with workers, and judge it."),
    "saturate": ("saturate", "Find what load a service or a queue can take."),
    "size": ("size", "Tell how many pods and nodes a load needs."),
    "report": ("report", "Show a stored run: text, HTML, Markdown, CSV, JSON, JUnit."),
    "compare": ("compare", "Tell what changed between runs, and whether it is worse."),
    "runs": ("runs", "List, show, share and delete stored runs."),
    "ui": ("ui", "Show queues, workers, live and stored runs in a browser."),
    "config": ("config", "Write and show settings, and print the schemas of documents."),
    "worker": ("worker", "Serve one queue: take requests and run the workload."),
    "exporter": ("exporter", "Serve metrics of all queues, for Prometheus and KEDA."),
    "client": ("client", "Generate load, steer it, and watch it on a page."),
    "queue": ("queue", "Declare, look at, fill and empty queues."),
    "bench": ("bench", "Run network, storage and compute benchmarks, alone or as sweeps."),
    "devices": ("devices", "List the devices that workers would find here."),
    "autoscale": ("autoscale", "Simulate autoscaling rules, and find a good one."),
    "lifecycle": ("lifecycle", "Measure how fast a cluster brings workloads up."),
    "operator": ("operator", "Run benchmarks that are Kubernetes objects."),
    "cluster": ("cluster", "Work with a Kubernetes cluster."),
    "completion": ("completion", "Print the script that completes commands in a shell."),
    "version": ("help", "Print the version."),
    "help": ("help", "Show the help of a command."),
}

# No bug of ours: there is no room for what we write.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Nor this: a process may open too few files.
TOO_MANY_FILES = (errno.EMFILE, errno.ENFILE)
# Nor this: the path that we were given, or the user's own folders, cannot be used.
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)

# As a shell says of a program that SIGPIPE ended.
NOBODY_READS = 141

EXIT_CODES = """\b
Exit codes:
  0 PASS or done   3 FAIL              6 timed out
  1 a bug          4 INVALID           7 Redis or Kubernetes unreachable
  2 usage          5 requests failed   130, 143 interrupted twice
"""


# Set while a shell asks for completions.
COMPLETE = "_SCALETEST_COMPLETE"


class LazyGroup(HeadedGroup):
    """A group whose commands are imported when they are needed.

    table: module and one line of help, by the command's name; programs call those without help. In
    the module it is called `command`, or is found by its name.
    """

    table: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        return [name for name, (_, text) in self.table.items() if text]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in self.table:
            return None
        if COMPLETE in os.environ and ctx.parent is None and cmd_name in index.entries():
            return index.stand_in(cmd_name, index.entries()[cmd_name])
        module = importlib.import_module(f"scaletest.cli.{self.table[cmd_name][0]}")
        commands = [item for item in vars(module).values() if isinstance(item, click.Command)]
        return next(item for item in commands if item.name == cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first word; UsageError suggests the nearest for an unknown one."""
        if args[0] not in self.table and not args[0].startswith("-"):
            raise mistakes.unknown_command(args[0], self.list_commands(ctx))
        name, command, rest = super().resolve_command(ctx, args)
        if name and command and not isinstance(command, LazyGroup):
            ctx.default_map = {name: self._from_file(ctx, name, command, rest)}
        return name, command, rest

    def _from_file(
        self, ctx: click.Context, name: str, command: click.Command, rest: list[str]
    ) -> dict[str, object]:
        """The values of the settings file for a command. rest: the words behind its name."""
        route = (*ctx.command_path.split()[1:], name)
        if route[0] in settings.EXEMPT or not {"-h", "--help", "--help-all"}.isdisjoint(rest):
            return {}
        try:
            file = ctx.meta[settings.META] = settings.load()
            return settings.default_map(file, command, route)
        except UsageError:
            if ctx.resilient_parsing:  # a shell completes a line
                return {}
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without importing them."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.table[name][1]) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def summary(self, ctx: click.Context, name: str) -> str:
        """The line of help in the table: the command is not imported."""
        return self.table[name][1]


class ScaletestGroup(LazyGroup):
    """The commands of the program."""

    headings: ClassVar = {
        "Measure": ("quick", "validate", "saturate", "bench", "lifecycle"),
        "Look": ("report", "compare", "runs", "ui"),
        "Plan": ("size", "autoscale"),
        "Queues": ("queue", "worker", "client", "exporter"),
        "Kubernetes": ("cluster", "operator"),
        "Set up": ("config", "devices", "completion", "help", "version"),
    }


@click.group(
    cls=ScaletestGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": "SCALETEST",
        "max_content_width": 100,
    },
    epilog=EXIT_CODES,
)
@click.option("-v", "--verbose", is_flag=True, help="Log more, and show tracebacks.")
@click.version_option(__version__, prog_name="scaletest")
def cli(verbose: bool) -> None:
    """How far do device workloads scale, and what stops them?

    \b
    scaletest quick -- sleep 0.2                # a first answer in half a minute
    scaletest validate --local --seconds 0.5    # a verdict; every worker sleeps
    scaletest validate --limit 4 -- ffmpeg -i input.mp4 -f null -
    """
    set_up(verbose)


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    _discard_what_cannot_be_written()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the program; its exit code."""
    _accept_any_text()
    output = sys.stdout
    if COMPLETE in os.environ:
        # a shell completes a line: no warning may stand in it
        sys.stderr = io.StringIO()
    try:
        return _called(arguments)
    except BrokenPipeError:
        return NOBODY_READS
    except SystemExit as error:
        # rich and click (which then puts another stream there) end with 1, as a bug of ours would
        if isinstance(error.__context__, BrokenPipeError) or sys.stdout is not output:
            return NOBODY_READS
        raise
    except Exception as error:
        return _unexpected(error)


def _called(arguments: list[str]) -> int:
    """What the command returned. A ScaletestError is one line what, one line what to do."""
    try:
        returned: object = cli.main(args=arguments, prog_name="scaletest", standalone_mode=False)
        return returned if isinstance(returned, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        if (
            type(error).__name__ == "NoArgsIsHelpError"
        ):  # a group without a command, in newer clicks
            echo(error.format_message(), err=True)
            return error.exit_code
        return _explained(mistakes.explained(error, arguments))
    except (click.Abort, KeyboardInterrupt):
        echo("interrupted", err=True)
        return 130
    except ScaletestError as error:
        if _wants_traceback(arguments):
            echo(traceback.format_exc(), err=True)
        return _explained(error, _line_with_dashes(arguments, error))


def _explained(error: ScaletestError, line: str = "") -> int:
    """Say what happened and what to do; the exit code. line: a command line that may be meant."""
    echo(f"error: {error.message}", err=True)
    if error.hint:
        echo(f"  {error.hint}", err=True)
    if line:
        echo(f"  or put -- before your command: {line}", err=True)
    return error.exit_code


def _line_with_dashes(arguments: list[str], error: ScaletestError) -> str:
    """The command line with -- before the program whose options were read as ours; "" for none."""
    name = next((word for word in arguments if not word.startswith("-")), "")
    if not isinstance(error, UsageError) or name not in COMMANDS:
        return ""
    return mistakes.with_dashes(arguments, cli.get_command(click.Context(cli), name))


def _discard_what_cannot_be_written() -> None:
    """Let go of output that nobody reads or that finds no room. Python tries to write it once more
    when it ends, and would exit with 120.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed by whoever started us
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _accept_any_text() -> None:
    """A locale that lacks the sign ± or a letter of a foreign name is no reason to end."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _unexpected(error: Exception) -> int:
    """Explain what no command expects; the exit code."""
    if isinstance(error, OSError) and error.errno in FULL:
        return _explained(
            UsageError(f"{error.filename or 'the output'} cannot be written: {error.strerror}")
        )
    if isinstance(error, OSError) and error.errno in TOO_MANY_FILES:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return _explained(
            UsageError(f"too many open files: the limit is {most}", hint="raise it: ulimit -n 1024")
        )
    if isinstance(error, OSError) and error.errno in CLOSED and error.filename:
        return _explained(
            UsageError(
                f"{str(error.filename)[:200]} cannot be used: {error.strerror}",
                hint="look at the path and at the rights of its folders",
            )
        )
    unreachable = _as_unreachable(error)
    if unreachable is not None:
        return _explained(unreachable)
    echo(traceback.format_exc(), err=True)
    echo(f"error: {type(error).__name__}: {error}", err=True)
    echo("  this is a bug of scaletest: please report it with the lines above", err=True)
    return 1


def _as_unreachable(error: Exception) -> Unreachable | None:
    """The message for an error of Redis after we had connected; None for any other error."""
    broker = sys.modules.get("scaletest.broker.connection")
    if broker is None or not isinstance(error, broker.REDIS_ERRORS):
        return None
    if broker.is_full(error):
        return Unreachable(broker.FULL, hint=broker.REMEDY)
    hint = "start it again, or correct --redis-url (SCALETEST_REDIS_URL)"
    return Unreachable(f"Redis failed: {error}", hint=hint)


def _wants_traceback(arguments: list[str]) -> bool:
    is_verbose = not {"-v", "--verbose"}.isdisjoint(arguments[:1])
    return is_verbose or os.environ.get("SCALETEST_VERBOSE") in ("1", "true")
