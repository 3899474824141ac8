"""scaletest queue: declare, look at, fill and empty queues."""

from __future__ import annotations

import time
from dataclasses import dataclass

import click

from scaletest.broker import Client, Queues, Redis, connect
from scaletest.broker.results import stored, wait_for
from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.model import Reply, Request, checks
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.render.numbers import seconds


@click.group("queue")
def command() -> None:
    """Declare, look at, fill and empty queues.

    A queue must be declared before requests can be submitted to it, so that a typing error never
    makes one.
    """


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@shared.redis_url()
@click.option(
    "--maximum",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Most waiting requests; 0: no limit.",
)
@click.option("--note", default="", help="Description of the workload.")
def add(names: tuple[str, ...], redis_url: str, maximum: int, note: str) -> None:
    """Declare queues, or change their maximum and note."""
    queues = _queues(redis_url)
    for name in names:
        echo(f"{name}: {'declared' if queues.add(name, maximum, note) else 'changed'}")


@command.command("list")
@shared.redis_url()
@shared.output
def list_queues(redis_url: str, output: str) -> None:
    """List the declared queues."""
    states, errors = _queues(redis_url).states()
    for error in errors:
        echo(f"warning: {error.message}; {error.hint}", err=True)
    if output != "table":
        shared.show([state.to_dict() for state in states], output)
        return
    if not states:
        echo("no queue is declared; declare one with: scaletest queue add NAME", err=True)
        return
    width = max(len("queue"), *(len(state.name) for state in states))
    echo(f"{'queue':{width}}  {'waiting':>8}  {'running':>8}  {'workers':>8}  {'maximum':>8}  note")
    for state in states:
        maximum = str(state.maximum or "-")
        note = f"paused; {state.note}" if state.paused else state.note
        echo(
            f"{state.name:{width}}  {state.waiting:>8}  {state.running:>8}  {state.workers:>8} "
            f" {maximum:>8}  {note}"
        )


@command.command()
@click.argument("name")
@shared.redis_url()
@shared.output
def show(name: str, redis_url: str, output: str) -> None:
    """Show one queue: what waits and runs, its workers, its counters and times."""
    queues = _queues(redis_url)
    state = queues.state(name)
    names = queues.worker_names(name)
    if output != "table":
        shared.show({**state.to_dict(), "worker_names": names}, output)
        return

    echo(f"queue {state.name}{' (paused)' if state.paused else ''}  {state.note}".rstrip())
    oldest = (
        f", the oldest for {seconds(state.oldest_waiting_s)}"
        if state.oldest_waiting_s is not None
        else ""
    )
    echo(
        f"  waiting {state.waiting}{oldest}, running {state.running}, maximum"
        f" {state.maximum or 'none'}"
    )
    echo(f"  workers {state.workers}: {', '.join(names) or 'none'}")
    if state.suspects:
        echo(f"  suspect, their requests fail at once: {', '.join(state.suspects)}")
    counters = ", ".join(f"{key} {value}" for key, value in sorted(state.counters.items()) if value)
    echo(f"  {counters or 'no request yet'}")
    for label, values in (("wait", state.wait_s), ("run", state.run_s)):
        if values:
            echo(
                f"  {label} "
                + ", ".join(f"{key} {seconds(value)}" for key, value in values.items())
            )


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
@shared.redis_url()
@shared.output
def check(names: tuple[str, ...], redis_url: str, output: str) -> int:
    """Check that the books balance, of all queues or of those named. Repairs nothing. Exit code 3
    when they do not.
    """
    queues = _queues(redis_url)
    faults = {name: queues.check(name) for name in names or queues.names()}
    if output != "table":
        shared.show(
            {name: {"ok": not wrong, "wrong": wrong} for name, wrong in faults.items()}, output
        )
    else:
        for name, wrong in faults.items():
            echo(f"{name}: {'; '.join(wrong) or 'the books balance'}")
    return 3 if any(faults.values()) else 0


@command.command()
@click.argument("name")
@shared.redis_url()
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(name: str, redis_url: str, yes: bool) -> None:
    """Drop every waiting request of a queue; running ones finish."""
    queues = _queues(redis_url)
    state = queues.state(name)
    if not yes and not shared.confirmed(f"Drop {state.waiting} waiting requests of queue {name}?"):
        echo(f"{name}: nothing dropped")
        return
    echo(f"{name}: {queues.purge(name)} requests dropped")


