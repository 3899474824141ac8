"""scaletest queue: declare, look at, fill and empty queues."""

import math
from collections.abc import Iterator, Sequence

import click
import cloup

from scaletest.broker import Client, Queues, Redis, connect
from scaletest.broker.failures import last_failures, recent_failure_groups
from scaletest.broker.jobs import read_stored_reply
from scaletest.broker.queue_state import QueueState
from scaletest.cli import options as shared
from scaletest.cli.output import Output, as_text, echo, warn_without_worker
from scaletest.model import Reply, Request, checks
from scaletest.model.errors import UsageError
from scaletest.render.blocks import Table
from scaletest.render.numbers import format_instant, format_seconds, plural
from scaletest.render.text import one_line
from scaletest.render.text_table import align_table
from scaletest.report import failures
from scaletest.stats.failures import FailureGroup

# Groups of failures that `queue show` lists.
MOST_GROUPS = 5


@cloup.group("queue")
@shared.redis_url()
@click.pass_context
def command(context: click.Context, redis_url: str) -> None:
    """Declare, look at, fill and empty queues.

    \b
    scaletest queue list
    scaletest queue --redis-url redis://127.0.0.1:6379/1 list

    A queue must be declared before requests can be submitted to it, so that a typing error never
    makes one.
    """
    context.obj = redis_url


def _connect() -> Redis:
    """Connect to the Redis that the group's option names."""
    return connect(click.get_current_context().obj)


@command.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--maximum",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Refuse a request when N wait already; 0 means no limit.",
)
@click.option("--note", default="", help="Describe the workload of the queue in these words.")
def add(names: tuple[str, ...], maximum: int, note: str) -> None:
    """Declare queues, or change their maximum and note.

    \b
    scaletest queue add sleep
    scaletest queue add media --maximum 1000 --note "transcodes of H.264"
    """
    queues = Queues(_connect())
    for name in names:
        is_new = queues.add(name, maximum, note)
        echo(f"{name}: {'declared' if is_new else 'changed'}")


@command.command("list")
@shared.output()
def list_queues(output: Output) -> None:
    """List the declared queues.

    \b
    scaletest queue list
    scaletest queue list --format json
    """
    states, errors = Queues(_connect()).states()
    for error in errors:
        echo(f"warning: {error.message}; {error.hint}", err=True)
    if not states and not output.is_data:
        echo("no queue is declared; declare one with: scaletest queue add NAME", err=True)
        return
    rows = []
    for state in states:
        counts = state.waiting, state.running, state.workers, state.maximum or "-"
        note = f"paused; {state.note}" if state.paused else state.note
        rows.append((state.name, *map(str, counts), note))
    titles = ("queue", "waiting", "running", "workers", "maximum", "note")
    table = Table(titles, rows, texts=(0, 5))
    output.show([state.to_dict() for state in states], align_table(table))


@command.command()
@click.argument("name")
@shared.output()
def show(name: str, output: Output) -> None:
    """Show one queue: what waits and runs, its workers, counters, times and last failures.

    \b
    scaletest queue show sleep
    """
    redis = _connect()
    queues = Queues(redis)
    state = queues.state(name)
    names = queues.worker_names(name)
    groups = recent_failure_groups(last_failures(redis, name))
    output.show(
        {
            **state.to_dict(),
            "worker_names": names,
            "failures": [group.to_dict() for group in groups],
        },
        queue_lines(state, names, groups),
    )


def queue_lines(
    state: QueueState, worker_names: Sequence[str], groups: Sequence[FailureGroup]
) -> Iterator[str]:
    """Yield what is known of a queue, for people."""
    yield f"queue {state.name}{' (paused)' if state.paused else ''}  {state.note}".rstrip()
    oldest = ""
    if state.oldest_waiting_s is not None:
        oldest = f", the oldest for {format_seconds(state.oldest_waiting_s)}"
    yield (
        f"  waiting {state.waiting}{oldest}, running {state.running},"
        f" maximum {state.maximum or 'none'}"
    )
    yield f"  workers {state.workers}: {', '.join(worker_names) or 'none'}"
    if state.suspects:
        yield f"  suspect, their requests fail at once: {', '.join(state.suspects)}"
    # counters since the queue was declared, and times of its requests
    counters = ", ".join(f"{key} {value}" for key, value in sorted(state.counters.items()) if value)
    yield f"  {counters or 'no request yet'}"
    for label, values in (("wait", state.wait_s), ("run", state.run_s)):
        if values:
            times = (f"{key} {format_seconds(value)}" for key, value in values.items())
            yield f"  {label} {', '.join(times)}"
    # its last failures, in groups of those with the same error
    if groups:
        count = sum(group.count for group in groups)
        last_s = max(group.last_s for group in groups)
        yield f"  the last {plural(count, 'failure')}, until {format_instant(last_s)}"
    for line in failures.lines(groups[:MOST_GROUPS]):
        yield f"    {one_line(line)}"
    if len(groups) > MOST_GROUPS:
        yield f"    {plural(len(groups) - MOST_GROUPS, 'more failure group')}: see --format json"


