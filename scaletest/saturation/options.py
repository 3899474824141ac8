"""What a saturation run is asked for: the target, the agents, what is kept, and so its plan."""

from dataclasses import asdict, dataclass, field

from scaletest.model.errors import UsageError
from scaletest.model.http_options import HttpOptions
from scaletest.model.labels import Labels
from scaletest.model.masking import mask_passwords
from scaletest.saturation.judging.tuning import parse_settings
from scaletest.saturation.plan import SaturationPlan


@dataclass(frozen=True, slots=True)
class PlanOptions(SaturationPlan):
    """The settings of a plan, of which `make_plan` makes one when the target is known."""

    target: str = field(default="", init=False)


@dataclass(frozen=True, slots=True)
class TimedHttpOptions(HttpOptions):
    """Requests whose answers may tell the service's own time."""

    server_header: str = ""


@dataclass(frozen=True, slots=True)
class SaturationOptions:
    """What a saturation loads and from where, and where its run is kept."""

    # the target: a Service of the cluster as svc/NAME[:PORT][/PATH], a queue, or the URL that
    # `arguments` hold
    service: str
    queue: str
    arguments: tuple[str, ...]  # the URL, or those of requests on a queue
    http: TimedHttpOptions
    namespace: str
    context: str
    pause_autoscalers: bool  # hold them during the run, instead of refusing it
    # where load agents run, whose number is the plan's
    agent_jobs: str  # the image of the Job, "" for processes of this machine
    redis_url: str  # where they meet; "" starts a Redis for them
    ready_timeout: float  # seconds that they, or pods that are tuned, may take to come
    tune: tuple[str, ...]  # settings of the Deployment that are measured
    run_dir: str
    labels: Labels

    @property
    def url(self) -> str:
        """The address of an HTTP service; "" without one."""
        return self.arguments[0] if self.arguments and not self.queue else ""


def make_plan(options: SaturationOptions, plan: PlanOptions) -> SaturationPlan:
    """Return the plan of the options. UsageError for combinations that cannot work."""
    # exactly one target is named
    if options.url and len(options.arguments) > 1:
        raise UsageError(
            f"unexpected argument {options.arguments[1]!r:.80}",
            hint="give one URL; arguments of requests are for <queue>",
        )
    targets = {
        "a URL": options.url,
        "--service": options.service,
        "--queue": options.queue,
    }
    named = [name for name, target in targets.items() if target]
    if len(named) != 1:
        reason = "saturate needs one target"
        if named:
            reason = f"{named[0]} and {named[1]} exclude each other"
        raise UsageError(reason, hint="give a URL, <service> svc/NAME or <queue> Q")
    # and what it needs beside it
    for name, value in (("queue", options.queue), ("agent-jobs", options.agent_jobs)):
        if value and not options.redis_url:
            raise UsageError(f"--{name} needs --redis-url", hint="give it, or leave the other out")
    if options.tune and not options.service:
        raise UsageError(
            "<tune> changes the Deployment behind a Service", hint="give <service> svc/NAME"
        )
    parse_settings(options.tune)  # raises InvalidValue for what cannot be tried
    url = mask_passwords(options.url, service=True) if "://" in options.url else options.url
    target = url or options.service or f"queue {options.queue}"
    return SaturationPlan(**{**asdict(plan), "target": target})