@command.command()
@click.argument("name")
@shared.redis_url()
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, redis_url: str, yes: bool) -> None:
    """Forget a queue: its waiting requests, its counters, its entries in RQ's registries.

    Also removes what somebody else wrote into the list of queues, by the name that a warning shows.
    """
    queues = _queues(redis_url)
    if foreign := queues.foreign(name):
        if yes or shared.confirmed(f"Remove {name}, which is no queue?"):
            queues.remove_foreign(foreign)
            echo(f"{name}: removed")
        else:
            echo(f"{name}: kept")
        return
    state = queues.state(name)
    if state.workers:
        raise UsageError(f"queue {name} has {state.workers} workers", hint="stop them first")
    if not yes and not shared.confirmed(
        f"Forget queue {name} with {state.waiting} waiting requests?"
    ):
        echo(f"{name}: kept")
        return
    echo(f"{name}: removed, {queues.remove(name)} requests dropped")


@command.command()
@click.argument("name")
@shared.redis_url()
def pause(name: str, redis_url: str) -> None:
    """Stop workers from taking requests; running ones finish."""
    _queues(redis_url).pause(name)
    echo(f"{name}: paused")


@command.command()
@click.argument("name")
@shared.redis_url()
def resume(name: str, redis_url: str) -> None:
    """Let workers take requests again."""
    was = _queues(redis_url).resume(name)
    echo(f"{name}: {'resumed' if was else 'was not paused'}")


@dataclass(frozen=True, slots=True)
class QueueSubmitOptions:
    """A request, and how long to wait for its reply, in seconds."""

    name: str
    redis_url: str
    time_limit: float
    no_wait: bool
    keep: bool
    result_ttl: int
    timeout: float
    arguments: tuple[str, ...]


@command.command()
@click.argument("name")
@shared.redis_url()
@click.option(
    "--time-limit",
    type=float,
    default=0.0,
    metavar="S",
    help="The request may run this long; 0: no limit.",
)
@click.option(
    "--no-wait", is_flag=True, help="Print the id and do not wait; see: scaletest queue result."
)
@click.option(
    "--keep", is_flag=True, help="Run it even when this command has ended, and keep its result."
)
@click.option(
    "--result-ttl",
    type=int,
    default=500,
    show_default=True,
    metavar="S",
    help="Seconds to keep the result, with --no-wait.",
)
@click.option(
    "--timeout",
    type=float,
    default=0.0,
    metavar="S",
    help="Wait this long for the reply; 0: for ever.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARG...]")
@shared.typed(QueueSubmitOptions)
def submit(options: QueueSubmitOptions) -> int:
    """Submit one request, wait, and print its reply as JSON. Exit code 5 when it failed."""
    timeout_s = checks.seconds(options.timeout, "timeout")
    checks.count(options.result_ttl, "result ttl", minimum=1)
    redis = connect(options.redis_url)
    with Client(redis, patience_s=10.0) as client:
        request = Request(client.new_id(), options.name, options.arguments, options.time_limit)
        is_kept = options.no_wait or options.keep
        client.submit_one(request, reply=not is_kept, result_ttl_s=options.result_ttl)
        if options.no_wait:
            echo(request.id)
            return 0
        if is_kept:
            reply = _await_kept(redis, request, timeout_s)
        else:
            reply = _await(client, request, timeout_s)
    shared.show(reply.to_dict(), "json")
    return 0 if reply.ok else 5


@command.command()
@click.argument("request_id")
@shared.redis_url()
def result(request_id: str, redis_url: str) -> int:
    """Print the reply to a request that was submitted with --no-wait. Exit code 6 while there is
    none.
    """
    reply = stored(connect(redis_url), checks.request_id(request_id))
    shared.show(reply.to_dict(), "json")
    return 0 if reply.ok else 5


def _await(client: Client, request: Request, timeout_s: float) -> Reply:
    deadline = time.monotonic() + timeout_s if timeout_s else float("inf")
    while time.monotonic() < deadline:
        for _, reply in client.replies(min(2.0, max(0.0, deadline - time.monotonic()))):
            if reply.id == request.id:
                return reply
        client.recover({request.id: request})
    was_waiting = client.cancel(request.queue, [request.id])
    raise WaitTimeout(
        f"no reply came within {timeout_s:g} s; the request"
        f" {'was dropped' if was_waiting else 'still runs'}",
        hint="see whether a worker serves the queue: scaletest queue show",
    )


def _await_kept(redis: Redis, request: Request, timeout_s: float) -> Reply:
    echo(f"request {request.id}", err=True)
    return wait_for(redis, request.id, timeout_s or float("inf"))


def _queues(redis_url: str) -> Queues:
    return Queues(connect(redis_url))
