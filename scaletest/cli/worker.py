"""scaletest worker: serve one queue, or run the workload once without Redis."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import uuid
from dataclasses import dataclass

import click
from click.core import ParameterSource

from scaletest.cli import logs
from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.cli.worker_once import once
from scaletest.model import checks
from scaletest.model.errors import UsageError
from scaletest.model.presets import PRESETS
from scaletest.system.visibility import visibility
from workers.runtime import Settings


@dataclass(frozen=True, slots=True)
class WorkerCommandOptions:
    """The queue to serve, the workload that it runs, and how the worker behaves."""

    queue: str
    redis_url: str
    burst: bool
    once: bool
    form: str
    name: str | None
    time_limit: float
    device_glob: str
    preset: str | None
    per_device: int
    device_policy: str
    device_wait: float | None
    device_index: int | None
    directory: str
    null_input: bool
    null_output: bool
    ignore_arguments: bool
    no_causes: bool
    device_metrics_url: str
    allow_commands: bool
    node_env: str
    pod_env: str
    kill_grace: float
    grace: float
    heartbeat: float
    max_attempts: int
    allow_function: tuple[str, ...]
    no_rq_commands: bool
    log_messages: bool
    arguments: tuple[str, ...]


@click.command(
    "worker",
    epilog=(
        "The worker ends with 0 after SIGTERM or SIGINT: it takes nothing more and finishes what it"
        " runs. --once ends with 0, or with 5 when the request failed."
    ),
)
@click.option(
    "--queue", default="sleep", show_default=True, help="The queue to serve; it must be declared."
)
@shared.redis_url()
@click.option("--burst", is_flag=True, help="Exit when the queue is empty.")
@click.option(
    "--once",
    is_flag=True,
    help="Run the workload once, without Redis, and say where its time went.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of what --once prints on standard output.",
)
@click.option("--name", help="Name of this worker. [default: host, process and a random part]")
@click.option(
    "--time-limit",
    type=float,
    default=0.0,
    metavar="S",
    help="Default limit of a request; 0: none.",
)
@click.option(
    "--device-glob",
    default="",
    metavar="GLOB",
    help="Pattern of device files, as in '/dev/dri/renderD*'.",
)
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="Devices, and their environment, of one vendor.",
)
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
@click.option(
    "--device-wait",
    type=float,
    metavar="S",
    help="How long to wait for a free slot. [default: 4.5 heartbeats]",
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
@click.option(
    "--kill-grace",
    type=float,
    default=5.0,
    show_default=True,
    metavar="S",
    help="Seconds from TERM to KILL at the time limit.",
)
@click.option(
    "--grace",
    type=float,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds to finish a request after SIGTERM.",
)
@click.option(
    "--heartbeat",
    type=float,
    default=5.0,
    show_default=True,
    metavar="S",
    help="Interval of heartbeats.",
)
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
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND ARG...]")
@shared.typed(WorkerCommandOptions)
def command(options: WorkerCommandOptions) -> int:
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
    if options.log_messages:
        logs.messages()
    if options.once:
        return once(_settings(options), options.form)
    context = click.get_current_context()
    if context.get_parameter_source("form") is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--format is for --once",
            hint="add --once; a worker that serves a queue prints no result",
        )
    return _serve(options)


def _settings(options: WorkerCommandOptions) -> Settings:
    return Settings(
        command=options.arguments,
        time_limit_s=options.time_limit,
        device_glob=options.device_glob,
        device_index=options.device_index,
        preset=options.preset or "",
        device_policy=options.device_policy,
        per_device=options.per_device,
        directory=options.directory,
        null_input=options.null_input,
        null_output=options.null_output,
        ignore_arguments=options.ignore_arguments,
        allow_commands=options.allow_commands,
        kill_grace_s=options.kill_grace,
        no_causes=options.no_causes,
        device_metrics_url=options.device_metrics_url,
        node_variable=options.node_env,
        pod_variable=options.pod_env,
    )


def _serve(options: WorkerCommandOptions) -> int:
    # until the worker has its own handlers there is nothing to drain
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    name = options.name or f"{_safe(socket.gethostname())}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    checks.worker_name(name)
    interval_s = checks.seconds(options.heartbeat, "heartbeat", maximum=600.0, zero=False)
    attempts = checks.count(options.max_attempts, "max attempts", minimum=1)
    grace_s = checks.seconds(options.grace, "grace")
    device_wait_s = options.device_wait
    if device_wait_s is not None:
        checks.seconds(device_wait_s, "device wait")
    settings = _settings(options)
    if "KUBERNETES_SERVICE_HOST" in os.environ and not settings.no_causes:
        # `scaletest cluster check` reads it there
        echo(visibility().to_line(), err=True)
    # imports RQ and redis, which neither --help nor --once needs
    from workers.serving import serve

    serve(
        options.queue,
        options.redis_url,
        name,
        settings,
        allow_functions=options.allow_function,
        interval_s=interval_s,
        max_attempts=attempts,
        grace_s=grace_s,
        device_wait_s=device_wait_s,
        log_messages=options.log_messages,
        rq_commands=not options.no_rq_commands,
        burst=options.burst,
        logging_level="INFO" if logs.is_verbose() else "WARNING",
    )
    return 0


def _safe(host: str) -> str:
    return re.sub(r"[^\w.-]", "-", host)[:60].lstrip("._-") or "worker"
