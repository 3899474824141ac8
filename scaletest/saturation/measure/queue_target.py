"""A queue of scaletest's workers as a target."""

from contextlib import closing
from dataclasses import dataclass

from scaletest.broker import Queues, connect
from scaletest.model import checks
from scaletest.model.errors import UsageError
from scaletest.render.numbers import plural
from scaletest.saturation.measure.agents import start_load
from scaletest.saturation.measure.target import Target, in_flight_of_agent
from scaletest.saturation.measure.work import QueueWork
from scaletest.saturation.options import AgentOptions, HttpOptions
from scaletest.saturation.plan import SaturationPlan


@dataclass(frozen=True, slots=True)
class NamedQueue:
    """A queue that options name."""

    queue: str
    arguments: tuple[str, ...]  # of each request
    http: HttpOptions  # must ask for nothing
    agents: AgentOptions

    def find(self, plan: SaturationPlan) -> Target:
        """Find the queue, which must be declared and have workers. Unreachable when Redis does not
        answer.
        """
        for name, value in (("payload", self.http.payload), ("header", self.http.headers)):
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
