"""Rules of all fields that come from outside. A check returns the value or raises InvalidValue."""

import re
import sys
from collections.abc import Iterable
from urllib.parse import urlsplit

from scaletest.model.errors import InvalidValue, suggestion
from scaletest.model.texts import as_yaml

# A slash separates two parts, so that the name can stand in a URL as it is: no part is empty, and
# none is "..", which would lead to a parent.
QUEUE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]|/(?=[A-Za-z0-9])){0,99}")
# RQ accepts letters, digits, underscore and dash in a job id.
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
WORKER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# Control characters would corrupt logs and terminals; NUL cannot be passed to a program at all.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

MAX_ARGUMENT_BYTES = 4096
MAX_TIME_LIMIT_S = 30 * 86400.0
MAX_ERROR_CHARACTERS = 2000


def queue_name(name: str) -> str:
    """Check a queue name: 1 to 100 letters, digits, dots, underscores, dashes and slashes.

    The first character, and each after a slash, is a letter or a digit.
    """
    return _check_pattern(
        name,
        QUEUE_NAME,
        "queue name",
        "use 1 to 100 letters, digits, '.', '_', '-' or '/', a letter or digit first and after"
        " a '/'",
    )


def request_id(text: str) -> str:
    """Check a request id: what RQ accepts as a job id, 128 characters at most."""
    return _check_pattern(text, REQUEST_ID, "request id", "use letters, digits, '_' and '-' only")


def worker_name(name: str) -> str:
    """Check a worker name: like a queue name without slashes, 128 characters at most.

    It becomes part of Redis keys and of lease members.
    """
    return _check_pattern(
        name, WORKER_NAME, "worker name", "use letters, digits, '.', '_' and '-' only"
    )


def _check_pattern(text: object, pattern: re.Pattern[str], subject: str, hint: str) -> str:
    """Check that all of a text fits the pattern. subject: as the error calls it."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise InvalidValue(f"invalid {subject} {show_value(text)}", hint=hint)
    return text


def arguments(values: Iterable[str], limit_bytes: int = MAX_ARGUMENT_BYTES) -> tuple[str, ...]:
    """Check workload arguments: text without control characters (tab and newline are allowed).

    limit_bytes: at most this many in all, as UTF-8.
    """
    texts = tuple(values)
    size = 0
    for text in texts:
        if not isinstance(text, str):
            raise InvalidValue(
                f"argument {show_value(text)} is not text", hint="pass every argument as a string"
            )
        if CONTROL.search(text):
            raise InvalidValue(
                f"argument {show_value(text)} contains a control character",
                hint="put binary data in a file and pass its path",
            )
        try:
            size += len(text.encode())
        except UnicodeEncodeError as error:
            # Python keeps bytes of a command line that are not UTF-8 as surrogates
            raise InvalidValue(
                f"argument {show_value(text)} is not valid Unicode", hint="pass UTF-8 text"
            ) from error
    if size > limit_bytes:
        raise InvalidValue(
            f"the arguments are {size} bytes long, more than the limit of {limit_bytes}",
            hint="put large input in a file and pass its path",
        )
    return texts


def seconds(
    value: float, name: str, *, maximum: float = MAX_TIME_LIMIT_S, zero: bool = True
) -> float:
    """Check a finite duration in seconds, from 0 (or above 0) to `maximum`."""
    return number(value, name, maximum=maximum, zero=zero, noun="seconds")


def number(
    value: float,
    name: str,
    *,
    maximum: float,
    minimum: float = 0.0,
    zero: bool = False,
    noun: str = "a number",
) -> float:
    """Check a finite number, from `minimum` to `maximum`.

    zero: whether it may be 0 where that is the minimum. noun: what to give, for the hint.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # whole numbers may be larger than any float
    is_finite = is_number and abs(value) <= sys.float_info.max
    above_zero = not zero and minimum == 0
    if not is_finite or not minimum <= value <= maximum or (value == 0 and above_zero):
        first = "above 0" if above_zero else f"from {minimum:g}"
        raise InvalidValue(
            f"{name} is {show_value(value)}", hint=f"give {noun} {first} to {maximum:g}"
        )
    return float(value)


def http_url(address: str, name: str) -> str:
    """Check an HTTP or HTTPS URL: it has a host, a possible port and no blanks."""
    try:
        parts = urlsplit(address)
        # the port of an address that cannot have it is a ValueError when it is asked for
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http or any(character.isspace() for character in address) or CONTROL.search(address):
        raise InvalidValue(
            f"{name} is {show_value(address)}, not an HTTP URL", hint="give http://HOST[:PORT]/PATH"
        )
    return address


def count(value: int, name: str, *, minimum: int = 0, maximum: int = 1_000_000_000) -> int:
    """Check a whole number from `minimum` to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidValue(
            f"{name} is {show_value(value)}, not a whole number", hint="give a whole number"
        )
    if not minimum <= value <= maximum:
        raise InvalidValue(
            f"{name} is {show_value(value)}", hint=f"give a number from {minimum} to {maximum}"
        )
    return value


def one_of(name: str, known: Iterable[str], kind: str) -> str:
    """Check that a name is one of the known ones; InvalidValue suggests the nearest.

    kind: what they are names of.
    """
    names = list(known)
    if name not in names:
        raise InvalidValue(
            f"there is no {kind} {cut_text(repr(name), 60)}", hint=suggestion(name, names)
        )
    return name


def raise_first_mistake(*mistakes: tuple[object, str, str]) -> None:
    """Raise InvalidValue for the first mistake that is there: whether it is, message and hint."""
    for is_there, message, hint in mistakes:
        if is_there:
            raise InvalidValue(message, hint=hint)


def escape_unprintable(text: str, keep: str = "") -> str:
    """Return text that cannot control a terminal, with escapes for control characters.

    Text from Redis, from an imported run or from a program passes through here before it is shown.
    keep: characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable() or character in keep
        else character.encode("unicode_escape").decode()
        for character in text
    )


def cut_text(text: str, limit: int = MAX_ERROR_CHARACTERS) -> str:
    """Return text safe for a log line or reply: control characters escaped, cut in its middle."""
    safe = escape_unprintable(text)
    if len(safe) <= limit:
        return safe
    half = (limit - 5) // 2
    return f"{safe[:half]} ... {safe[-half:]}"


def show_value(value: object) -> str:
    """Return a value as an error shows it: text in quotes, anything else as YAML writes it."""
    try:
        return cut_text(repr(value) if isinstance(value, str | float) else as_yaml(value), 80)
    except (ValueError, RecursionError):
        # a number of more digits than Python writes, or lists within lists
        return f"an over-long or too deep {type(value).__name__}"
