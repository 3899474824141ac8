"""scaletest client: load that can be steered, and statistics that can be watched."""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from types import FrameType

import click

from scaletest.broker import Client, Queues, connect
from scaletest.broker.connection import explained, prepare
from scaletest.broker.samples import SampleReader
from scaletest.cli import logs
from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.http.server import Server, bind
from scaletest.load import ClosedLoop, LoadLoop, OpenLoop, Statistics, Steering, pace
from scaletest.model import NodeSample, checks
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.web import text
from scaletest.web.api import SamplesAfter
from scaletest.web.app import checked, make_app
from scaletest.web.security import HEADERS, HttpCounts

CLOSED_MAXIMUM = 512
OPEN_MAXIMUM = 10_000
LOOK_EVERY_S = 0.25
SWITCH_S = 0.001
# For one answer of Redis. A client that is told to end must do so before Kubernetes kills it.
REDIS_TIMEOUT_S = 5.0
PACES = ("rate", "poisson", "steps", "schedule")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The load, when it ends, and where it is shown. Times are in seconds."""

    queue: str
    redis_url: str
    parallel: int | None
    max_parallel: int | None
    time_limit: float
    delay: float
    rate: float | None
    poisson: float | None
    seed: int | None
    steps: str | None
    schedule: str | None
    batch: int | None
    duration: float
    grace: float
    listen: str
    prefix: str
    token: str
    allow_host: tuple[str, ...]
    keep_records: int
    log_messages: bool
    output: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """The load, checked. kind: one of PACES, batch or closed. pace: start times of open load."""

    kind: str
    maximum: int
    parallel: int
    batch: int | None
    pace: Iterator[float] | None


@click.command(
    "client",
    epilog=(
        "SIGTERM or Ctrl-C once submits nothing more, waits for what is in flight and prints the"
        " statistics; twice ends now. Exit code 5 when a load that ends by itself had failed or"
        " unanswered requests."
    ),
)
@click.option(
    "--queue", default="sleep", show_default=True, help="The queue to load; it must be declared."
)
@shared.redis_url()
@click.option("--parallel", type=int, metavar="N", help="Requests to keep in flight. [default: 1]")
@click.option(
    "--max-parallel",
    type=int,
    metavar="M",
    help=f"Most requests in flight. [default: {CLOSED_MAXIMUM}; open load: {OPEN_MAXIMUM}]",
)
@click.option(
    "--time-limit", type=float, default=0.0, metavar="S", help="Limit of one request; 0: none."
)
@click.option(
    "--delay",
    type=float,
    default=0.0,
    metavar="S",
    help="Seconds from a reply to the next request.",
)
@click.option("--rate", type=float, metavar="R", help="Open load: R requests a second, evenly.")
@click.option(
    "--poisson", type=float, metavar="R", help="Open load: R requests a second, at random."
)
@click.option("--seed", type=int, metavar="N", help="Seed of --poisson, for the same times again.")
@click.option(
    "--steps",
    metavar="R:S,...",
    help="Open load: R requests a second for S seconds, then the next.",
)
@click.option("--schedule", metavar="FILE", help="Open load: start times in seconds, one a line.")
@click.option(
    "--batch",
    type=int,
    metavar="N",
    help="Submit N requests at once, wait until all are done, and end.",
)
@click.option(
    "--duration", type=float, default=0.0, metavar="S", help="End after S seconds; 0: never."
)
@click.option(
    "--grace",
    type=float,
    default=30.0,
    show_default=True,
    metavar="S",
    help="Seconds to wait for requests in flight at the end.",
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
    "--keep-records",
    type=int,
    default=10_000,
    show_default=True,
    metavar="N",
    help="Last records to keep for download.",
)
@click.option("--log-messages", is_flag=True, help="Log every request and reply.")
@shared.output
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARG...]")
@shared.typed(ClientOptions)
def command(options: ClientOptions) -> int:
    """Keep requests in flight, or follow a schedule, and show what comes back.

    \b
    scaletest client --queue sleep --parallel 4 -- 0.5     and open http://127.0.0.1:9996/
    scaletest client --queue q --steps 10:60,20:60
    scaletest client --queue q --batch 1000 --listen none

    ARG... are added to the workload's own arguments; for sleep it is the number of seconds.
    """
    if options.log_messages:
        logs.messages()
    return _serve(options, _checked(options))


def _checked(options: ClientOptions) -> LoadSettings:
    """The load. UsageError, InvalidValue for what is wrong, before anything is started."""
    kind = _kind(options)
    batch = None
    if options.batch is not None:
        batch = checks.count(options.batch, "batch", minimum=1, maximum=1_000_000)
    default = batch or (OPEN_MAXIMUM if kind in PACES else CLOSED_MAXIMUM)
    maximum = default if options.max_parallel is None else options.max_parallel
    checks.count(maximum, "max parallel", minimum=1, maximum=1_000_000)
    parallel = 1 if options.parallel is None else options.parallel
    if checks.count(parallel, "parallel") > maximum:
        raise InvalidValue(
            f"parallel {parallel} is more than the maximum {maximum}", hint="raise --max-parallel"
        )
    for value, name in (
        (options.time_limit, "time limit"),
        (options.delay, "delay"),
        (options.duration, "duration"),
        (options.grace, "grace"),
    ):
        checks.seconds(value, name)
    checks.count(options.keep_records, "keep records", maximum=1_000_000)
    checks.arguments(options.arguments)
    return LoadSettings(kind, maximum, parallel, batch, _pace(options))


def _kind(options: ClientOptions) -> str:
    """One of PACES, batch or closed. UsageError when options of several kinds are given."""
    values = (options.rate, options.poisson, options.steps, options.schedule, options.batch)
    kinds = [
        kind for kind, value in zip((*PACES, "batch"), values, strict=True) if value is not None
    ]
    if not kinds:
        return "closed"
    if len(kinds) > 1:
        raise UsageError(
            f"--{kinds[0]} and --{kinds[1]} exclude each other", hint="give one kind of load"
        )
    for name, value in (("parallel", options.parallel), ("delay", options.delay)):
        if value:
            raise UsageError(
                f"--{name} is for closed load, not with --{kinds[0]}", hint=f"leave --{name} out"
            )
    return kinds[0]


def _pace(options: ClientOptions) -> Iterator[float] | None:
    """Start times in seconds; None for load that follows none."""
    if options.rate is not None:
        return pace.constant(options.rate)
    if options.poisson is not None:
        return pace.poisson(options.poisson, random.Random(options.seed))
    if options.steps is not None:
        return pace.steps(pace.parse_steps(options.steps))
    if options.schedule is None:
        return None
    try:
        with Path(options.schedule).open(encoding="utf-8-sig") as lines:
            return iter(pace.parse_schedule(lines))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the schedule cannot be read: {error}", hint="give a text file, one time a line"
        ) from error


def _serve(options: ClientOptions, settings: LoadSettings) -> int:
    """Everything that must be taken down at the end lives in this stack, in order of setup."""
    redis = connect(options.redis_url)
    Queues(redis).require(options.queue)
    redis.close()
    statistics = Statistics(options.queue, keep=options.keep_records)
    counts = HttpCounts()
    with ExitStack() as stack:
        stopping = stack.enter_context(_stopping())
        client = stack.enter_context(
            Client(connect(options.redis_url, socket_timeout_s=REDIS_TIMEOUT_S))
        )
        bound = _bind(options)
        loop = _loop(client, statistics, options, settings)
        stack.callback(loop.close, patient=False)
        load = _describe(options)
        steering = Steering(
            loop, statistics, load=load, maximum=settings.maximum, ready=lambda: not client.away
        )
        if bound is not None:
            _listen(stack, bound, steering, counts, options)
        try:
            drained = _run(steering, settings, options, stopping)
        finally:
            _show(statistics, counts, options.output)
        if not drained:
            echo(
                f"{loop.in_flight} requests had no reply after {options.grace:g} s; dropped",
                err=True,
            )
        if steering.overdue:
            echo(
                f"{steering.overdue} requests were due and never submitted: the load was too high",
                err=True,
            )
        finite = settings.kind in ("batch", "steps", "schedule") or options.duration
        whole = drained and not statistics.snapshot().failed
        return 0 if whole or not finite or stopping.is_set() else 5


def _loop(
    client: Client, statistics: Statistics, options: ClientOptions, settings: LoadSettings
) -> LoadLoop:
    if settings.pace is not None:
        return OpenLoop(
            client,
            options.queue,
            statistics.add,
            settings.pace,
            maximum=settings.maximum,
            ends_s=options.duration or math.inf,
            arguments=options.arguments,
            time_limit_s=options.time_limit,
            log_messages=options.log_messages,
            observer=statistics,
        )
    return ClosedLoop(
        client,
        options.queue,
        statistics.add,
        total=settings.batch,
        delay_s=options.delay,
        arguments=options.arguments,
        time_limit_s=options.time_limit,
        log_messages=options.log_messages,
        observer=statistics,
    )


def _describe(options: ClientOptions) -> str:
    if options.rate is not None:
        return f"{options.rate:g} requests/s"
    if options.poisson is not None:
        return f"{options.poisson:g} requests/s at random"
    if options.steps is not None:
        return f"steps {options.steps}"
    if options.schedule is not None:
        return f"schedule {cut(Path(options.schedule).name, 100)}"
    return "closed" if options.batch is None else f"batch of {options.batch}"


def _bind(options: ClientOptions) -> socket | None:
    """Check the page before a request is submitted: open load begins when it is created."""
    if options.listen == "none":
        return None

    checked(options.prefix, options.allow_host)
    return bind(options.listen)


def _listen(
    stack: ExitStack, bound: socket, steering: Steering, counts: HttpCounts, options: ClientOptions
) -> None:
    # the loop wants the interpreter back sooner than after the usual 5 ms, each time a page is
    # being made
    sys.setswitchinterval(SWITCH_S)

    app = make_app(
        steering,
        counts,
        token=options.token,
        prefix=options.prefix,
        hosts=options.allow_host,
        samples=_samples(stack, options.redis_url, options.queue),
    )
    server = Server(app, bound, headers=HEADERS, refused=counts.count)
    stack.callback(server.close)
    echo(
        f"queue {options.queue}, load: {steering.load}; page and statistics at {server.url}/",
        err=True,
    )


def _samples(stack: ExitStack, redis_url: str, queue: str) -> SamplesAfter:
    """Use a connection of its own, opened on demand: the load's connection must not wait."""
    redis = prepare(redis_url, socket_timeout_s=REDIS_TIMEOUT_S)
    stack.callback(redis.close)

    def after(position: str) -> tuple[str, list[NodeSample]]:
        with explained(redis_url):
            reader = SampleReader(redis, queue, position)
            samples = reader.read() if position else []
        return reader.position, samples

    return after


