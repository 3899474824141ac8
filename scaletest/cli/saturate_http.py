"""scaletest saturate --url: what is loaded, and the calls and payloads of a load over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from scaletest.analysis.saturation.step import Assessed
from scaletest.cli.saturate_options import HttpOptions, SaturateOptions
from scaletest.load.http import HttpLoad
from scaletest.load.http_call import CAUSES, HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.load.payloads import Payloads, file, provided
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.saturation import SaturationPlan
from scaletest.saturation.agent_start import AgentSettings, http_work, start_agents
from scaletest.system.effort import raise_open_files


@dataclass(frozen=True, slots=True)
class Target:
    """shown: what was found about it. make: its load, to be closed. enter: what must be done
    before, and undone.

    servers: the first processes of the service, when they are on this machine and may be seen.
    port: where they serve.
    is_here: whether the service is on this machine.
    replicas: pods that serve it, 0 when that is unknown. after: what is found out when a step is
    done, in lines.
    """

    shown: tuple[str, ...]
    make: Callable[[ExitStack], LevelLoad]
    enter: Callable[[ExitStack], None] = field(default=lambda stack: None)
    replicas: int = 0
    after: Callable[[Assessed], list[str]] = field(default=lambda step: [])
    servers: Callable[[], Sequence[int]] = field(default=lambda: ())
    port: int = 0
    is_here: bool = False

    def set_up(self, stack: ExitStack) -> LevelLoad:
        """The load; taken down with the stack."""
        self.enter(stack)
        load = self.make(stack)
        stack.callback(load.close)
        return load

    def probe(self, load: LevelLoad) -> None:
        """One call. UsageError with the likely cause when it fails: endpoint, schema or credentials
        are wrong then.
        """
        result = load.measure(
            LoadOrder(60.0, parallel=1, count=1), lambda: False, lambda ended, failed: None
        )
        last = next((sample for sample in result.samples if sample.final), None)
        if last is None or last.ok:
            return
        cause, hint = CAUSES.get(
            last.outcome, ("the service does not serve this request", "read its log")
        )
        outcome = f"HTTP {last.outcome}" if last.outcome.isdigit() else last.outcome
        raise UsageError(f"the first call failed ({outcome}): {cause}", hint=hint)


def agent_settings(options: SaturateOptions, plan: SaturationPlan) -> AgentSettings:
    """Where the load agents of a plan run."""
    return AgentSettings(
        plan.agents,
        options.redis_url,
        options.ready_timeout,
        options.agents.agent_jobs,
        options.agents.agent_cpu,
        options.cluster.namespace,
        options.cluster.context,
    )


def over_http(
    options: SaturateOptions,
    plan: SaturationPlan,
    http_call: HttpCall,
    shown: tuple[str, ...] = (),
) -> Target:
    """A target that is reached by this call, from this process or from agents."""

    def make(stack: ExitStack) -> LevelLoad:
        if plan.agents > 1 or options.agents.agent_jobs:
            work = http_work(http_call, payloads(options.http), plan.agents)
            return start_agents(agent_settings(options, plan), work, stack)
        # as many sockets as requests are in flight, and some for everything else
        sockets = http_call.connections + 64
        if raise_open_files(sockets) < sockets:
            raise UsageError(
                f"this process may not open {http_call.connections} connections",
                hint="raise ulimit -n, or give --max-in-flight",
            )
        return HttpLoad(http_call, payloads(options.http))

    return Target(shown, make)


def call(
    http: HttpOptions, plan: SaturationPlan, url: str, extra: dict[str, str] | None = None
) -> HttpCall:
    """The request that these options describe. InvalidValue for what cannot be one."""
    checks.http_url(url, "the service's URL")
    method = http.method
    if method and not (method.isascii() and method.isalpha()):
        raise InvalidValue(
            f"--method {method[:40]!r} is no method of HTTP", hint="give GET, POST or another word"
        )
    headers = {"User-Agent": plan.client_name, **_headers(http), **(extra or {})}
    carries = bool(http.payload or http.payload_provider)
    if carries and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return HttpCall(
        url,
        (method or ("POST" if carries else "GET")).upper(),
        headers,
        plan.timeout_s,
        plan.retries,
        plan.max_in_flight,
        http.http2,
        http.server_header,
        http.pod_header,
        http.ca_file,
    )


def payloads(http: HttpOptions) -> Payloads:
    """What requests carry."""
    if http.payload and http.payload_provider:
        raise UsageError(
            "--payload and --payload-provider exclude each other", hint="give one of them"
        )
    if http.payload_provider:
        return provided(http.payload_provider)
    return Payloads(file(http.payload)) if http.payload else Payloads()


def _headers(http: HttpOptions) -> dict[str, str]:
    headers = {}
    for text in http.headers:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(ord(letter) < 32 for letter in text):
            raise InvalidValue(
                f"--header {name[:40]!r} is no header", hint="write --header 'NAME: VALUE'"
            )
        headers[name.strip()] = value.strip()
    if http.token_file:
        try:
            token = Path(http.token_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--token-file {http.token_file} cannot be read: {error}") from error
        if not token or any(ord(letter) < 33 for letter in token):
            raise UsageError(
                f"--token-file {http.token_file} holds no token",
                hint="one line, the token alone",
            )
        headers["Authorization"] = f"Bearer {token}"
    return headers
