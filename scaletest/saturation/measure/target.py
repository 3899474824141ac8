"""What a saturation loads: a URL, a Service, or a queue; from this process or from agents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from scaletest.broker import Queues, connect
from scaletest.cluster import connection
from scaletest.cluster.changes import Changes, refuse_changed
from scaletest.cluster.connection import Cluster
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.service import Service
from scaletest.load.http_call import CAUSES, HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.load.payloads import read_payloads
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.masking import masked
from scaletest.observe.servers import is_here, servers
from scaletest.render.numbers import plural
from scaletest.saturation.judging.pods import settings
from scaletest.saturation.measure.agents import HttpWork, QueueWork, start_load
from scaletest.saturation.measure.pods import WatchedPods
from scaletest.saturation.options import HttpOptions, PlanOptions, SaturationOptions
from scaletest.saturation.plan import SaturationPlan

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True)
class Target:
    """shown: what was found about it. make: its load, to be closed. enter: what must be done
    before, and undone.

    servers: the first processes of the service, when they are on this machine and may be seen.
    port: where they serve.
    is_here: whether the service is on this machine.
    replicas: pods that serve it, 0 when that is unknown.
    """

    shown: tuple[str, ...]
    make: Callable[[ExitStack], LevelLoad]
    enter: Callable[[ExitStack], None] = field(default=lambda stack: None)
    replicas: int = 0
    servers: Callable[[], Sequence[int]] = field(default=lambda: ())
    port: int = 0
    is_here: bool = False

    def set_up(self, stack: ExitStack) -> LevelLoad:
        """The load; taken down with the stack."""
        self.enter(stack)
        return stack.enter_context(closing(self.make(stack)))

    def probe(self, load: LevelLoad) -> None:
        """One call. UsageError with the likely cause when it fails: endpoint, schema or credentials
        are wrong then.
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


def plan_of(options: SaturationOptions, plan: PlanOptions) -> SaturationPlan:
    """The plan of the options. UsageError for combinations that cannot work."""
    _check_target(options)
    redis_url = options.agents.redis_url
    for name, value, needed, needed_value in (
        ("queue", options.queue, "redis-url", redis_url),
        ("agent-jobs", options.agents.agent_jobs, "redis-url", redis_url),
    ):
        if value and not needed_value:
            raise UsageError(f"--{name} needs --{needed}", hint="give it, or leave the other out")
    if options.tune and not options.cluster.service:
        raise UsageError(
            "<tune> changes the Deployment behind a Service", hint="give <service> svc/NAME"
        )
    settings(options.tune)
    url = masked(options.url, service=True) if "://" in options.url else options.url
    target = url or options.cluster.service or f"queue {options.queue}"
    return SaturationPlan(**{**asdict(plan), "target": target})


def _check_target(options: SaturationOptions) -> None:
    """UsageError unless exactly one target is named."""
    if options.url and len(options.arguments) > 1:
        raise UsageError(
            f"unexpected argument {options.arguments[1]!r:.80}",
            hint="give one URL; arguments of requests are for <queue>",
        )
    targets = {
        "a URL": options.url,
        "--service": options.cluster.service,
        "--queue": options.queue,
    }
    named = [name for name, target in targets.items() if target]
    if len(named) == 1:
        return
    reason = "saturate needs one target"
    if named:
        reason = f"{named[0]} and {named[1]} exclude each other"
    raise UsageError(reason, hint="give a URL, <service> svc/NAME or <queue> Q")


