"""scaletest client: load that can be steered, and statistics that can be watched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack

import click

from scaletest.broker import Client, Queues, connect
from scaletest.broker.connection import explained, prepare
from scaletest.broker.samples import SampleReader
from scaletest.cli import complete
from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo, live_rows, show_messages
from scaletest.http.server import Server, bind
from scaletest.load import LoadSnapshot, Statistics
from scaletest.load.steering import CLOSED_MAXIMUM, OPEN_MAXIMUM, OfferedLoad
from scaletest.model import NodeSample, checks
from scaletest.model.errors import InvalidValue
from scaletest.model.texts import masked, short
from scaletest.pages.security import HEADERS, HttpCounts
from scaletest.pages.site import checked
from scaletest.render.numbers import seconds
from scaletest.report import words
from scaletest.runs.stopping import StopRequest, stopping
from scaletest.web import text
from scaletest.web.app import make_app

SWITCH_S = 0.001
# For one answer of Redis. A client that is told to end must do so before Kubernetes kills it.
REDIS_TIMEOUT_S = 5.0


@click.command(
    "client",
    epilog=(
        "SIGTERM or Ctrl-C once submits nothing more, waits for what is in flight and prints the"
        " statistics; twice ends now. Exit code 5 when a load that ends by itself had failed or"
        " unanswered requests."
    ),
)
@click.option(
    "--queue",
    shell_complete=complete.queues,
    default="sleep",
    show_default=True,
    help="The queue to load; it must be declared.",
)
@shared.redis_url()
@click.option("--parallel", type=int, metavar="N", help="Requests to keep in flight. [default: 1]")
@click.option(
    "--max-parallel",
    type=int,
    metavar="M",
    help=f"Most requests in flight. [default: {CLOSED_MAXIMUM}; open load: {OPEN_MAXIMUM}]",
)
@shared.duration("--time-limit", default="0s", help="Limit of one request; 0: none.")
@shared.duration("--delay", default="0s", help="Time from a reply to the next request.")
@click.option(
    "--rate", type=shared.RATE, metavar="RATE", help="Open load: so many requests, evenly."
)
@click.option(
    "--poisson", type=shared.RATE, metavar="RATE", help="Open load: so many requests, at random."
)
@click.option("--seed", type=int, metavar="N", help="Seed of --poisson, for the same times again.")
@click.option(
    "--steps",
    metavar="RATE:TIME,...",
    help="Open load: requests at this rate for this time, then the next.",
)
@click.option("--schedule", metavar="FILE", help="Open load: start times in seconds, one a line.")
@click.option(
    "--batch",
    type=int,
    metavar="N",
    help="Submit N requests at once, wait until all are done, and end.",
)
@shared.duration("--duration", default="0s", help="End after this long; 0: never.")
@shared.duration(
    "--grace", default="30s", help="How long to wait for requests in flight at the end."
)
@click.option(
    "--listen",
    default="127.0.0.1:9996",
    show_default=True,
    metavar="ADDR:PORT",
    help="Where to serve page, statistics and metrics; 'none' for nowhere.",
)
@click.option(
    "--prefix",
    default="",
    metavar="PATH",
    help="Path below which a proxy shows the page, as in /tester.",
)
@click.option(
    "--token",
    default="",
    metavar="TEXT",
    help="Token to control the client over HTTP. Better set the variable SCALETEST_CLIENT_TOKEN.",
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="A further host name under which it answers without a token, as in client.validation.",
)
@click.option(
    "--ui-url",
    default="",
    metavar="URL",
    help="Where scaletest ui is shown; the page then links to its page of the queue.",
)
@click.option(
    "--keep-records",
    type=int,
    default=10_000,
    show_default=True,
    metavar="N",
    help="Last records to keep for download.",
)
@click.option("--log-messages", is_flag=True, help="Log every request and reply.")
@shared.output()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARG...]")
@shared.grouped
def command(
    load: OfferedLoad,
    redis_url: str,
    grace_s: float,
    listen: str,
    prefix: str,
    token: str,
    allow_host: tuple[str, ...],
    ui_url: str,
    keep_records: int,
    output: Output,
) -> int:
    """Keep requests in flight, or follow a schedule, and show what comes back.

    \b
    scaletest client --queue sleep --parallel 4 -- 0.5     and open http://127.0.0.1:9996/
    scaletest client --queue q --steps 10/s:60s,20/s:60s
    scaletest client --queue q --batch 1000 --listen none

    ARG... are added to the workload's own arguments; for sleep it is the number of seconds.
    """
    if load.log_messages:
        show_messages()
    checks.seconds(grace_s, "grace")
    checks.count(keep_records, "keep records", maximum=1_000_000)
    if ui_url and not ui_url.startswith(("http://", "https://")):
        raise InvalidValue(f"--ui-url is {ui_url!r}", hint="write it as in http://127.0.0.1:9995")
    starts = load.pace()
    with connect(redis_url) as redis:
        Queues(redis).require(load.queue)
    statistics, counts = Statistics(load.queue, keep=keep_records), HttpCounts()
    stop = StopRequest()
    # everything that must be taken down at the end lives in this stack, in order of setup
    with stopping(stop, unwind=False) as stack:
        client = stack.enter_context(Client(connect(redis_url, socket_timeout_s=REDIS_TIMEOUT_S)))
        # before a request is submitted: open load begins when it is created
        checked(prefix, allow_host)
        bound = None if listen == "none" else bind(listen)
        steering = load.begin(client, statistics, starts)
        stack.callback(steering.loop.close, patient=False)
        server = None
        if bound is not None:
            # the loop wants the interpreter back sooner than after the usual 5 ms, each time a page
            # is being made
            sys.setswitchinterval(SWITCH_S)
            app = make_app(
                steering,
                counts,
                token=token,
                prefix=prefix,
                hosts=allow_host,
                samples=_samples(stack, redis_url, load.queue),
                ui_url=ui_url,
            )
            server = Server(app, bound, headers=HEADERS, refused=counts.count)
            stack.callback(server.close)
        page = f"; page and statistics at {server.url}/" if server else ""
        echo(f"queue {load.queue} of {masked(redis_url)}, load: {load}{page}", err=True)
        try:
            with live_rows(lambda: [_row(statistics.snapshot())], per_s=1):
                drained = load.run(steering, stop.wake, grace_s)
        finally:
            _show(statistics, counts, output)
        if not drained:
            echo(
                f"{steering.loop.in_flight} requests had no reply after {grace_s:g} s; dropped",
                err=True,
            )
        if overdue := steering.loop.overdue:
            echo(
                f"{overdue} requests were due and never submitted: the load was too high", err=True
            )
        whole = drained and not statistics.snapshot().failed
        return 0 if whole or not load.is_finite or stop.asked() else 5


def _samples(
    stack: ExitStack, redis_url: str, queue: str
) -> Callable[[str], tuple[str, list[NodeSample]]]:
    """A function that reads the samples of a queue's nodes after a position, and the new one."""
    # of its own, opened on demand: the load's connection must not wait
    redis = prepare(redis_url, socket_timeout_s=REDIS_TIMEOUT_S)
    stack.callback(redis.close)

    def after(position: str) -> tuple[str, list[NodeSample]]:
        with explained(redis_url):
            reader = SampleReader(redis, queue, position)
            samples = reader.read() if position else []
        return reader.position, samples

    return after


def _row(snapshot: LoadSnapshot) -> str:
    failed = [f"{snapshot.failed} failed"] if snapshot.failed else []
    parts = [
        f"queue {snapshot.queue}",
        f"{snapshot.in_flight} in flight",
        f"{snapshot.succeeded + snapshot.failed} done",
        *failed,
        f"{short(snapshot.recent_per_s)}/s",
        f"run time median {seconds(snapshot.times['run'].quantiles_s['p50'])}",
    ]
    return "  ".join(parts)


def _show(statistics: Statistics, counts: HttpCounts, output: Output) -> None:
    snapshot = statistics.snapshot()
    summary = words.served(snapshot.outcomes, snapshot.times["run"], snapshot.elapsed_s)
    echo(f"queue {snapshot.queue}: {summary}", err=True)
    places = [text.nodes(snapshot)] if snapshot.places or snapshot.failed else []
    output.show(
        {
            **snapshot.to_dict(),
            "http_completed": counts.completed,
            "http_rejected": counts.rejected,
        },
        [*places, text.stats(snapshot, counts.completed, counts.rejected).removesuffix("\n")],
    )
