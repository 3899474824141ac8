"""What is loaded: a target that is found by its URL or as a queue, and how its load starts."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from scaletest.broker import Queues, connect
from scaletest.load.http import HttpWork
from scaletest.load.http_call import HttpCall, explain_outcome
from scaletest.load.level_load import LevelLoad, send_one
from scaletest.load.requests import make_bodies, make_call
from scaletest.model import checks
from scaletest.model.attempt import OK
from scaletest.model.errors import UsageError
from scaletest.observe.sockets import is_here, server_processes
from scaletest.render.numbers import plural
from scaletest.saturation.measure.agent import QueueWork
from scaletest.saturation.measure.agents import start_load
from scaletest.saturation.options import SaturationOptions, TimedHttpOptions
from scaletest.saturation.plan import SaturationPlan

# The first call may take this long.
FIRST_CALL_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, a Service or a queue that can be loaded; nothing is changed before `hold`."""

    lines: tuple[str, ...]  # what was found about it
    start: Callable[[ExitStack], LevelLoad]  # starts its load, which the caller closes
    # does what must be done before, and has the stack undo it
    hold: Callable[[ExitStack], None] = lambda stack: None
    replicas: int = 0  # pods that serve it, 0 when that is unknown
    # the first processes of the service, when they are on this machine and may be seen
    servers: Callable[[], Sequence[int]] = lambda: ()
    port: int = 0  # where they serve
    is_here: bool = False  # whether the service is on this machine


def find_queue(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """Find the queue that options name, which must be declared and have workers.

    Unreachable when Redis does not answer.
    """
    http, queue = options.http, options.queue
    for name, value in (
        ("payload", http.payload),
        ("header", http.headers),
        ("openai", http.openai),
    ):
        if value:
            raise UsageError(f"--{name} is for HTTP, not for a queue", hint="leave it out")
    checks.arguments(options.arguments)
    with closing(connect(options.redis_url)) as redis:
        Queues(redis).require(queue)
        state = Queues(redis).state(queue)
    if not state.workers:
        raise UsageError(
            f"queue {queue} has no worker", hint=f"start one: scaletest worker --queue {queue}"
        )
    waiting = f", {plural(state.waiting, 'request')} in it already" if state.waiting else ""
    maximum = in_flight_of_agent(plan.max_in_flight, plan.agents)
    work = QueueWork(queue, options.arguments, plan.timeout_s, maximum)
    return Target(
        (f"queue {state.name}: {plural(state.workers, 'worker')}{waiting}",),
        lambda stack: start_load(options, plan, work, stack),
    )


def find_url(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """Find whether the service at a URL is on this machine; it is not called yet."""
    call = http_call(options.http, plan, options.url)
    parts = urlsplit(call.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    is_local = is_here(parts.hostname or "")
    return Target(
        (),
        http_load(options, plan, call),
        servers=lambda: server_processes(port) if is_local else (),
        port=port,
        is_here=is_local,
    )


def http_load(
    options: SaturationOptions, plan: SaturationPlan, call: HttpCall
) -> Callable[[ExitStack], LevelLoad]:
    """Return what starts the load of this call, from this process or from agents."""

    def start(stack: ExitStack) -> LevelLoad:
        work = HttpWork(call, *make_bodies(options.http))
        return start_load(options, plan, work, stack)

    return start


def in_flight_of_agent(max_in_flight: int, agents: int) -> int:
    """Return how many requests an agent may have in flight, so that all may have the maximum."""
    return -(-max_in_flight // agents)


def check_first_call(load: LevelLoad) -> None:
    """Make one call. UsageError with the likely cause when it fails.

    Then endpoint, schema or credentials are wrong, and no load would tell anything.
    """
    outcome = send_one(load, FIRST_CALL_LIMIT_S)
    if outcome not in (OK, ""):
        cause, hint = explain_outcome(outcome)
        raise UsageError(f"the first call failed {cause}", hint=hint)


def http_call(http: TimedHttpOptions, plan: SaturationPlan, url: str) -> HttpCall:
    """Return the request that these options describe. InvalidValue for what cannot be one."""
    in_flight = in_flight_of_agent(plan.max_in_flight, plan.agents)
    call = make_call(http, url, plan.timeout_s, in_flight)
    return replace(call, server_header=http.server_header)
