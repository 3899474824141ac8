"""scaletest exporter: queue state as metrics and JSON for dashboards, HPA and KEDA."""

import logging
import signal
import sys

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.model import checks
from scaletest.model.desired_workers import Targets
from scaletest.model.masking import mask_passwords
from scaletest.model.time_slots import LONGEST_WINDOW_S, round_up_to_slots


@cloup.command("exporter")
@shared.under_heading("Target")
@shared.redis_url()
@shared.under_heading("Server")
@click.option(
    "--listen",
    default="127.0.0.1:9998",
    show_default=True,
    metavar="ADDR:PORT",
    help="Serve HTTP at this address.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help=(
        "Also accept this host name (IP addresses, localhost and cluster names always are); the"
        " option may be repeated."
    ),
)
@shared.under_heading("Autoscaling")
@shared.duration(
    "--window",
    default="60s",
    help="Compute maxima, rates and wanted workers over this time, which is 620s at most.",
)
@shared.duration(
    "--wait-target",
    default="30s",
    help="Ask for enough workers to process all waiting requests within this time.",
)
@click.option(
    "--utilisation",
    type=float,
    default=0.7,
    show_default=True,
    metavar="SHARE",
    help="Plan for workers that are busy this share of their time.",
)
@shared.under_heading("Output")
@click.option(
    "--intel-names",
    is_flag=True,
    help="Also serve metrics by the names hpa_* of the tester that scaletest replaces.",
)
@shared.duration(
    "--log-interval",
    default="0s",
    help=(
        "Log one line for each queue this often, rounded up to tens of seconds, at most every"
        " 620s; 0 logs none. The maxima of --intel-names are then of this time."
    ),
)
@shared.under_heading("Failures")
@shared.duration(
    "--heartbeat",
    default="5s",
    help="Put requests of dead workers back into their queue this often.",
)
@shared.max_attempts
@click.option(
    "--declare",
    type=(str, int, str),
    multiple=True,
    metavar="QUEUE MAXIMUM NOTE",
    help=(
        "Declare this queue whenever Redis does not know it, as after a restart without"
        " persistence; the option may be repeated."
    ),
)
@shared.call_with_groups
def command(
    *,
    redis_url: str,
    listen: str,
    allow_host: tuple[str, ...],
    window_s: float,
    wait_target_s: float,
    utilisation: float,
    intel_names: bool,
    log_interval_s: float,
    heartbeat_s: float,
    max_attempts: int,
    declare: tuple[tuple[str, int, str], ...],
) -> None:
    """Serve metrics of every declared queue, read from Redis at the moment they are asked for.

    \b
    scaletest exporter
    scaletest exporter --listen 0.0.0.0:9998 --wait-target 10s --utilisation 0.8
    scaletest exporter --declare sleep 0 'waits, and does nothing else'

    \b
    /metrics               for Prometheus, in its own format or OpenMetrics
    /api/v1/queues[/NAME]  JSON, as for the valueLocation desired_workers of KEDA
    /healthz /readyz       probes

    It also requeues the requests of dead workers, and drops those that dead clients left, so that
    nobody starts workers for them.
    """
    # what serves metrics takes a while to import, and --help needs none of it
    from scaletest.exporter.service import serve_exporter
    from scaletest.exporter.view import ViewReader, make_redeclare

    targets = Targets(utilisation, wait_target_s, window_s)
    checks.seconds(log_interval_s, "log interval", maximum=LONGEST_WINDOW_S)
    interval_s = checks.seconds(heartbeat_s, "heartbeat", maximum=600.0, zero=False)
    attempts = checks.count(max_attempts, "max attempts", minimum=1)
    logging.getLogger("scaletest.exporter").setLevel(logging.INFO)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    serve_exporter(
        ViewReader(redis_url, targets, interval_s=interval_s, max_attempts=attempts),
        listen,
        interval_s=interval_s,
        intel_names=intel_names,
        log_interval_s=round_up_to_slots(log_interval_s),
        then=[make_redeclare(redis_url, declare)] if declare else [],
        hosts=allow_host,
        ready=lambda url: echo(f"exporter of {mask_passwords(redis_url)} on {url}", err=True),
    )