def find_target(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """Look at what was named; nothing is changed yet."""
    if options.queue:
        return _queue_target(options, plan)
    if options.cluster.service:
        return _service_target(options, plan)
    http_call = call(options.http, plan, options.url)
    parts = urlsplit(http_call.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    local = is_here(parts.hostname or "")
    return replace(
        over_http(options, plan, http_call),
        servers=lambda: servers(port) if local else (),
        port=port,
        is_here=local,
    )


def _in_flight_of_each(plan: SaturationPlan) -> int:
    """How many requests each agent may have in flight, so that all together have the maximum."""
    return -(-plan.max_in_flight // plan.agents)


# -- HTTP
# --------------------------------------------------------------------------------------------------


def over_http(
    options: SaturationOptions,
    plan: SaturationPlan,
    http_call: HttpCall,
    shown: tuple[str, ...] = (),
) -> Target:
    """A target that is reached by this call, from this process or from agents."""

    def make(stack: ExitStack) -> LevelLoad:
        work = HttpWork(http_call, read_payloads(options.http.payload).bodies)
        return start_load(options.agents, plan, work, stack)

    return Target(shown, make)


def call(http: HttpOptions, plan: SaturationPlan, url: str) -> HttpCall:
    """The request that these options describe. InvalidValue for what cannot be one."""
    checks.http_url(url, "the service's URL")
    method = http.method
    if method and not (method.isascii() and method.isalpha()):
        raise InvalidValue(
            f"<method> {method[:40]!r} is no method of HTTP", hint="give GET, POST or another word"
        )
    headers = {"User-Agent": "scaletest", **_headers(http)}
    if http.payload and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return HttpCall(
        url,
        (method or ("POST" if http.payload else "GET")).upper(),
        headers,
        plan.timeout_s,
        _in_flight_of_each(plan),
        http.server_header,
    )


def _headers(http: HttpOptions) -> dict[str, str]:
    """The headers by name. Credentials come from files: others can read a command line."""
    texts = []
    for text in http.headers:
        texts += _header_lines(text[1:]) if text.startswith("@") else [text]
    headers = {}
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(ord(letter) < 32 for letter in text):
            raise InvalidValue(
                f"<header> {name[:40]!r} is no header",
                hint="write <header> 'NAME: VALUE', or <header> @FILE with such lines",
            )
        headers[name.strip()] = value.strip()
    return headers


def _header_lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"<header> @{path} cannot be read: {error}") from error


# -- queues
# --------------------------------------------------------------------------------------------------


def _queue_target(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """The queue, which must be declared and have workers. Unreachable when Redis does not
    answer.
    """
    http, redis_url = options.http, options.agents.redis_url
    for name, value in (("payload", http.payload), ("header", http.headers)):
        if value:
            raise UsageError(f"--{name} is for HTTP, not for a queue", hint="leave it out")
    checks.arguments(options.arguments)
    with closing(connect(redis_url)) as redis:
        Queues(redis).require(options.queue)
        state = Queues(redis).state(options.queue)
    if not state.workers:
        raise UsageError(
            f"queue {options.queue} has no worker",
            hint=f"start one: scaletest worker --queue {options.queue}",
        )
    waiting = f", {plural(state.waiting, 'request')} in it already" if state.waiting else ""
    work = QueueWork(options.queue, options.arguments, plan.timeout_s, _in_flight_of_each(plan))
    return Target(
        (f"queue {state.name}: {plural(state.workers, 'worker')}{waiting}",),
        lambda stack: start_load(options.agents, plan, work, stack),
    )


# -- Services
# --------------------------------------------------------------------------------------------------


def _service_target(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """Look at the Service, refuse while something scales it, change nothing yet."""
    cluster = connection.connect(options.agents.namespace, options.agents.context)
    service = Service(cluster, options.cluster.service)
    deployment = service.deployment()
    ready, total = service.endpoints()
    lines = [
        f"service {service.reference.name}: {service.url()}, {ready} of {total} addresses are ready"
    ]
    if not ready:
        raise UsageError(
            f"no pod of service {service.reference.name} is ready", hint="look at its pods"
        )
    replicas = 0
    if deployment is not None:
        if not options.tune:
            refuse_changed(deployment)
        held, told = scalers(cluster, deployment, options.cluster.pause_autoscalers)
        replicas = deployment.replicas()
        lines += [f"deployment {deployment.name}: {replicas} replicas", told]
    http_call = _reached(service, options, plan, lines)
    target = over_http(options, plan, http_call, tuple(lines))
    if deployment is not None:
        target = replace(target, make=_watched(target.make, deployment))
        changes = Changes(cluster, deployment)
        target = replace(target, enter=partial(_hold, held, replicas, changes))
    return replace(target, replicas=replicas)


def _watched(
    make: Callable[[ExitStack], LevelLoad], deployment: Deployment
) -> Callable[[ExitStack], LevelLoad]:
    """The load, with a look at the pods before and after each step."""
    return lambda stack: WatchedPods(make(stack), deployment)


def tuned_deployment(cluster: Cluster, service: str, hint: str) -> Deployment:
    """The Deployment behind a Service; UsageError with the hint unless there is exactly one."""
    deployment = Service(cluster, service).deployment()
    if deployment is None:
        raise UsageError("no single Deployment stands behind this Service", hint=hint)
    return deployment


def scalers(cluster: Cluster, deployment: Deployment, may_hold: bool) -> tuple[Autoscalers, str]:
    """Who scales the Deployment, and what is told of them. UsageError unless they may be held."""
    scalers = Autoscalers(cluster, deployment.name)
    active = scalers.active(may_hold=may_hold)
    names = ", ".join(map(str, active))
    return scalers, f"autoscaler: {f'{names}, held for the run' if names else 'none is active'}"


def _hold(scalers: Autoscalers, replicas: int, changes: Changes, stack: ExitStack) -> None:
    """Hold the autoscalers until the stack is unwound."""
    # registered first: what was held half-way is put back too
    stack.callback(changes.close)
    scalers.hold(replicas, changes)


def _reached(
    service: Service, options: SaturationOptions, plan: SaturationPlan, lines: list[str]
) -> HttpCall:
    """Inside the cluster straight, from outside through the API server, whose own ceiling is
    told.
    """
    if IN_CLUSTER.exists() or options.agents.agent_jobs:
        return call(options.http, plan, service.url())
    url, headers, authority = service.proxied()
    http_call = call(options.http, plan, url)
    if any(name.lower() == "authorization" for name in http_call.headers):
        raise UsageError(
            "the API server's proxy keeps the Authorization header for itself",
            hint=(
                "run agents in the cluster with <agent_jobs> IMAGE, or load the URL of a kubectl"
                " port-forward"
            ),
        )
    lines.append(
        "reached through the API server: its proxy adds latency and has a ceiling of its own"
    )
    return replace(http_call, headers={**http_call.headers, **headers}, ca_file=authority)
