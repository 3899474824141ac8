"""scaletest queue: declare, look at, fill and empty queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from scaletest.broker import Client, Queues, Redis
    from scaletest.model import Reply, Request


@click.group("queue")
def command() -> None:
    """Declare, look at, fill and empty queues.

    A queue must be declared before requests can be submitted to it, so that a typing error never
    makes one.
    """


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.redis_url()
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
@options.redis_url()
@options.output
def list_queues(redis_url: str, output: str) -> None:
    """List the declared queues."""
    states, errors = _queues(redis_url).states()
    for error in errors:
        echo(f"warning: {error.message}; {error.hint}", err=True)
    if output != "table":
        options.show([state.to_dict() for state in states], output)
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
@options.redis_url()
@options.output
def show(name: str, redis_url: str, output: str) -> None:
    """Show one queue: what waits and runs, its workers, its counters and times."""
    queues = _queues(redis_url)
    state = queues.state(name)
    names = queues.worker_names(name)
    if output != "table":
        options.show({**state.to_dict(), "worker_names": names}, output)
        return
    from scaletest.render.numbers import seconds

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
@options.redis_url()
@options.output
def check(names: tuple[str, ...], redis_url: str, output: str) -> int:
    """Check that the books balance, of all queues or of those named. Repairs nothing. Exit code 3
    when they do not.
    """
    queues = _queues(redis_url)
    found = {name: queues.check(name) for name in names or queues.names()}
    if output != "table":
        options.show(
            {name: {"ok": not wrong, "wrong": wrong} for name, wrong in found.items()}, output
        )
    else:
        for name, wrong in found.items():
            echo(f"{name}: {'; '.join(wrong) or 'the books balance'}")
    return 3 if any(found.values()) else 0


@command.command()
@click.argument("name")
@options.redis_url()
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(name: str, redis_url: str, yes: bool) -> None:
    """Drop every waiting request of a queue; running ones finish."""
    queues = _queues(redis_url)
    state = queues.state(name)
    if not yes and not options.confirmed(f"Drop {state.waiting} waiting requests of queue {name}?"):
        echo(f"{name}: nothing dropped")
        return
    echo(f"{name}: {queues.purge(name)} requests dropped")


@command.command()
@click.argument("name")
@options.redis_url()
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, redis_url: str, yes: bool) -> None:
    """Forget a queue: its waiting requests, its counters, its entries in RQ's registries.

    Also removes what somebody else wrote into the list of queues, by the name that a warning shows.
    """
    queues = _queues(redis_url)
    if foreign := queues.foreign(name):
        if yes or options.confirmed(f"Remove {name}, which is no queue?"):
            queues.remove_foreign(foreign)
            echo(f"{name}: removed")
        else:
            echo(f"{name}: kept")
        return
    state = queues.state(name)
    if state.workers:
        raise UsageError(f"queue {name} has {state.workers} workers", hint="stop them first")
    if not yes and not options.confirmed(
        f"Forget queue {name} with {state.waiting} waiting requests?"
    ):
        echo(f"{name}: kept")
        return
    echo(f"{name}: removed, {queues.remove(name)} requests dropped")


@command.command()
@click.argument("name")
@options.redis_url()
def pause(name: str, redis_url: str) -> None:
    """Stop workers from taking requests; running ones finish."""
    _queues(redis_url).pause(name)
    echo(f"{name}: paused")


@command.command()
@click.argument("name")
@options.redis_url()
def resume(name: str, redis_url: str) -> None:
    """Let workers take requests again."""
    was = _queues(redis_url).resume(name)
    echo(f"{name}: {'resumed' if was else 'was not paused'}")


@command.command()
@click.argument("name")
@options.redis_url()
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
def submit(name: str, redis_url: str, arguments: tuple[str, ...], **given: Any) -> int:
    """Submit one request, wait, and print its reply as JSON. Exit code 5 when it failed."""
    from scaletest.broker import Client, connect
    from scaletest.model import Request, checks

    timeout_s = checks.seconds(given["timeout"], "timeout")
    checks.count(given["result_ttl"], "result ttl", minimum=1)
    redis = connect(redis_url)
    with Client(redis, patience_s=10.0) as client:
        request = Request(client.new_id(), name, arguments, given["time_limit"])
        kept = given["no_wait"] or given["keep"]
        client.submit_one(request, reply=not kept, result_ttl_s=given["result_ttl"])
        if given["no_wait"]:
            echo(request.id)
            return 0
        reply = (
            _await_kept(redis, request, timeout_s) if kept else _await(client, request, timeout_s)
        )
    options.show(reply.to_dict(), "json")
    return 0 if reply.ok else 5


@command.command()
@click.argument("request_id")
@options.redis_url()
def result(request_id: str, redis_url: str) -> int:
    """Print the reply to a request that was submitted with --no-wait. Exit code 6 while there is
    none.
    """
    from scaletest.broker import connect
    from scaletest.broker.results import stored
    from scaletest.model import checks

    reply = stored(connect(redis_url), checks.request_id(request_id))
    options.show(reply.to_dict(), "json")
    return 0 if reply.ok else 5


def _await(client: Client, request: Request, timeout_s: float) -> Reply:
    import time

    from scaletest.model.errors import WaitTimeout

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
    from scaletest.broker.results import wait_for

    echo(f"request {request.id}", err=True)
    return wait_for(redis, request.id, timeout_s or float("inf"))


def _queues(redis_url: str) -> Queues:
    from scaletest.broker import Queues, connect

    return Queues(connect(redis_url))
