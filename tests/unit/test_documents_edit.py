"""Edits of YAML: the value is set, and every other line stays as it was."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scaletest.documents.edit import lines_of, with_value
from scaletest.model.errors import InvalidValue

NAMES = st.sampled_from(["a", "limit", "redis_url", "on", "1", "deletion-cost", "null"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["# no comment", "a: b", "500ms", "no", " x ", "é\n", "'", '"', "*a", "&a", "{"]
    ),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document as people write one: maps of maps, lists, comments and empty lines."""
    return "".join(f"{line}\n" for line in lines(draw, 0))


def lines(draw: st.DrawFn, depth: int) -> list[str]:
    indent, written = "  " * depth, []
    for name in draw(st.lists(NAMES, unique=True, max_size=3)):
        if draw(st.booleans()):
            written.append(f"{indent}# about {name} ({depth})")
        if draw(st.booleans()):
            written.append(f"{indent}# {name}: 1")
        key = f"{indent}{yaml.safe_dump(name).partition(chr(10))[0]}:"
        comment = draw(st.sampled_from(["", "  # why"]))
        shape = draw(st.sampled_from(["scalar", "list", "map", "empty", "flow", "text"]))
        if shape == "scalar":
            value = yaml.safe_dump(draw(SCALARS), width=10**6, default_style='"')
            # quotes would make text of a number, which is as good
            written.append(f"{key} {value.strip()}{comment}")
        elif shape == "list":
            written += [f"{key}{comment}", f"{indent}- x", f"{indent}- 2"]
        elif shape == "flow":
            written.append(f"{key} {{p: 1, q: [2, 3]}}{comment}")
        elif shape == "text":
            written += [f"{key} |", f"{indent}  # limit: in a text", f"{indent}  line"]
        else:
            inner = lines(draw, depth + 1) if shape == "map" and depth < 2 else []
            written += [f"{key}{comment}", *inner, *draw(st.sampled_from([[], [""]]))]
    return written


def at(document: Any, path: tuple[str, ...]) -> Any:
    """The value there; None without one."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def merged(document: Any, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    base = dict(document) if isinstance(document, dict) else {}
    inner = merged(base.get(path[0]), path[1:], value) if path[1:] else value
    return {**base, path[0]: inner}


@settings(max_examples=500)
@given(documents(), PATHS, VALUES)
def test_only_the_value_of_the_key_changes(text: str, path: tuple[str, ...], value: Any) -> None:
    before = yaml.safe_load(text)
    assume(all(isinstance(at(before, path[:end]), dict | type(None)) for end in range(len(path))))
    assume(not isinstance(at(before, path), dict))
    edited = with_value(text, path, value, "it")
    assert yaml.safe_load(edited) == merged(before, path, value)
    # all comments are left, in their order; those in a text are none
    pattern = r"# (?:about .*|\w+: 1$|why)"
    assert re.findall(pattern, edited, re.M) == re.findall(pattern, text, re.M)
    assert len(edited.splitlines()) <= len(text.splitlines()) + len(path)


@settings(max_examples=200)
@given(documents(), st.lists(st.tuples(PATHS, SCALARS), max_size=4))
def test_edits_follow_each_other(text: str, edits: list[tuple[tuple[str, ...], Any]]) -> None:
    expected = yaml.safe_load(text)
    for path, value in edits:
        if any(not isinstance(at(expected, path[:n]), dict | type(None)) for n in range(len(path))):
            with pytest.raises(InvalidValue, match="holds no map of keys"):
                with_value(text, path, value, "it")
            continue
        text = with_value(text, path, value, "it")
        expected = merged(expected, path, value)
        assert yaml.safe_load(text) == expected


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("", "limit", 8, "limit: 8\n"),
        ("# only\n", "validate.limit", 8, "# only\nvalidate:\n  limit: 8\n"),
        ("limit: 4  # why\nb: 1\n", "limit", 8, "limit: 8  # why\nb: 1\n"),
        ("limit:  # why\nb: 1\n", "limit", 8, "limit: 8  # why\nb: 1\n"),
        ("v:\n  # limit: 4\n  # b: 1\n", "v.limit", 8, "v:\n  # limit: 4\n  limit: 8\n  # b: 1\n"),
        ("v:\n    a: 1 # x\nw:\n", "v.b", 2, "v:\n    a: 1 # x\n    b: 2\nw:\n"),
        ("v: {a: 1}\n", "v.b", "x y", "v: {a: 1, b: x y}\n"),
        ("v: {}\n", "v.w.b", [1], "v: {w: {b: [1]}}\n"),
        ("v: # k\n- 1\n- 2\nw: 3\n", "v", [4], "v: [4] # k\nw: 3\n"),
        ("v: |\n  a\n  b\n\n# end\nw: 3\n", "v", "c", "v: c\n\n# end\nw: 3\n"),
        ("a: 1\r\n", "b", 2, "a: 1\r\nb: 2\r\n"),
        ("a: 1", "a", "no", "a: 'no'"),
        ("a: 1", "b", 2, "a: 1\nb: 2\n"),
        ("t: |\n  # b: 1\n", "b", 2, "t: |\n  # b: 1\nb: 2\n"),
        # comments of a map inside stay with it
        ("v:\n  w:\n    # a: 1\n", "x.b", 2, "v:\n  w:\n    # a: 1\nx:\n  b: 2\n"),
        ("v:\n  w: {}\n    # a\n  # c\n", "v.b", 2, "v:\n  w: {}\n    # a\n  b: 2\n  # c\n"),
    ],
)
def test_what_an_edit_looks_like(before: str, path: str, value: Any, after: str) -> None:
    assert with_value(before, tuple(path.split(".")), value, "it") == after


@pytest.mark.parametrize("text", ["- 1\n", "8\n", "a: &x {b: 1}\nc: *x\n", "c: [1]\n"])
def test_what_cannot_be_edited_is_left_to_its_owner(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        with_value(text, ("c", "d"), 2, "settings.yaml")
    assert "settings.yaml" in caught.value.message and caught.value.hint == "edit it by hand"


def test_keys_have_lines() -> None:
    assert lines_of("# x\na: 1\nb:\n  c: 2\n") == {("a",): 2, ("b",): 3, ("b", "c"): 4}
    assert lines_of("") == {}