def _run(
    steering: Steering, settings: LoadSettings, options: ClientOptions, stopping: threading.Event
) -> bool:
    """Load until nothing is left, time is up or a signal comes; then drain. Whether all replied."""
    ends = time.monotonic() + options.duration if options.duration else float("inf")
    endless = settings.kind == "closed"
    if settings.pace is None:
        steering.set_parallel(settings.maximum if settings.batch else settings.parallel)
    while not stopping.is_set() and time.monotonic() < ends:
        if endless:
            stopping.wait(min(LOOK_EVERY_S, max(0.0, ends - time.monotonic())))
            steering.check()
        elif steering.wait_idle(LOOK_EVERY_S):
            return True
    steering.stop()
    return steering.wait_idle(options.grace)


def _show(statistics: Statistics, counts: HttpCounts, form: str) -> None:
    snapshot = statistics.snapshot()
    if form == "table":
        if snapshot.places or snapshot.failed:
            echo(text.nodes(snapshot))
        echo(text.stats(snapshot, counts.completed, counts.rejected), nl=False)
    else:
        row = {
            **snapshot.to_dict(),
            "http_completed": counts.completed,
            "http_rejected": counts.rejected,
        }
        shared.show(row, form)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Set at the first SIGINT, SIGTERM or SIGHUP; the second ends us now."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
