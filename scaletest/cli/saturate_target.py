"""What scaletest saturate loads: a URL, a Service of the cluster, or a queue; and what is looked at
before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from scaletest.analysis.saturation.step import Assessed
    from scaletest.load.http_call import HttpCall
    from scaletest.load.level_load import LevelLoad
    from scaletest.load.payloads import Payloads
    from scaletest.model.saturation import SaturationPlan


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
    after: Callable[[Assessed], list[str]] = field(default=lambda found: [])
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
        from scaletest.load.http_call import CAUSES
        from scaletest.load.level_load import LoadOrder

        found = load.measure(
            LoadOrder(60.0, parallel=1, count=1), lambda: False, lambda ended, failed: None
        )
        last = next((one for one in found.samples if one.final), None)
        if last is None or last.ok:
            return
        cause, hint = CAUSES.get(
            last.outcome, ("the service does not serve this request", "read its log")
        )
        what = f"HTTP {last.outcome}" if last.outcome.isdigit() else last.outcome
        raise UsageError(f"the first call failed ({what}): {cause}", hint=hint)


def target(given: dict[str, Any], plan: SaturationPlan) -> Target:
    """Look at what was named; nothing is changed yet."""
    if given["queue"]:
        from scaletest.cli.saturate_queue import target as queue

        return queue(given, plan)
    if given["service"]:
        from scaletest.cli.saturate_service import target as service

        return service(given, plan)
    from scaletest.system.listeners import is_here, servers

    made = call(given, plan, given["url"])
    parts = urlsplit(made.url)
    port, host = parts.port or (443 if parts.scheme == "https" else 80), parts.hostname or ""
    local = is_here(host)

    def processes() -> Sequence[int]:
        return servers(port) if local else ()

    return replace(over_http(given, plan, made), servers=processes, port=port, is_here=local)


def over_http(
    given: dict[str, Any], plan: SaturationPlan, made: HttpCall, shown: tuple[str, ...] = ()
) -> Target:
    """A target that is reached by this call, from this process or from agents."""

    def make(stack: ExitStack) -> LevelLoad:
        from scaletest.load.http import HttpLoad
        from scaletest.system.effort import raise_open_files

        if plan.agents > 1 or given["agent_jobs"]:
            from scaletest.cli import saturate_agent

            wanted = saturate_agent.over_http(made, payloads(given), plan.agents)
            return saturate_agent.together(given, plan, wanted, stack)
        # as many sockets as requests are in flight, and some for everything else
        if raise_open_files(made.connections + 64) < made.connections + 64:
            raise UsageError(
                f"this process may not open {made.connections} connections",
                hint="raise ulimit -n, or give --max-in-flight",
            )
        return HttpLoad(made, payloads(given))

    return Target(shown, make)


def call(
    given: dict[str, Any], plan: SaturationPlan, url: str, extra: dict[str, str] | None = None
) -> HttpCall:
    """The request that the options describe. InvalidValue for what cannot be one."""
    from scaletest.load.http_call import HttpCall

    checks.http_url(url, "the service's URL")
    method = given["method"]
    if method and not (method.isascii() and method.isalpha()):
        raise InvalidValue(
            f"--method {method[:40]!r} is no method of HTTP", hint="give GET, POST or another word"
        )
    headers = {"User-Agent": plan.client_name, **_headers(given), **(extra or {})}
    carries = bool(given["payload"] or given["payload_provider"])
    if carries and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return HttpCall(
        url,
        (method or ("POST" if carries else "GET")).upper(),
        headers,
        plan.timeout_s,
        plan.retries,
        plan.max_in_flight,
        given["http2"],
        given["server_header"],
        given["pod_header"],
        given["ca_file"],
    )


def payloads(given: dict[str, Any]) -> Payloads:
    """What requests carry."""
    from scaletest.load.payloads import Payloads, file, provided

    if given["payload"] and given["payload_provider"]:
        raise UsageError(
            "--payload and --payload-provider exclude each other", hint="give one of them"
        )
    if given["payload_provider"]:
        return provided(given["payload_provider"])
    return Payloads(file(given["payload"])) if given["payload"] else Payloads()


def _headers(given: dict[str, Any]) -> dict[str, str]:
    found = {}
    for text in given["headers"]:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(ord(one) < 32 for one in text):
            raise InvalidValue(
                f"--header {name[:40]!r} is no header", hint="write --header 'NAME: VALUE'"
            )
        found[name.strip()] = value.strip()
    if given["token_file"]:
        try:
            token = Path(given["token_file"]).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"--token-file {given['token_file']} cannot be read: {error}"
            ) from error
        if not token or any(ord(one) < 33 for one in token):
            raise UsageError(
                f"--token-file {given['token_file']} holds no token",
                hint="one line, the token alone",
            )
        found["Authorization"] = f"Bearer {token}"
    return found
