"""A service over HTTP as a target: the request that options describe, and its load."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad
from scaletest.load.payloads import read_payloads
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.observe.sockets import is_here, servers
from scaletest.saturation.measure.agent import HttpWork
from scaletest.saturation.measure.agents import start_load
from scaletest.saturation.measure.target import Target, in_flight_of_agent
from scaletest.saturation.options import AgentOptions, HttpOptions
from scaletest.saturation.plan import SaturationPlan


@dataclass(frozen=True, slots=True)
class NamedUrl:
    """A URL that options name."""

    url: str
    http: HttpOptions
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
            servers=lambda: servers(port) if local else (),
            port=port,
            is_here=local,
        )


def http_load(
    http: HttpOptions, agents: AgentOptions, plan: SaturationPlan, call: HttpCall
) -> Callable[[ExitStack], LevelLoad]:
    """Return what starts the load of this call, from this process or from agents."""

    def start(stack: ExitStack) -> LevelLoad:
        return start_load(agents, plan, HttpWork(call, read_payloads(http.payload).bodies), stack)

    return start


def http_call(http: HttpOptions, plan: SaturationPlan, url: str) -> HttpCall:
    """Return the request that these options describe. InvalidValue for what cannot be one."""
    checks.http_url(url, "the service's URL")
    method = http.method
    if method and not (method.isascii() and method.isalpha()):
        raise InvalidValue(
            f"<method> {method[:40]!r} is no method of HTTP", hint="give GET, POST or another word"
        )
    # credentials come from files, since others can read a command line
    lines = []
    for text in http.headers:
        if not text.startswith("@"):
            lines.append(text)
            continue
        try:
            lines += Path(text[1:]).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"<header> {text} cannot be read: {error}") from error
    headers = {"User-Agent": "scaletest"}
    for text in lines:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(ord(letter) < 32 for letter in text):
            raise InvalidValue(
                f"<header> {name[:40]!r} is no header",
                hint="write <header> 'NAME: VALUE', or <header> @FILE with such lines",
            )
        headers[name.strip()] = value.strip()
    if http.payload and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return HttpCall(
        url,
        (method or ("POST" if http.payload else "GET")).upper(),
        headers,
        plan.timeout_s,
        in_flight_of_agent(plan.max_in_flight, plan.agents),
        http.server_header,
    )