@command.command(
    help="""
Check that the books balance, of all queues or of those named. Repairs nothing. Exit code 3 when
they do not.

\b
scaletest queue check
scaletest queue check sleep media --format json
"""
)
@click.argument("names", nargs=-1, metavar="[NAME...]")
@shared.output()
def check(names: tuple[str, ...], output: Output) -> int:
    """Check the books of queues, and return 3 when they do not balance."""
    queues = Queues(_connect())
    faults = {name: queues.check(name) for name in names or queues.names()}
    output.show(
        {name: {"ok": not wrong, "wrong": wrong} for name, wrong in faults.items()},
        [f"{name}: {'; '.join(wrong) or 'the books balance'}" for name, wrong in faults.items()],
    )
    return 3 if any(faults.values()) else 0


@command.command()
@click.argument("name")
@shared.yes
def purge(name: str, yes: bool) -> None:
    """Drop every waiting request of a queue; running ones finish.

    \b
    scaletest queue purge sleep
    """
    queues = Queues(_connect())
    state = queues.state(name)
    if shared.is_confirmed(f"Drop {state.waiting} waiting requests of queue {name}?", yes):
        echo(f"{name}: {queues.purge(name)} requests dropped")
    else:
        echo(f"{name}: nothing dropped")


@command.command()
@click.argument("name")
@shared.yes
def remove(name: str, yes: bool) -> None:
    """Forget a queue, its waiting requests, counters and entries in RQ.

    \b
    scaletest queue remove media --yes
    """
    queues = Queues(_connect())
    state = queues.state(name)
    if state.workers:
        raise UsageError(f"queue {name} has {state.workers} workers", hint="stop them first")
    if shared.is_confirmed(f"Forget queue {name} with {state.waiting} waiting requests?", yes):
        echo(f"{name}: removed, {queues.remove(name)} requests dropped")
    else:
        echo(f"{name}: kept")


@command.command()
@click.argument("name")
def pause(name: str) -> None:
    """Stop workers from taking requests; running ones finish.

    \b
    scaletest queue pause sleep
    """
    Queues(_connect()).pause(name)
    echo(f"{name}: paused")


@command.command()
@click.argument("name")
def resume(name: str) -> None:
    """Let workers take requests again.

    \b
    scaletest queue resume sleep
    """
    was_paused = Queues(_connect()).resume(name)
    echo(f"{name}: {'resumed' if was_paused else 'was not paused'}")


@command.command()
@click.argument("name")
@shared.under_heading("Target")
@shared.under_heading("Requests")
@shared.duration(
    "--time-limit",
    default="0s",
    help="Stop the request when it runs longer than this; 0 means no limit.",
)
@shared.under_heading("Output")
@click.option(
    "--no-wait",
    is_flag=True,
    help=(
        "Print the id of the request and do not wait; `scaletest queue result` prints its reply."
    ),
)
@shared.duration(
    "--timeout", default="0s", help="Wait at most this long for the reply; 0 waits for ever."
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARG...]")
@shared.call_with_groups
def submit(
    name: str,
    time_limit_s: float,
    no_wait: bool,
    timeout_s: float,
    arguments: tuple[str, ...],
) -> int:
    """Submit one request, wait, and print its reply as JSON. Exit code 5 when it failed.

    \b
    scaletest queue submit sleep -- 0.5
    scaletest queue submit sleep --time-limit 1m --timeout 2m -- 30
    scaletest queue submit sleep --no-wait -- 30
    """
    checks.seconds(timeout_s, "timeout")
    redis = _connect()
    with Client(redis, patience_s=10.0) as client:
        request = Request(client.new_id(), name, arguments, time_limit_s)
        client.submit_one(request, reply=not no_wait)
        if no_wait:
            echo(request.id)
            return 0
        warn_without_worker(name, Queues(redis).worker_names(name))
        return _show_reply(client.wait_for(request, timeout_s or math.inf))


@command.command(
    help="""
Print the reply to a request that was submitted with --no-wait. Exit code 6 while there is none.

\b
scaletest queue result "$(scaletest queue submit sleep --no-wait -- 0.1)"
"""
)
@click.argument("request_id")
def result(request_id: str) -> int:
    """Print a stored reply."""
    return _show_reply(read_stored_reply(_connect(), checks.request_id(request_id)))


def _show_reply(reply: Reply) -> int:
    value = {} if reply.value is None else {"value": reply.value}
    echo(as_text({**reply.to_dict(), **value}), nl=False)
    return 0 if reply.ok else 5
