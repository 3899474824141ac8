"""Edits of YAML that people write: one value is set, and all other lines stay as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from scaletest.documents import reader
from scaletest.model.errors import InvalidValue

Path = tuple[str, ...]
BY_HAND = "edit it by hand"


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1, of each key of the maps in a valid document, by the keys that lead to
    it.
    """
    return {path: key.start_mark.line + 1 for path, key, _ in _keys(_root(text), ())}


def with_value(text: str, path: Path, value: Any, name: str) -> str:
    """The text of a document with that value for the key that the path leads to. Comments and order
    stay; a commented line of the key, as in `# key: 1`, gets the new line below it.

    name: what the text is, for messages. InvalidValue when it is no map, or cannot be edited so.
    """
    expected = _merged(reader.read(text, name), path, value, name)
    for edited in _attempts(text, path, value):
        try:
            if reader.read(edited, name) == expected:
                return edited
        except InvalidValue:
            continue
    raise InvalidValue(f"{'.'.join(path)} cannot be set in {name}", hint=BY_HAND)


def _merged(document: Any, path: Path, value: Any, name: str = "") -> dict[str, Any]:
    """The map with the value there. name: that of the map, for InvalidValue when it is none."""
    if document is not None and not isinstance(document, dict):
        raise InvalidValue(f"{name} holds no map of keys", hint=BY_HAND)
    base, first, rest = document or {}, path[0], path[1:]
    if not rest:
        return {**base, first: value}
    return {**base, first: _merged(base.get(first), rest, value, f"{first} of {name}")}


def _root(text: str) -> yaml.Node | None:
    return yaml.compose(text, yaml.SafeLoader)


def _keys(node: yaml.Node | None, path: Path) -> Iterator[tuple[Path, yaml.Node, yaml.Node]]:
    """The path, key and value of each key at any depth."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            yield inner, key, value
            yield from _keys(value, inner)


class _Place(NamedTuple):
    """The deepest of a path's maps that the text has, and the keys that are to be added to it.

    begin: where the text of its keys may begin. indent: spaces before them.
    """

    node: yaml.Node | None
    begin: int
    indent: int
    missing: Path


def _attempts(text: str, path: Path, value: Any) -> Iterator[str]:
    """Texts that may hold the value, the best first."""
    root = _root(text)
    by_path = {below: (key, node) for below, key, node in _keys(root, ())}
    if path in by_path:
        yield _replaced(text, *by_path[path], value)
        return
    depth = len(path) - 1
    while depth and path[:depth] not in by_path:
        depth -= 1
    place = _Place(root, 0, 0, path)
    if depth:
        key, node = by_path[path[:depth]]
        place = _Place(node, key.end_mark.index, key.start_mark.column + 2, path[depth:])
        if isinstance(node, yaml.ScalarNode) and node.value:  # null, spelled out
            yield _replaced(text, key, node, _merged(None, place.missing, value))
    inner = place.node
    if isinstance(inner, yaml.MappingNode):
        place = place._replace(indent=inner.start_mark.column)
        if inner.flow_style:
            yield _in_braces(text, inner, place.missing, value)
    yield from _below_comment(text, place, value)
    yield _below(text, place, value)


def _replaced(text: str, key: yaml.Node, node: yaml.Node, value: Any) -> str:
    begin, end, written = node.start_mark.index, _end(text, node), _written(value)
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        # the lines of a list or map give way to one behind the colon, before its comment
        colon = text.index(":", key.end_mark.index) + 1
        first = text.rindex("\n", 0, begin) + 1
        return f"{text[:colon]} {written}{text[colon:first]}{text[_line_end(text, end) :]}"
    if begin == end:
        written = f" {written}"
    return f"{text[:begin]}{written}{text[end:]}"


def _in_braces(text: str, node: yaml.MappingNode, missing: Path, value: Any) -> str:
    """The new key as the last in the braces."""
    end = node.end_mark.index - 1
    written = _written(_merged(None, missing, value))[1:-1]
    if node.value:
        written = f", {written}"
    return f"{text[:end].rstrip()}{written}{text[end:]}"


def _below_comment(text: str, place: _Place, value: Any) -> Iterator[str]:
    """The new key below a comment that shows it, where there is one at its depth."""
    if len(place.missing) > 1:
        return
    pattern = rf"^{' ' * place.indent}# ?{re.escape(place.missing[0])}:.*$\n?"
    for comment in re.finditer(pattern, text[place.begin :], re.MULTILINE):
        yield _inserted(text, place.begin + comment.end(), place, value)


def _below(text: str, place: _Place, value: Any) -> str:
    """The new key after the last one of its map, else below the map's own key, else at the end."""
    at = len(text)
    if isinstance(place.node, yaml.MappingNode):
        at = _line_end(text, _end(text, place.node))
    elif place.begin:
        at = _line_end(text, place.begin)
    # comments that are indented deeper belong to a map inside
    inner = re.compile(rf"(?: {{{place.indent + 1},}}#.*\n?)*").match(text, at)
    return _inserted(text, inner.end() if inner else at, place, value)


def _inserted(text: str, at: int, place: _Place, value: Any) -> str:
    before, end, block = text[:at], "\n", []
    if before.endswith("\r\n"):
        end = "\r\n"
    elif before and not before.endswith("\n"):
        before += end
    for depth, name in enumerate(place.missing):
        block.append(f"{' ' * (place.indent + 2 * depth)}{_written(name)}:")
    block[-1] += f" {_written(value)}"
    return f"{before}{end.join(block)}{end}{text[at:]}"


def _end(text: str, node: yaml.Node) -> int:
    """Where the text of a value ends; a list or map of lines ends with its last value."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        if isinstance(node, yaml.MappingNode):
            _, last = last
        return _end(text, last)
    begin, end = node.start_mark.index, node.end_mark.index
    return int(begin + len(text[begin:end].rstrip()))


def _line_end(text: str, index: int) -> int:
    """Where the next line begins."""
    return text.find("\n", index) + 1 or len(text)


def _written(value: Any) -> str:
    """A value as YAML in one line: text of several lines is quoted, with escapes, and so is a line
    break that only YAML knows, such as U+0085.
    """
    for style, is_readable in ((None, True), ('"', True), ('"', False)):
        text = yaml.safe_dump(
            value,
            default_flow_style=True,
            default_style=style,
            width=1_000_000,
            allow_unicode=is_readable,
            sort_keys=False,
        )
        text = text.removesuffix("\n").removesuffix("\n...")
        if len(text.splitlines()) < 2 and yaml.safe_load(text) == value:
            break
    return text
