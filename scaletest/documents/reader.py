"""The one reader of YAML and JSON that people write: strict, and bounded in size and depth."""

import contextlib
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError

MOST_BYTES = 1_000_000
MOST_DEPTH = 100
# Aliases multiply what a short text holds.
MOST_VALUES = 1_000_000


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice: one of the two would be lost without a word."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        names = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else None
            # << merges another mapping, as often as it stands there
            if name in names and key.value != "<<":
                raise yaml.MarkedYAMLError(
                    problem=f"{checks.cut_text(key.value, 60)!r} stands twice",
                    problem_mark=key.start_mark,
                )
            names.add(name)
        return node


def text_of(path: str | Path, name: str, hint: str, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file; - is standard input.

    name: what it is, for messages. most_bytes: how long it may be. UsageError when it cannot be
    read, InvalidValue when it is too long or no text.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(most_bytes + 1)
        else:
            # no size is asked for first: the file may be a pipe, as of <(...)
            with Path(path).open("rb") as file:
                data = file.read(most_bytes + 1)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}", hint=hint) from error
    if len(data) > most_bytes:
        raise InvalidValue(f"{name} is longer than {most_bytes} bytes", hint=hint)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(f"{name} is not text", hint="write it as YAML in UTF-8") from error


def read_file(path: str | Path, name: str, hint: str) -> Any:
    """Return the value of a file with one document at most, as `text_of` and `read` give it."""
    return read(text_of(path, name, hint), name, hint)


def read(text: str, name: str, hint: str = "correct it") -> Any:
    """Return the value of a text with one document at most; None when it is empty.

    InvalidValue for anything else.
    """
    documents = read_all(text, name, hint)
    if len(documents) > 1:
        raise InvalidValue(f"{name} holds {len(documents)} documents", hint="give one alone")
    return next(iter(documents), None)


def read_all(text: str, name: str, hint: str = "correct it") -> list[Any]:
    """Return the documents of a YAML or JSON text, without empty ones. Raises InvalidValue.

    name: what the text is, for messages.
    """
    place = ""
    try:
        values = []
        if text.startswith("{"):
            # YAML reads JSON too, but not the pairs in which JSON escapes characters beyond 16 bits
            with contextlib.suppress(ValueError, RecursionError):
                values = [json.loads(text, object_pairs_hook=_table_of)]
        if not values:
            values = [value for value in yaml.load_all(text, _Loader) if value is not None]
        # aliases are counted as often as they stand there
        if sum(1 for _ in itertools.islice(_walk(values), MOST_VALUES + 1)) > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES} values")
        return values
    except yaml.MarkedYAMLError as error:
        problem, mark = error.problem, error.problem_mark
        place = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    except RecursionError:
        problem = "it nests too deeply"
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as error:
        # PyYAML does not check what a tag such as !!int or !!timestamp stands before
        problem = str(error).partition("\n")[0]
    remedy = "leave one of the two out" if problem and problem.endswith("stands twice") else hint
    raise InvalidValue(f"{name} is not valid YAML{place}: {problem}", hint=remedy)


def _table_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. ValueError when a key comes twice: YAML's reader then names it."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("duplicate key")
    return table


def _walk(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield a value and all within it; RecursionError when it nests too deeply, or holds itself."""
    if depth > MOST_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        # an escape can make half of a pair of surrogates, which raises a ValueError
        value.encode()
    yield value
    if isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _walk(inner, depth + 1)
