"""scaletest exporter: queue state as metrics and JSON for dashboards, HPA and KEDA."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import click

from scaletest.analysis.desired_workers import Targets
from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.cluster.deletion import DeletionCosts, costs
from scaletest.cluster.pod_annotations import PodAnnotations
from scaletest.exporter.reader import ViewReader
from scaletest.exporter.redeclare import Redeclare
from scaletest.exporter.service import serve
from scaletest.exporter.view import ExporterView
from scaletest.model import checks
from scaletest.model.secrets import masked
from scaletest.model.time_slots import LONGEST_WINDOW_S


@dataclass(frozen=True, slots=True)
class ExporterOptions:
    """Where metrics are served, and how they are made. Times are in seconds.

    declare: name, maximum and note of queues.
    """

    redis_url: str
    listen: str
    allow_host: tuple[str, ...]
    window: float
    wait_target: float
    utilisation: float
    intel_names: bool
    log_interval: int
    heartbeat: float
    max_attempts: int
    declare: tuple[tuple[str, int, str], ...]
    deletion_cost: bool
    namespace: str


@click.command("exporter")
@shared.redis_url()
@click.option(
    "--listen",
    default="127.0.0.1:9998",
    show_default=True,
    metavar="ADDR:PORT",
    help="Where to serve HTTP.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help=(
        "A further host name under which it answers, beside addresses, localhost and names of the"
        " cluster."
    ),
)
@click.option(
    "--window",
    type=float,
    default=60.0,
    show_default=True,
    metavar="S",
    help="Maxima, rates and wanted workers are those of the last S seconds; 620 at most.",
)
@click.option(
    "--wait-target",
    type=float,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Want enough workers to process all waiting requests within S seconds.",
)
@click.option(
    "--utilisation",
    type=float,
    default=0.7,
    show_default=True,
    metavar="SHARE",
    help="Want workers to be busy this share of time.",
)
@click.option(
    "--intel-names", is_flag=True, help="Also give the metrics of the original tester, hpa_*."
)
@click.option(
    "--log-interval",
    type=int,
    default=0,
    show_default=True,
    metavar="S",
    help=(
        "Log one line a queue every S seconds, 620 at most; 0: none. Maxima of --intel-names are of"
        " S, in tens, then."
    ),
)
@click.option(
    "--heartbeat",
    type=float,
    default=5.0,
    show_default=True,
    metavar="S",
    help="Interval at which requests of dead workers are put back.",
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
    "--declare",
    type=(str, int, str),
    multiple=True,
    metavar="QUEUE MAXIMUM NOTE",
    help=(
        "Declare this queue whenever Redis does not know it, as after a restart without"
        " persistence. Repeatable."
    ),
)
@click.option(
    "--deletion-cost", is_flag=True, help="Also do what scaletest cluster deletion-cost does."
)
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    help="Namespace of the workers' pods. [default: the current one]",
)
@shared.typed(ExporterOptions)
def command(options: ExporterOptions) -> int:
    """Serve metrics of every declared queue, read from Redis at the moment they are asked for.

    \b
    /metrics               for Prometheus, in its own format or OpenMetrics
    /api/v1/queues[/NAME]  JSON, as for KEDA's metrics-api scaler: valueLocation desired_workers
    /healthz /readyz /     probes, and a page

    It also gives back what dead workers held, so that a queue whose workers all died is not
    forgotten, and drops what dead clients left, so that nobody starts workers for them.
    """
    targets = Targets(options.utilisation, options.wait_target, options.window)
    checks.count(options.log_interval, "log interval", maximum=int(LONGEST_WINDOW_S))
    interval_s = checks.seconds(options.heartbeat, "heartbeat", maximum=600.0, zero=False)
    attempts = checks.count(options.max_attempts, "max attempts", minimum=1)
    then: list[Callable[[ExporterView], None]] = []
    if options.declare:
        then.append(Redeclare(options.redis_url, options.declare))
    if options.deletion_cost:
        then.append(_deletion_costs(options.namespace))
    logging.getLogger("scaletest.exporter").setLevel(logging.INFO)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    serve(
        ViewReader(options.redis_url, targets, interval_s=interval_s, max_attempts=attempts),
        options.listen,
        interval_s=interval_s,
        intel_names=options.intel_names,
        log_interval_s=options.log_interval,
        then=then,
        hosts=options.allow_host,
        ready=lambda url: echo(f"exporter of {masked(options.redis_url)} on {url}", err=True),
    )
    return 0


def _deletion_costs(namespace: str) -> Callable[[ExporterView], None]:
    keeper = DeletionCosts(PodAnnotations(namespace))

    def act(view: ExporterView) -> None:
        keeper.update(costs(chain.from_iterable(row.queue.workers for row in view.queues)))

    return act
