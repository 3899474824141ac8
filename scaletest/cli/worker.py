"""scaletest worker: serve one queue, take requests and run the workload.

With --once it runs one request without Redis, and shows its result and where its time went.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import click

from scaletest.cli import before_run, complete
from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo, show_messages
from scaletest.model import Outcome
from scaletest.model.errors import UsageError
from scaletest.render.numbers import seconds
from scaletest.report import words
from scaletest.system.devices.metrics import device_warnings
from scaletest.system.visibility import visibility
from workers.runtime import Serving, Settings, SingleRun, run_once

FAILED = 5


@click.command(
    "worker",
    epilog=(
        "The worker ends with 0 after SIGTERM or SIGINT: it takes nothing more and finishes what it"
        " runs. --once ends with 0, or with 5 when the request failed."
    ),
)
@click.option(
    "--queue",
    shell_complete=complete.queues,
    default="sleep",
    show_default=True,
    help="The queue to serve; it must be declared.",
)
@shared.redis_url()
@click.option("--burst", is_flag=True, help="Exit when the queue is empty.")
@click.option(
    "--once",
    is_flag=True,
    help="Run the workload once, without Redis, and say where its time went.",
)
@shared.output()
@click.option("--name", help="Name of this worker. [default: host, process and a random part]")
@shared.duration("--time-limit", default="0s", help="Default limit of a request; 0: none.")
@click.option(
    "--device-glob",
    default="",
    metavar="GLOB",
    help="Pattern of device files, as in '/dev/dri/renderD*'.",
)
@shared.preset("Devices, and their environment, of one vendor.")
@click.option(
    "--per-device",
    type=int,
    default=1,
    show_default=True,
    metavar="K",
    help="Workers that may share one device.",
)
@click.option(
    "--device-policy",
    type=click.Choice(["first", "balanced", "packed"]),
    default="balanced",
    show_default=True,
    help="The first device with a free slot, the least used, or the most used.",
)
@shared.duration(
    "--device-wait", help="How long to wait for a free slot. [default: 4.5 heartbeats]"
)
@click.option(
    "--device-index",
    type=int,
    metavar="N",
    help="Use the N-th matching device, counting round, and lease no slot.",
)
@click.option("--directory", default="", metavar="DIR", help="Work directory of the program.")
@click.option("--null-input", is_flag=True, help="Give the program no input.")
@click.option("--null-output", is_flag=True, help="Discard the program's output.")
@click.option(
    "--ignore-arguments", is_flag=True, help="Do not add the requests' arguments to the program's."
)
@click.option("--no-causes", is_flag=True, help="Do not sample where programs spend their time.")
@shared.device_metrics_url("Read this node's devices also from an exporter of Prometheus metrics.")
@click.option(
    "--allow-commands",
    is_flag=True,
    help=(
        "Let a benchmark's document name commands, arguments of tools, directories and objects of"
        " the cluster."
    ),
)
@click.option(
    "--node-env",
    default="",
    metavar="NAME",
    help="Environment variable that holds the node's name.",
)
@click.option(
    "--pod-env", default="", metavar="NAME", help="Environment variable that holds the pod's name."
)
@shared.duration("--kill-grace", default="5s", help="Time from TERM to KILL at the time limit.")
@shared.duration("--grace", default="30s", help="Time to finish a request after SIGTERM.")
@shared.duration("--heartbeat", default="5s", help="Interval of heartbeats.")
@click.option(
    "--max-attempts",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    help="Attempts before a lost request fails.",
)
@click.option(
    "--allow-function",
    multiple=True,
    metavar="PREFIX",
    help="Also execute RQ jobs of functions below PREFIX.",
)
@click.option(
    "--no-rq-commands",
    is_flag=True,
    help="Ignore commands of RQ's tools, for one connection to Redis less.",
)
@click.option("--log-messages", is_flag=True, help="Log every request and reply.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARG...]")
@shared.grouped
def command(settings: Settings, serving: Serving, once: bool, output: Output) -> int:
    """Take requests of one queue and run the workload: COMMAND with its arguments, transcode,
    torch, fakedev, or sleep.

    \b
    scaletest worker --queue sleep
    scaletest worker --queue q --device-glob '/dev/dri/renderD*' -- COMMAND --device FILENAME
    scaletest worker --queue media --preset intel --per-device 4 -- transcode \\
      --engine onevpl --input FILE
    scaletest worker --once -- COMMAND ARG...

    FILENAME in any argument becomes the path of the device. A request's own arguments are added at
    the end. With --once what COMMAND writes goes to standard error.
    """
    if serving.log_messages:
        show_messages()
    if once:
        return _once(settings, output)
    if shared.is_typed("form") or shared.is_typed("output"):
        raise UsageError(
            "--format and --output are for --once",
            hint="add --once; a worker that serves a queue prints no result",
        )
    before_run.check_program(settings.command, settings.program)
    if settings.devices.device_index is not None:
        # who leases a slot looks at its device then
        before_run.check_devices(settings.devices, None)
    return _serve(settings, serving)


def _once(settings: Settings, output: Output) -> int:
    """Run the workload once as a worker does; print the result. 0, or 5 when it failed."""
    for line in device_warnings("" if settings.no_causes else settings.device_metrics_url):
        echo(f"warning: {line}", err=True)
    run = run_once(settings)
    output.show(run.to_dict(), _lines(run))
    return 0 if run.result.outcome is Outcome.SUCCEEDED else FAILED


def _lines(run: SingleRun) -> Iterator[str]:
    result = run.result
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    yield f"{result.outcome.value.replace('_', ' ')} after {seconds(run.run_s)}{code}"
    # a benchmark's framed result is for programs
    figures = {name: value for name, value in result.figures.items() if name != "result"}
    for name, value in {"error": result.error, "device": result.device, **figures}.items():
        if name in figures or value:
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            yield words.fact(name, shown)
    if result.activity is None:
        yield "where the time went is not known: nothing was sampled"
    else:
        yield from words.summary(result.activity, run.run_s, run.own_memory)


def _serve(settings: Settings, serving: Serving) -> int:
    # until the worker has its own handlers there is nothing to drain
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    if "KUBERNETES_SERVICE_HOST" in os.environ and not settings.no_causes:
        # `scaletest cluster check` reads it there
        echo(visibility().to_line(), err=True)
    # imports RQ and redis, which neither --help nor --once needs
    from scaletest.cli.serving import serve_shown

    serve_shown(serving, settings)
    return 0
