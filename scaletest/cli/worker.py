"""scaletest worker: serve one queue, take requests and run the workload.

With --once it runs one request without Redis, and shows its result and where its time went.
"""

import os
import signal
from contextlib import suppress
from types import FrameType

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli import workloads
from scaletest.cli.output import Output, show_messages
from scaletest.model.errors import UsageError
from scaletest_workers.settings import Serving, Settings

HELP = """
Take requests of one queue and run the workload: COMMAND with its arguments, transcode, torch,
fakedev, sleep, or a class or function of Python.

\b
scaletest worker --queue sleep
scaletest worker --queue media --device-glob '/dev/dri/renderD*' -- \\
  vainfo --display drm --device FILENAME
scaletest worker --queue media --preset intel --per-device 4 -- transcode \\
  --engine onevpl --input input.h265
scaletest worker --queue thumbs --workload thumbs.py:Thumbs -- --width 640
scaletest worker --once -- sleep 0.5

FILENAME in any argument becomes the path of the device. A request's own arguments are added at
the end. With --once what COMMAND writes goes to standard error.
"""


@cloup.command(
    "worker",
    cls=shared.ManyOptionsCommand,
    common="--queue --redis-url --workload --device-glob --preset --per-device --time-limit --once",
    help=HELP,
    epilog=(
        "The worker ends with 0 after SIGTERM or SIGINT: it takes nothing more and finishes what it"
        " runs. --once ends with 0, or with 5 when the request failed."
    ),
)
@shared.under_heading("Target")
@click.option(
    "--queue",
    metavar="NAME",
    default="sleep",
    show_default=True,
    help="Serve this queue, which must be declared.",
)
@shared.redis_url()
@shared.under_heading("Run")
@click.option("--burst", is_flag=True, help="Exit when the queue is empty.")
@click.option(
    "--once",
    is_flag=True,
    help="Run the workload once, without Redis, and say where its time went.",
)
@click.option(
    "--argument",
    multiple=True,
    metavar="ARG",
    help="With --once, give the request this argument; the option may be repeated.",
)
@shared.under_heading("Output")
@shared.output()
@shared.under_heading("Run")
@click.option(
    "--name",
    metavar="NAME",
    help="Name this worker. [default: host, process and a random part]",
)
@shared.under_heading("Failures")
@shared.duration(
    "--time-limit",
    default="0s",
    help=(
        "Stop a request that runs longer than this and has no limit of its own; 0 means no limit."
    ),
)
@shared.under_heading("Devices")
@click.option(
    "--device-glob",
    default="",
    metavar="GLOB",
    help="Use the devices whose files match this pattern, e.g. '/dev/dri/renderD*'.",
)
@shared.preset("Use the devices of this vendor, and set the environment that they need.")
@click.option(
    "--per-device",
    type=int,
    default=1,
    show_default=True,
    metavar="K",
    help="Run K workers per device.",
)
@click.option(
    "--device-index",
    type=int,
    metavar="N",
    help="Use the N-th matching device, modulo their number, without leasing a slot of it.",
)
@shared.under_heading("Program")
@click.option("--directory", default="", metavar="DIR", help="Run the program in this directory.")
@click.option("--null-input", is_flag=True, help="Give the program an empty standard input.")
@click.option("--null-output", is_flag=True, help="Discard what the program prints.")
@click.option(
    "--ignore-arguments",
    is_flag=True,
    help="Do not add the arguments of requests to those of the program.",
)
@click.option("--no-causes", is_flag=True, help="Do not sample where programs spend their time.")
@click.option("--sample-interval", type=shared.DURATION, default="1s", hidden=True)
@shared.under_heading("Program")
@click.option(
    "--allow-commands",
    is_flag=True,
    help=(
        "Let the documents of benchmarks name commands, arguments of tools, directories"
        " and objects of the cluster."
    ),
)
@shared.under_heading("Kubernetes")
@click.option(
    "--node-env",
    default="",
    metavar="NAME",
    help="Read the name of the node from this environment variable.",
)
@click.option(
    "--pod-env",
    default="",
    metavar="NAME",
    help="Read the name of the pod from this environment variable.",
)
@shared.under_heading("Failures")
@shared.duration(
    "--kill-grace",
    default="5s",
    help="At the time limit, give the program this long between SIGTERM and SIGKILL.",
)
@shared.duration(
    "--grace", default="30s", help="After SIGTERM, give the running request this long to finish."
)
@shared.duration("--heartbeat", default="5s", help="Send a heartbeat to Redis this often.")
@shared.max_attempts
@shared.under_heading("RQ")
@click.option(
    "--allow-function",
    multiple=True,
    metavar="PREFIX",
    help=("Also execute RQ jobs whose functions lie below PREFIX; the option may be repeated."),
)
@click.option(
    "--with-scheduler",
    is_flag=True,
    help=(
        "Also enqueue delayed, repeated and retried jobs of the queue when they are due. Of its"
        " workers with this option one does, by RQ's lock."
    ),
)
@shared.under_heading("Output")
@click.option("--log-messages", is_flag=True, help="Log every request and every reply.")
@shared.under_heading("Program")
@workloads.command_of_workers("[-- COMMAND ARG...]")
@shared.call_with_groups
def command(
    *,
    settings: Settings,
    serving: Serving,
    once: bool,
    argument: tuple[str, ...],
    output: Output,
) -> int:
    """Serve a queue, or run a single request."""
    if serving.log_messages:
        show_messages()
    if once:
        # sampling and reports take a while to import, and --help needs none of them
        from scaletest.cli import single_run

        return single_run.show_single_run(settings, argument, output)
    if any(map(shared.is_typed, ("argument", "form", "output"))):
        raise UsageError(
            "--argument, --format and --output need --once",
            hint="submit a request to the queue: scaletest queue submit NAME -- ARG...",
        )
    # until the worker has its own handlers there is nothing to drain
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit_at_once)
    # imports RQ and redis, which neither --help nor --once needs
    from scaletest.cli.serving import serve_and_report

    serve_and_report(serving, settings)
    return 0


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    """End with 0 at a signal, as its handler in a process that holds nothing yet.

    SystemExit could get lost: Python only prints what is raised in a finaliser, and every import
    runs one.
    """
    # the live row stands already, and hides the cursor
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\n\x1b[?25h")
    os._exit(0)
