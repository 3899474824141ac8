"""What options say about requests over HTTP, and the call that they make."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from scaletest.load.http_call import HttpCall
from scaletest.load.payloads import read_payloads
from scaletest.load.prompts import PATHS, Prompts
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What requests are over HTTP."""

    method: str
    payload: str
    headers: tuple[str, ...]
    server_header: str
    openai: str | None = None  # chat or completions; None for any other request
    model: str = ""
    prompt_tokens: int = 0
    output_tokens: int = 0
    shared_prefix: int = 0
    replica_header: str = ""

    def make_call(self, url: str, timeout_s: float, connections: int) -> HttpCall:
        """Return the request that these options describe. InvalidValue for what cannot be one."""
        checks.http_url(url, "the service's URL")
        method = self.method
        if method and not (method.isascii() and method.isalpha()):
            raise InvalidValue(
                f"<method> {method[:40]!r} is not an HTTP method",
                hint="give GET, POST or another word",
            )
        has_body = bool(self.payload or self.openai)
        headers = {"User-Agent": "scaletest", **read_headers(self.headers)}
        if has_body and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
        return HttpCall(
            openai_url(url, self.openai),
            (method or ("POST" if has_body else "GET")).upper(),
            headers,
            timeout_s,
            connections,
            self.server_header,
            is_stream=bool(self.openai),
            replica_header=self.replica_header,
        )

    def make_bodies(self) -> "tuple[list[bytes | None], Prompts | None]":
        """Return bodies that are sent in turn, or what makes them. UsageError if unreadable."""
        if not self.openai:
            if self.model:
                raise UsageError(
                    "<model> is for an OpenAI-compatible service", hint="give <openai>, too"
                )
            return read_payloads(self.payload).bodies, None
        if self.payload or not self.model:
            reason = "<payload> and <openai> exclude each other" if self.payload else "no <model>"
            raise UsageError(reason, hint="give <openai> with <model>, or <payload>")
        return [None], Prompts(
            self.openai, self.model, self.prompt_tokens, self.output_tokens, self.shared_prefix
        )


def openai_url(url: str, openai: str | None) -> str:
    """Add the path of an OpenAI-compatible endpoint to an address that has none."""
    parts = urlsplit(url)
    if not openai or parts.path.rstrip("/") not in ("", "/v1"):
        return url
    return urlunsplit(parts._replace(path=PATHS[openai]))


def read_headers(texts: Sequence[str]) -> dict[str, str]:
    """Parse headers, of which credentials come from files: others can read a command line."""
    lines = []
    for text in texts:
        if not text.startswith("@"):
            lines.append(text)
            continue
        try:
            lines += Path(text[1:]).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"<header> {text} cannot be read: {error}") from error
    headers = {}
    for text in lines:
        name, colon, value = text.partition(":")
        if not colon or not name.strip() or any(ord(letter) < 32 for letter in text):
            raise InvalidValue(
                f"<header> {name[:40]!r} is no header",
                hint="write <header> 'NAME: VALUE', or <header> @FILE with such lines",
            )
        headers[name.strip()] = value.strip()
    return headers
