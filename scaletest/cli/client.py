"""scaletest client: load that can be steered, and statistics that can be watched."""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import logs, options
from scaletest.cli.output import echo
from scaletest.model.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from socket import socket

    from scaletest.load import LoadLoop, Statistics, Steering
    from scaletest.model import NodeSample
    from scaletest.web.api import SamplesAfter
    from scaletest.web.security import HttpCounts

CLOSED_MAXIMUM = 512
OPEN_MAXIMUM = 10_000
LOOK_EVERY_S = 0.25
SWITCH_S = 0.001
# For one answer of Redis. A client that is told to end must do so before Kubernetes kills it.
REDIS_TIMEOUT_S = 5.0
PACES = ("rate", "poisson", "steps", "schedule")


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
@options.redis_url()
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
@options.output
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARG...]")
def command(**given: Any) -> int:
    """Keep requests in flight, or follow a schedule, and show what comes back.

    \b
    scaletest client --queue sleep --parallel 4 -- 0.5     and open http://127.0.0.1:9996/
    scaletest client --queue q --steps 10:60,20:60
    scaletest client --queue q --batch 1000 --listen none

    ARG... are added to the workload's own arguments; for sleep it is the number of seconds.
    """
    if given["log_messages"]:
        logs.messages()
    settings = _check(given)
    return _serve(given, settings)


def _check(given: dict[str, Any]) -> dict[str, Any]:
    """What must be right before anything is started."""
    from scaletest.model import checks

    chosen = [name for name in (*PACES, "batch") if given[name] is not None]
    if len(chosen) > 1:
        raise UsageError(
            f"--{chosen[0]} and --{chosen[1]} exclude each other", hint="give one kind of load"
        )
    kind = chosen[0] if chosen else "closed"
    if kind != "closed":
        for name in ("parallel", "delay"):
            if given[name]:
                raise UsageError(
                    f"--{name} is for closed load, not with --{kind}", hint=f"leave --{name} out"
                )
    batch = (
        checks.count(given["batch"], "batch", minimum=1, maximum=1_000_000)
        if kind == "batch"
        else None
    )
    default = batch or (OPEN_MAXIMUM if kind in PACES else CLOSED_MAXIMUM)
    maximum = default if given["max_parallel"] is None else given["max_parallel"]
    maximum = checks.count(maximum, "max parallel", minimum=1, maximum=1_000_000)
    parallel = checks.count(1 if given["parallel"] is None else given["parallel"], "parallel")
    if parallel > maximum:
        raise InvalidValue(
            f"parallel {parallel} is more than the maximum {maximum}", hint="raise --max-parallel"
        )
    for name in ("time_limit", "delay", "duration", "grace"):
        checks.seconds(given[name], name.replace("_", " "))
    checks.count(given["keep_records"], "keep records", maximum=1_000_000)
    checks.arguments(given["arguments"])
    return {
        "kind": kind,
        "maximum": maximum,
        "parallel": parallel,
        "batch": batch,
        "pace": _pace(kind, given),
    }


def _pace(kind: str, given: dict[str, Any]) -> Iterator[float] | None:
    from scaletest.load import pace

    if kind == "rate":
        return pace.constant(given["rate"])
    if kind == "poisson":
        return pace.poisson(given["poisson"], random.Random(given["seed"]))
    if kind == "steps":
        return pace.steps(pace.parse_steps(given["steps"]))
    if kind == "schedule":
        try:
            with Path(given["schedule"]).open(encoding="utf-8-sig") as lines:
                return iter(pace.parse_schedule(lines))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"the schedule cannot be read: {error}", hint="give a text file, one time a line"
            ) from error
    return None


def _serve(given: dict[str, Any], settings: dict[str, Any]) -> int:
    """Everything that must be taken down at the end lives in this stack, in order of setup."""
    from scaletest.broker import Client, Queues, connect
    from scaletest.load import Statistics, Steering
    from scaletest.web.security import HttpCounts

    redis = connect(given["redis_url"])
    Queues(redis).require(given["queue"])
    redis.close()
    statistics = Statistics(given["queue"], keep=given["keep_records"])
    counts = HttpCounts()
    with ExitStack() as stack:
        stopping = stack.enter_context(_stopping())
        client = stack.enter_context(
            Client(connect(given["redis_url"], socket_timeout_s=REDIS_TIMEOUT_S))
        )
        bound = _bind(given)
        loop = _loop(client, statistics, given, settings)
        stack.callback(loop.close, patient=False)
        load = _describe(settings["kind"], given)
        steering = Steering(
            loop, statistics, load=load, maximum=settings["maximum"], ready=lambda: not client.away
        )
        if bound is not None:
            _listen(stack, bound, steering, counts, given)
        try:
            drained = _run(steering, settings, given, stopping)
        finally:
            _show(statistics, counts, given["output"])
        if not drained:
            echo(
                f"{loop.in_flight} requests had no reply after {given['grace']:g} s; dropped",
                err=True,
            )
        if steering.overdue:
            echo(
                f"{steering.overdue} requests were due and never submitted: the load was too high",
                err=True,
            )
        finite = settings["kind"] in ("batch", "steps", "schedule") or given["duration"]
        whole = drained and not statistics.snapshot().failed
        return 0 if whole or not finite or stopping.is_set() else 5


