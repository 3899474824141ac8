"""The `scaletest` program: finds the command; errors become one line and an exit code."""

import errno
import io
import os
import sys
import traceback

import click
import cloup
from click.core import ParameterSource

from scaletest import __version__
from scaletest.cli.lazy import LazyCommand, LazyGroup
from scaletest.cli.output import echo, is_verbose, set_up_logging
from scaletest.model.errors import ScaletestError, Unreachable, UsageError
from scaletest.model.wording import as_options

SECTIONS = (
    cloup.Section(
        "Measure",
        (
            LazyCommand(
                "quick",
                "Look for half a minute how a program scales, and what stops it.",
                "validation.commands.quick",
            ),
            LazyCommand(
                "validate",
                "Measure how throughput grows with workers, and judge it.",
                "validation.commands.validate",
            ),
            LazyCommand(
                "judge",
                "Judge how a service scales by the results of a load tool.",
                "validation.commands.judge",
            ),
            LazyCommand(
                "saturate",
                "Find what load a service or a queue can take.",
                "saturation.commands.saturate",
            ),
            LazyCommand(
                "bench",
                "Run network, storage and compute benchmarks, alone or as sweeps.",
                "benchmarks.commands.bench",
            ),
            LazyCommand(
                "lifecycle",
                "Measure how fast a cluster brings workloads up.",
                "lifecycle.commands.lifecycle",
            ),
        ),
    ),
    cloup.Section(
        "Look",
        (
            LazyCommand("report", "Show a stored run: text, HTML, Markdown, CSV, JSON, JUnit."),
            LazyCommand("compare", "Show what changed between runs, and whether it got worse."),
            LazyCommand("runs", "List, follow, label and delete stored runs."),
            LazyCommand("ui", "Show queues, workers, live and stored runs in a browser."),
        ),
    ),
    cloup.Section(
        "Plan",
        (
            LazyCommand(
                "size", "Calculate how many pods and nodes a load needs.", "capacity.commands.size"
            ),
            LazyCommand(
                "autoscale",
                "Simulate autoscaling rules, and find a good one.",
                "capacity.commands.autoscale",
            ),
        ),
    ),
    cloup.Section(
        "Queues",
        (
            LazyCommand("queue", "Declare, look at, fill and empty queues."),
            LazyCommand("worker", "Serve one queue: take requests and run the workload."),
            LazyCommand("client", "Generate load, steer it, and watch it on a page."),
            LazyCommand("exporter", "Serve metrics of all queues, for Prometheus and KEDA."),
        ),
    ),
    cloup.Section(
        "Kubernetes",
        (
            LazyCommand("cluster", "Work with a Kubernetes cluster."),
            LazyCommand(
                "operator",
                "Run benchmarks that are Kubernetes objects.",
                "benchmarks.commands.operator",
            ),
        ),
    ),
    cloup.Section(
        "Set up",
        (
            LazyCommand("devices", "List the devices that workers would find here."),
            LazyCommand("schema", "Print the JSON Schema of a document."),
            LazyCommand("help", "Print a guide, such as how to share a GPU."),
        ),
    ),
)

# Errors of the system that are no bug: a path that cannot be used, no room, too many open files.
NO_BUGS = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE),
)

# As a shell says of a program that SIGPIPE ended.
NOBODY_READS = 141

HELP = """
How far do device workloads scale, and what stops them?

\b
scaletest quick -- sleep 0.2                # a first answer in half a minute
scaletest validate --local --seconds 0.5    # a verdict; every worker sleeps
scaletest validate --limit 4 -- ffmpeg -i input.mp4 -f null -
"""

EXIT_CODES = """\b
Exit codes:
  0 PASS or done   3 FAIL              6 timed out
  1 a bug          4 INVALID           7 Redis or Kubernetes unreachable
  2 usage          5 requests failed   130, 143 interrupted twice
"""


