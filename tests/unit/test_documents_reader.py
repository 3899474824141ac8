"""The reader of YAML and JSON that people write."""

from __future__ import annotations

import io
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.documents import reader
from scaletest.model.errors import InvalidValue, UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("---\n", None),
        ("a: 1", {"a": 1}),
        ('{"a": "\\ud83d\\ude00", "b": 1e3}', {"a": "\N{GRINNING FACE}", "b": 1000.0}),
        ('{\n\t"a": [1]\n}', {"a": [1]}),
        ("a: &b {x: 1, y: 1}\nc: {<<: *b, x: 2}", {"a": {"x": 1, "y": 1}, "c": {"x": 2, "y": 1}}),
        # a table that is merged into another before its own turn comes
        (
            "b: &b {x: 1}\nw: {m: &m {<<: *b, x: 2}}\nt: {<<: *m}",
            {"b": {"x": 1}, "w": {"m": {"x": 2}}, "t": {"x": 2}},
        ),
        # of two tables that are merged the first one wins
        (
            "a: &a {cpu: 1}\nb: &b {cpu: 2, gpu: 3}\nt: {<<: [*a, *b]}",
            {"a": {"cpu": 1}, "b": {"cpu": 2, "gpu": 3}, "t": {"cpu": 1, "gpu": 3}},
        ),
        ("1: a\n'1': b", {1: "a", "1": "b"}),
    ],
)
def test_documents_are_read(text: str, value: Any) -> None:
    assert reader.read(text, "it") == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2", "it is not valid YAML in line 4, column 3: 'c' stands twice"),
        ('{"a": 1,\n "a": 2}', "in line 2, column 2: 'a' stands twice"),
        ("a: [1", "in line 1, column 6: expected ',' or ']'"),
        ("a: 1\n---\nb: 2", "it holds 2 documents"),
        ("[" * 5000, "it nests too deeply"),
        ("[" * 200 + "]" * 200, "it nests too deeply"),
        ('{"a": ' * 200 + "1" + "}" * 200, "it nests too deeply"),
        ("a: &a [*a]", "it nests too deeply"),
        ("a: \x00", "special characters are not allowed"),
        ("a: !!int ''", "not valid YAML"),
        ("a: !!timestamp x", "not valid YAML"),
        ("a: !!bool x", "not valid YAML"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("[a]: 1", "not valid YAML"),
    ],
)
def test_other_texts_are_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        reader.read(text, "it")
    assert problem in caught.value.message
    assert caught.value.hint


def test_aliases_cannot_multiply_a_short_text() -> None:
    names = "abcdefghi"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]"
        for before, name in itertools.pairwise(names)
    ]
    with pytest.raises(InvalidValue, match="more than 1000000 values"):
        reader.read("\n".join(lines), "it")


def test_a_file_is_bounded_and_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long").write_text("#" * (reader.MOST_BYTES + 1))
    (tmp_path / "binary").write_bytes(b"\xff")
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfa: 1")
    for name, problem in (
        ("long", "longer than"),
        ("binary", "not text"),
        ("missing", "No such file"),
        (".", "Is a directory"),
    ):
        with pytest.raises(UsageError, match=problem) as caught:
            reader.read_file(tmp_path / name, name, "give another")
        assert caught.value.hint
    assert reader.read_file(tmp_path / "marked", "it", "") == {"a": 1}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 2")))
    assert reader.read_file("-", "it", "") == {"a": 2}


def test_text_in_quotes_is_marked_where_it_is_asked_for() -> None:
    (table,) = reader.read_all("a: x\nb: 'x'", "it", quoted=True)
    assert table == {"a": "x", "b": "x"}
    assert [type(value) for value in table.values()] == [str, reader.Quoted]
    (plain,) = reader.read_all("b: 'x'", "it")
    assert type(plain["b"]) is str


@given(st.text() | st.text(alphabet="{}[]&*a: -!|>'\"\n,#?<1", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        reader.read_all(text, "it", quoted=True)
    except InvalidValue as error:
        assert error.message.startswith("it is not valid YAML") and error.hint