def _loop(
    client: Any, statistics: Statistics, given: dict[str, Any], settings: dict[str, Any]
) -> LoadLoop:
    from scaletest.load import ClosedLoop, OpenLoop

    common: dict[str, Any] = {
        "arguments": given["arguments"],
        "time_limit_s": given["time_limit"],
        "log_messages": given["log_messages"],
        "observer": statistics,
    }
    if settings["pace"] is not None:
        common |= {"maximum": settings["maximum"], "ends_s": given["duration"] or math.inf}
        return OpenLoop(client, given["queue"], statistics.add, settings["pace"], **common)
    return ClosedLoop(
        client,
        given["queue"],
        statistics.add,
        total=settings["batch"],
        delay_s=given["delay"],
        **common,
    )


def _describe(kind: str, given: dict[str, Any]) -> str:
    from scaletest.model.checks import cut

    texts: dict[str, Callable[[], str]] = {
        "rate": lambda: f"{given['rate']:g} requests/s",
        "poisson": lambda: f"{given['poisson']:g} requests/s at random",
        "steps": lambda: f"steps {given['steps']}",
        "schedule": lambda: f"schedule {cut(Path(given['schedule']).name, 100)}",
        "batch": lambda: f"batch of {given['batch']}",
    }
    return texts[kind]() if kind in texts else "closed"


def _bind(given: dict[str, Any]) -> socket | None:
    """Check the page before a request is submitted: open load begins when it is created."""
    if given["listen"] == "none":
        return None
    from scaletest.http.server import bind
    from scaletest.web.app import checked

    checked(given["prefix"], given["allow_host"])
    return bind(given["listen"])


def _listen(
    stack: ExitStack, bound: socket, steering: Steering, counts: HttpCounts, given: dict[str, Any]
) -> None:
    # the loop wants the interpreter back sooner than after the usual 5 ms, each time a page is
    # being made
    sys.setswitchinterval(SWITCH_S)
    from scaletest.http.server import Server
    from scaletest.web.app import make_app
    from scaletest.web.security import HEADERS

    own = {"token": given["token"], "prefix": given["prefix"], "hosts": given["allow_host"]}
    app = make_app(steering, counts, **own, samples=_samples(stack, given))
    server = Server(app, bound, headers=HEADERS, refused=counts.count)
    stack.callback(server.close)
    echo(
        f"queue {given['queue']}, load: {steering.load}; page and statistics at {server.url}/",
        err=True,
    )


def _samples(stack: ExitStack, given: dict[str, Any]) -> SamplesAfter:
    """Use a connection of its own, opened on demand: the load's connection must not wait."""
    from scaletest.broker.connection import explained, prepare
    from scaletest.broker.samples import SampleReader

    redis = prepare(given["redis_url"], socket_timeout_s=REDIS_TIMEOUT_S)
    stack.callback(redis.close)

    def after(position: str) -> tuple[str, list[NodeSample]]:
        with explained(given["redis_url"]):
            reader = SampleReader(redis, given["queue"], position)
            samples = reader.read() if position else []
        return reader.position, samples

    return after


def _run(
    steering: Steering, settings: dict[str, Any], given: dict[str, Any], stopping: threading.Event
) -> bool:
    """Load until nothing is left, time is up or a signal comes; then drain. Whether all replied."""
    import time

    ends = time.monotonic() + given["duration"] if given["duration"] else float("inf")
    endless = settings["kind"] == "closed"
    if settings["pace"] is None:
        steering.set_parallel(settings["maximum"] if settings["batch"] else settings["parallel"])
    while not stopping.is_set() and time.monotonic() < ends:
        if endless:
            stopping.wait(min(LOOK_EVERY_S, max(0.0, ends - time.monotonic())))
            steering.check()
        elif steering.wait_idle(LOOK_EVERY_S):
            return True
    steering.stop()
    return steering.wait_idle(given["grace"])


def _show(statistics: Statistics, counts: HttpCounts, form: str) -> None:
    from scaletest.web import text

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
        options.show(row, form)


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