@cloup.group(
    cls=LazyGroup,
    sections=SECTIONS,
    context_settings=cloup.Context.settings(
        help_option_names=["-h", "--help"],
        auto_envvar_prefix="SCALETEST",
        max_content_width=100,
    ),
    help=HELP,
    epilog=EXIT_CODES,
)
@click.option("-v", "--verbose", is_flag=True, help="Log more, and show tracebacks.")
@click.version_option(__version__, prog_name="scaletest")
def cli(verbose: bool) -> None:
    """Prepare logs for the command that is called."""
    set_up_logging(verbose)


def main(arguments: list[str] | None = None) -> None:
    """Run the program with these arguments, or those of the process, and end the process."""
    code = run(sys.argv[1:] if arguments is None else arguments)
    # Let go of output that nobody reads or that finds no room. Python tries to write it once more
    # when it ends, and would exit with 120.
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # closed by whoever started us
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run the program; return its exit code."""
    # a locale that lacks the sign ± or a letter of a foreign name is no reason to end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    output = sys.stdout
    try:
        return _call_command(arguments)
    except BrokenPipeError:
        return NOBODY_READS
    except SystemExit as error:
        # rich and click (which then puts another stream there) end with 1, as a bug of ours would
        if isinstance(error.__context__, BrokenPipeError) or sys.stdout is not output:
            return NOBODY_READS
        raise
    except Exception as error:
        return _print_unexpected(error)


def _call_command(arguments: list[str]) -> int:
    """Call the command, and return its exit code; print errors that are no bugs."""
    try:
        returned: object = cli.main(args=arguments, prog_name="scaletest", standalone_mode=False)
        return returned if isinstance(returned, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:  # a group without a command
        echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        return _print_error(_to_usage_error(error))
    except (click.Abort, KeyboardInterrupt):
        echo("interrupted", err=True)
        return 130
    except ScaletestError as error:
        if is_verbose():
            echo(traceback.format_exc(), err=True)
        return _print_error(error)


def _print_error(error: ScaletestError) -> int:
    """Print what happened and what to do, a line each; return the exit code."""
    echo(as_options(f"error: {error.message}"), err=True)
    if error.hint:
        echo(as_options(f"  {error.hint}"), err=True)
    return error.exit_code


def _to_usage_error(error: click.ClickException) -> UsageError:
    """Turn a mistake that click found into an error of ours: what it is, and what to do."""
    message = error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"see: {context.command_path} --help" if context is not None else ""
    match error:
        case (
            click.NoSuchOption(possibilities=[name, *_])
            | click.NoSuchCommand(possibilities=[name, *_])
        ):
            message = error.message
            hint = f"did you mean {name}?"
        case click.NoSuchOption() if context is not None:
            if any("-- COMMAND" in str(option.metavar) for option in context.command.params):
                hint = (
                    "put -- before your command, if the option is one of its own:"
                    f" {context.command_path} -- COMMAND"
                )
        case click.BadParameter(param=click.Parameter(name=str(name))) if context is not None:
            if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                hint = "correct it in the plan file of -f"
    return UsageError(message[:1].lower() + message[1:].removesuffix("."), hint=hint)


def _print_unexpected(error: Exception) -> int:
    """Explain an error that no command expects, most often a bug; return the exit code."""
    if isinstance(error, OSError) and error.errno in NO_BUGS:
        subject = str(error.filename or "the output")[:200]
        hint = "check its permissions, the room on its disk, and ulimit -n"
        return _print_error(UsageError(f"{subject} cannot be used: {error.strerror}", hint=hint))
    # Redis failed after we had connected; a command that imported no broker did not use it
    broker = sys.modules.get("scaletest.broker.redis_errors")
    if broker is not None and isinstance(error, broker.REDIS_ERRORS):
        if broker.is_full(error):
            return _print_error(Unreachable(broker.FULL, hint=broker.REMEDY))
        hint = "start it again, or correct --redis-url (SCALETEST_REDIS_URL)"
        return _print_error(Unreachable(f"Redis failed: {error}", hint=hint))
    echo(traceback.format_exc(), err=True)
    echo(f"error: {type(error).__name__}: {error}", err=True)
    echo("  this is a bug of scaletest: please report it with the lines above", err=True)
    return 1
