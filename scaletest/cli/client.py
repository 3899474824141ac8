"""scaletest client: load that can be steered, and statistics that can be watched."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

import click
import cloup

from scaletest.broker import Client, Queues, connect
from scaletest.broker.connection import prepare_connection
from scaletest.broker.redis_errors import explain_redis_errors
from scaletest.broker.samples import SampleReader
from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo, live_rows, show_messages, warn_without_worker
from scaletest.client_page import text
from scaletest.load import LoadSnapshot, Statistics
from scaletest.load.offered_load import CLOSED_MAXIMUM, OPEN_MAXIMUM, OfferedLoad
from scaletest.model import NodeSample, checks
from scaletest.model.errors import InvalidValue
from scaletest.model.masking import mask_passwords
from scaletest.model.texts import short_number
from scaletest.render.numbers import format_seconds
from scaletest.runs.stopping import StopRequest, stop_on_signals

# For one answer of Redis. A client that is told to end must do so before Kubernetes kills it.
REDIS_TIMEOUT_S = 5.0


@cloup.command(
    "client",
    cls=shared.ManyOptionsCommand,
    common="--queue --redis-url --parallel --rate --duration --batch --listen",
    epilog=(
        "SIGTERM or Ctrl-C once submits nothing more, waits for what is in flight and prints the"
        " statistics; twice ends now. Exit code 5 when a load that ends by itself had failed or"
        " unanswered requests."
    ),
)
@shared.under_heading("Target")
@click.option(
    "--queue",
    metavar="NAME",
    default="sleep",
    show_default=True,
    help="Load this queue, which must be declared.",
)
@shared.redis_url()
@shared.under_heading("Load")
@click.option("--parallel", type=int, metavar="N", help="Keep N requests in flight. [default: 1]")
@click.option(
    "--max-parallel",
    type=int,
    metavar="M",
    help=(
        "Allow at most M requests in flight."
        f" [default: {CLOSED_MAXIMUM}; open load: {OPEN_MAXIMUM}]"
    ),
)
@shared.under_heading("Requests")
@shared.duration(
    "--time-limit",
    default="0s",
    help="Stop a request that runs longer than this; 0 means no limit.",
)
@shared.duration("--delay", default="0s", help="Wait this long from a reply to the next request.")
@shared.under_heading("Load")
@click.option(
    "--rate",
    type=shared.RATE,
    metavar="RATE",
    help="Submit requests at this rate, evenly, however long they take (open load).",
)
@click.option(
    "--poisson",
    type=shared.RATE,
    metavar="RATE",
    help="Submit requests at this mean rate, at random times (open load).",
)
@click.option(
    "--batch",
    type=int,
    metavar="N",
    help="Submit N requests at once, wait until all are done, and end.",
)
@shared.duration("--duration", default="0s", help="End after this long; 0 means never.")
@shared.duration(
    "--grace", default="30s", help="At the end, wait at most this long for requests in flight."
)
@shared.under_heading("Server")
@click.option(
    "--listen",
    default="127.0.0.1:9996",
    show_default=True,
    metavar="ADDR:PORT",
    help=("Serve the page, the statistics and the metrics at this address; `none` serves nothing."),
)
@click.option(
    "--prefix",
    default="",
    metavar="PATH",
    help="Serve the page for a proxy that shows it below this path, e.g. /tester.",
)
@click.option(
    "--token",
    default="",
    metavar="TEXT",
    help=(
        "Ask for this token before the client is controlled over HTTP; it is better set"
        " as the variable SCALETEST_CLIENT_TOKEN."
    ),
)
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help=(
        "Also accept this host name without a token, e.g. client.validation; the"
        " option may be repeated."
    ),
)
@click.option(
    "--ui-url",
    default="",
    metavar="URL",
    help="Link the pages of `scaletest ui` at this address.",
)
@shared.under_heading("Output")
@click.option(
    "--keep-records",
    type=int,
    default=10_000,
    show_default=True,
    metavar="N",
    help="Keep the last N records for download.",
)
@click.option("--log-messages", is_flag=True, help="Log every request and every reply.")
@shared.output()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARG...]")
@shared.call_with_groups
def command(
    *,
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
    """Keep requests in flight, or submit them at a rate, and show what comes back.

    \b
    scaletest client --queue sleep --parallel 4 -- 0.5    # http://127.0.0.1:9996/
    scaletest client --queue sleep --rate 10/s -- 0.1
    scaletest client --queue sleep --batch 1000 --listen none -- 0

    ARG... are added to the workload's own arguments; for sleep it is the number of seconds.
    """
    # what serves the page takes a while to import, and --help needs none of it
    from scaletest.client_page.app import make_app
    from scaletest.pages.security import HEADERS, HttpCounts
    from scaletest.pages.server import Server, bind_socket
    from scaletest.pages.site import check_prefix_and_hosts

    # refuse what cannot work before a request is submitted
    if load.log_messages:
        show_messages()
    checks.seconds(grace_s, "grace")
    if ui_url and not ui_url.startswith(("http://", "https://")):
        raise InvalidValue(
            f"--ui-url: {ui_url!r} is not an address", hint="e.g. http://127.0.0.1:9995"
        )
    checks.count(keep_records, "keep records", maximum=1_000_000)
    starts = load.pace()
    with connect(redis_url) as redis:
        Queues(redis).require(load.queue)
        warn_without_worker(load.queue, Queues(redis).worker_names(load.queue))
    statistics, counts = Statistics(load.queue, keep=keep_records), HttpCounts()
    stop = StopRequest()
    # the stack takes down at the end what was set up, the last first
    with stop_on_signals(stop, unwind=False) as stack:
        client = stack.enter_context(Client(connect(redis_url, socket_timeout_s=REDIS_TIMEOUT_S)))
        # before a request is submitted: open load begins when it is created
        check_prefix_and_hosts(prefix, allow_host)
        bound = None if listen == "none" else bind_socket(listen)
        steering = load.begin(client, statistics, starts)
        stack.callback(steering.loop.close, patient=False)
        server = None
        if bound is not None:
            # the loop wants the interpreter back sooner than after the usual 5 ms, each time a page
            # is being made
            sys.setswitchinterval(0.001)
            app = make_app(
                steering,
                counts,
                token=token,
                prefix=prefix,
                hosts=allow_host,
                samples=sample_reader(stack, redis_url, load.queue),
                ui_url=ui_url,
            )
            server = Server(app, bound, headers=HEADERS, refused=counts.count)
            stack.callback(server.close)
        page = f"; page and statistics at {server.url}/" if server else ""
        echo(f"queue {load.queue} of {mask_passwords(redis_url)}, load: {load}{page}", err=True)
        # run until the load ends or a signal comes, and print what was measured in any case
        try:
            with live_rows(lambda: [live_row(statistics.snapshot())], per_s=1):
                drained = load.run(steering, stop.wake, grace_s)
        finally:
            snapshot = statistics.snapshot()
            http = {"http_completed": counts.completed, "http_rejected": counts.rejected}
            tables = [text.nodes_text(snapshot)] if snapshot.places or snapshot.failed else []
            tables.append(text.overall_text(snapshot, *http.values()).removesuffix("\n"))
            output.show({**snapshot.to_dict(), **http}, tables)
        if not drained:
            echo(
                f"{steering.loop.in_flight} requests had no reply after {grace_s:g} s; dropped",
                err=True,
            )
        if overdue := steering.loop.overdue:
            echo(
                f"{overdue} requests were due and never submitted: the load was too high", err=True
            )
        # failures count only for a load that came to its own end
        is_whole = drained and not statistics.snapshot().failed
        return 0 if is_whole or not load.is_finite or stop.asked() else 5


def sample_reader(
    stack: ExitStack, redis_url: str, queue: str
) -> Callable[[str], tuple[str, list[NodeSample]]]:
    """Return a function that reads the samples of a queue's nodes after a position.

    It gives the next position, and the samples.
    """
    # a connection of its own, opened on demand: the load's must not wait
    redis = prepare_connection(redis_url, socket_timeout_s=REDIS_TIMEOUT_S)
    stack.callback(redis.close)

    def read_after(position: str) -> tuple[str, list[NodeSample]]:
        with explain_redis_errors(redis_url):
            reader = SampleReader(redis, queue, position)
            samples = reader.read() if position else []
        return reader.position, samples

    return read_after


def live_row(snapshot: LoadSnapshot) -> str:
    """Describe how the load stands, for the row at the foot of a terminal."""
    parts = [
        f"queue {snapshot.queue}",
        f"{snapshot.in_flight} in flight",
        f"{snapshot.succeeded + snapshot.failed} done",
        f"{snapshot.failed} failed" if snapshot.failed else "",
        f"{short_number(snapshot.recent_per_s)}/s",
        f"run time median {format_seconds(snapshot.times['run'].quantiles_s['p50'])}",
    ]
    return "  ".join(filter(None, parts))
