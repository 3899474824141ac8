"""What is loaded: how a target is found by its URL or as a queue, is loaded, and what is held
meanwhile.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from scaletest.broker import Queues, connect
from scaletest.load.http_call import CAUSES, HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.load.requests import make_bodies, make_call
from scaletest.model import checks
from scaletest.model.errors import UsageError
from scaletest.observe.sockets import is_here, server_processes
from scaletest.render.numbers import plural
from scaletest.saturation.measure.agent import HttpWork, QueueWork
from scaletest.saturation.measure.agents import start_load
from scaletest.saturation.options import AgentOptions, TimedHttpOptions
from scaletest.saturation.plan import SaturationPlan


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, a Service or a queue that can be loaded; nothing is changed before `set_up`."""

    lines: tuple[str, ...]  # what was found about it
    start: Callable[[ExitStack], LevelLoad]  # starts its load, which the caller closes
    # does what must be done before, and has the stack undo it
    hold: Callable[[ExitStack], None] = lambda stack: None
    replicas: int = 0  # pods that serve it, 0 when that is unknown
    # the first processes of the service, when they are on this machine and may be seen
    servers: Callable[[], Sequence[int]] = lambda: ()
    port: int = 0  # where they serve
    is_here: bool = False  # whether the service is on this machine

    def set_up(self, stack: ExitStack) -> LevelLoad:
        """Start the load; it is taken down with the stack."""
        self.hold(stack)
        return stack.enter_context(closing(self.start(stack)))

    def probe(self, load: LevelLoad) -> None:
        """Make one call. UsageError with the likely cause when it fails: endpoint, schema or
        credentials are wrong then.
        """
        result = load.measure(
            LoadOrder(60.0, parallel=1, count=1), lambda: False, lambda ended, failed: None
        )
        if not result.samples or result.samples[0].ok:
            return
        outcome = result.samples[0].outcome
        cause, hint = CAUSES.get(
            outcome, ("the service does not serve this request", "read its log")
        )
        outcome = f"HTTP {outcome}" if outcome.isdigit() else outcome
        raise UsageError(f"the first call failed ({outcome}): {cause}", hint=hint)


def in_flight_of_agent(max_in_flight: int, agents: int) -> int:
    """Return how many requests an agent may have in flight, so that all may have the maximum."""
    return -(-max_in_flight // agents)


@dataclass(frozen=True, slots=True)
class NamedQueue:
    """A queue that options name."""

    queue: str
    arguments: tuple[str, ...]  # of each request
    http: TimedHttpOptions  # must ask for nothing
    agents: AgentOptions

    def find(self, plan: SaturationPlan) -> Target:
        """Find the queue, which must be declared and have workers. Unreachable when Redis does not
        answer.
        """
        for name, value in (
            ("payload", self.http.payload),
            ("header", self.http.headers),
            ("openai", self.http.openai),
        ):
            if value:
                raise UsageError(f"--{name} is for HTTP, not for a queue", hint="leave it out")
        checks.arguments(self.arguments)
        with closing(connect(self.agents.redis_url)) as redis:
            Queues(redis).require(self.queue)
            state = Queues(redis).state(self.queue)
        if not state.workers:
            raise UsageError(
                f"queue {self.queue} has no worker",
                hint=f"start one: scaletest worker --queue {self.queue}",
            )
        waiting = f", {plural(state.waiting, 'request')} in it already" if state.waiting else ""
        maximum = in_flight_of_agent(plan.max_in_flight, plan.agents)
        work = QueueWork(self.queue, self.arguments, plan.timeout_s, maximum)
        return Target(
            (f"queue {state.name}: {plural(state.workers, 'worker')}{waiting}",),
            lambda stack: start_load(self.agents, plan, work, stack),
        )


@dataclass(frozen=True, slots=True)
class NamedUrl:
    """A URL that options name."""

    url: str
    http: TimedHttpOptions
    agents: AgentOptions

    def find(self, plan: SaturationPlan) -> Target:
        """Find whether the service is on this machine; it is not called yet."""
        call = http_call(self.http, plan, self.url)
        parts = urlsplit(call.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        local = is_here(parts.hostname or "")
        return Target(
            (),
            http_load(self.http, self.agents, plan, call),
            servers=lambda: server_processes(port) if local else (),
            port=port,
            is_here=local,
        )


def http_load(
    http: TimedHttpOptions, agents: AgentOptions, plan: SaturationPlan, call: HttpCall
) -> Callable[[ExitStack], LevelLoad]:
    """Return what starts the load of this call, from this process or from agents."""

    def start(stack: ExitStack) -> LevelLoad:
        return start_load(agents, plan, HttpWork(call, *make_bodies(http)), stack)

    return start


def http_call(http: TimedHttpOptions, plan: SaturationPlan, url: str) -> HttpCall:
    """Return the request that these options describe. InvalidValue for what cannot be one."""
    in_flight = in_flight_of_agent(plan.max_in_flight, plan.agents)
    call = make_call(http, url, plan.timeout_s, in_flight)
    return replace(call, server_header=http.server_header)
