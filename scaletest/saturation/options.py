"""What a saturation run is asked for, beside its plan: the target, the agents, and what is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from scaletest.model.labels import Labels
from scaletest.saturation.plan import SaturationPlan


@dataclass(frozen=True, slots=True)
class PlanOptions(SaturationPlan):
    """The settings of a plan, of which `plan_of` makes one when the target is known."""

    target: str = field(default="", init=False)


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """A Service of the cluster as what is loaded."""

    service: str
    pause_autoscalers: bool


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What requests are over HTTP."""

    method: str
    payload: str
    headers: tuple[str, ...]
    server_header: str


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """Where load agents run, whose number is the plan's: on this machine, or in the pods of a Job.

    agent_jobs: the Job's image. redis_url: where they meet; "" starts a Redis for them.
    ready_timeout: so many seconds may they take to come.
    """

    agent_jobs: str
    redis_url: str
    ready_timeout: float
    namespace: str
    context: str


@dataclass(frozen=True, slots=True)
class SaturationOptions:
    """What a saturation loads and from where, and where its run is kept.

    arguments: the address of an HTTP service, or those of requests on a queue. tune: settings of
    the Deployment that are measured.
    """

    cluster: ServiceOptions
    queue: str
    arguments: tuple[str, ...]
    http: HttpOptions
    agents: AgentOptions
    tune: tuple[str, ...]
    run_dir: str
    labels: Labels

    @property
    def url(self) -> str:
        """The address of an HTTP service; "" without one."""
        return self.arguments[0] if self.arguments and not self.queue else ""
