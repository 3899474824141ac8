"""scaletest worker: serve one queue, or run the workload once without Redis."""

from __future__ import annotations

import os
import signal
import socket
import sys
import uuid
from typing import Any

import click
from click.core import ParameterSource

from scaletest.cli import logs, options
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError
from scaletest.model.presets import PRESETS


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
@options.redis_url()
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
@options.device_metrics_url("Read this node's devices also from an exporter of Prometheus metrics.")
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
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> int:
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
    if given["log_messages"]:
        logs.messages()
    if given["once"]:
        from scaletest.cli.worker_once import once

        return once(_settings(given), given["form"])
    if ctx.get_parameter_source("form") is ParameterSource.COMMANDLINE:
        raise UsageError(
            "--format is for --once",
            hint="add --once; a worker that serves a queue prints no result",
        )
    return _serve(given, ctx.obj["verbose"])


def _settings(given: dict[str, Any]) -> Any:
    from workers.runtime import Settings

    return Settings(
        command=given["arguments"],
        time_limit_s=given["time_limit"],
        device_glob=given["device_glob"],
        device_index=given["device_index"],
        preset=given["preset"] or "",
        device_policy=given["device_policy"],
        per_device=given["per_device"],
        directory=given["directory"],
        null_input=given["null_input"],
        null_output=given["null_output"],
        ignore_arguments=given["ignore_arguments"],
        allow_commands=given["allow_commands"],
        kill_grace_s=given["kill_grace"],
        no_causes=given["no_causes"],
        device_metrics_url=given["device_metrics_url"],
        node_variable=given["node_env"],
        pod_variable=given["pod_env"],
    )


def _serve(given: dict[str, Any], verbose: bool) -> int:
    from scaletest.broker import Queues, connect
    from scaletest.broker.retry import Retrying
    from scaletest.model import checks
    from scaletest.model.errors import InvalidValue
    from workers.worker import Worker

    # until the worker has its own handlers there is nothing to drain
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    name = given["name"] or f"{_safe(socket.gethostname())}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    checks.worker_name(name)
    behaviour = _behaviour(given)
    settings = _settings(given)
    redis = connect(given["redis_url"])

    def make() -> Worker:
        Queues(redis).require(given["queue"])
        return Worker(
            [given["queue"]],
            name=name,
            connection=redis,
            settings=settings,
            **behaviour,
        )

    if "KUBERNETES_SERVICE_HOST" in os.environ and not settings.no_causes:
        from scaletest.system.visibility import visibility

        # `scaletest cluster check` reads it there
        echo(visibility().to_line(), err=True)
    worker = Retrying(f"worker {name}").run(make)
    try:
        worker.work(burst=given["burst"], logging_level="INFO" if verbose else "WARNING")
    except ValueError as error:
        if "active worker named" not in str(error):
            raise
        raise InvalidValue(
            f"a worker named {name} lives already", hint="give another --name"
        ) from error
    return 0


def _behaviour(given: dict[str, Any]) -> dict[str, Any]:
    """How the worker behaves, whatever it runs. InvalidValue for what cannot be."""
    from scaletest.model import checks

    wait = given["device_wait"]
    return {
        "allow_functions": given["allow_function"],
        "interval_s": checks.seconds(given["heartbeat"], "heartbeat", maximum=600.0, zero=False),
        "max_attempts": checks.count(given["max_attempts"], "max attempts", minimum=1),
        "grace_s": checks.seconds(given["grace"], "grace"),
        "log_messages": given["log_messages"],
        "rq_commands": not given["no_rq_commands"],
        "device_wait_s": None if wait is None else checks.seconds(wait, "device wait"),
    }


def _safe(host: str) -> str:
    return (
        "".join(c if c.isalnum() or c in "._-" else "-" for c in host)[:60].lstrip("._-")
        or "worker"
    )
