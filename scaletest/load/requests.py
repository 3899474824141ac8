"""What options say about requests over HTTP, and the call that they make."""

import re
from collections.abc import Sequence
from pathlib import Path

from scaletest.load.http_call import HttpCall
from scaletest.load.payloads import read_payloads
from scaletest.load.prompts import Prompts
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.http_options import PATHS, HttpOptions
from scaletest.model.masking import HIDDEN, mask_passwords

_SECRETS = ("--header", "-H")
_BASE = re.compile(r"\w+://[^/?#]*(/api/v1/namespaces/[^/]+/services/[^/]+/proxy)?")


def make_call(http: HttpOptions, url: str, timeout_s: float, connections: int) -> HttpCall:
    """Return the request that these options describe. InvalidValue for what cannot be one."""
    checks.http_url(url, "the service's URL")
    method = http.method
    if method and not (method.isascii() and method.isalpha()):
        raise InvalidValue(
            f"<method> {method[:40]!r} is not an HTTP method",
            hint="give GET, POST or another word",
        )
    has_body = bool(http.payload or http.openai)
    headers = {"User-Agent": "scaletest", **read_headers(http.headers)}
    if has_body and not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return HttpCall(
        openai_url(url, http.openai),
        (method or ("POST" if has_body else "GET")).upper(),
        headers,
        timeout_s,
        connections,
        is_stream=bool(http.openai),
        replica_header=http.replica_header,
    )


def make_bodies(http: HttpOptions) -> tuple[list[bytes | None], Prompts | None]:
    """Return bodies that are sent in turn, or what makes them. UsageError if unreadable."""
    if not http.openai:
        if http.model:
            raise UsageError(
                "<model> is for an OpenAI-compatible service", hint="give <openai>, too"
            )
        return read_payloads(http.payload), None
    if http.payload or not http.model:
        reason = "<payload> and <openai> exclude each other" if http.payload else "no <model>"
        raise UsageError(reason, hint="give <openai> with <model>, or <payload>")
    return [None], Prompts(
        http.openai, http.model, http.prompt_tokens, http.output_tokens, http.shared_prefix
    )


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the values of headers and queries, and without logins."""
    shown = []
    is_secret = False  # whether the option before this word says so
    for word in arguments:
        if is_secret or word.startswith("--header=") or (word.startswith("-H") and len(word) > 2):
            word = word.partition(":")[0] + f": {HIDDEN}"
        is_secret = word in _SECRETS
        shown.append(mask_passwords(word, service=True) if "://" in word else word)
    return shown


def openai_url(url: str, openai: str | None) -> str:
    """Add the path of an OpenAI-compatible endpoint to an address that has none."""
    base, path = split_base(url)
    return url if not openai or path.rstrip("/") not in ("", "/v1") else base + PATHS[openai]


def split_base(url: str) -> tuple[str, str]:
    """Return an address up to its host, or to where the API server forwards it, and the rest."""
    match = _BASE.match(url)
    end = match.end() if match else len(url)
    return url[:end], url[end:]


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
                f"invalid <header> {name[:40]!r}",
                hint="write <header> 'NAME: VALUE', or <header> @FILE with such lines",
            )
        headers[name.strip()] = value.strip()
    return headers
