"""Documents: one that is declared once is read, checked, written and described by its declaration;
the reader of YAML and JSON that people write, and the language of templates in it.
"""

import io
import itertools
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from scaletest.documents import reader
from scaletest.documents.templates import fill_templates
from scaletest.model.declared import (
    INNER,
    Arguments,
    Count,
    QueueName,
    Seconds,
    choice,
    flat,
    named_in_documents,
)
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.json_schema import Form, class_schema


class Colour(StrEnum):
    """A name of a newer kind of value."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Part(Document):
    """A part of the document below."""

    name: QueueName
    size: Annotated[int, Meta(ge=1, le=100, title="the size"), "how large it is"] = 1


@dataclass(frozen=True, slots=True)
class Ends:
    """Two numbers that stand in the document itself."""

    low: Annotated[float, named_in_documents("low_s")]
    high: float = math.inf


@dataclass(frozen=True, slots=True)
class Whole(Document):
    """A document with all kinds of members."""

    document_name = "the whole"
    constants = {"schema_version": 1, "kind": "whole"}

    workers: Annotated[int, Meta(ge=1, le=1000), "how many there are"]
    time_s: Annotated[Seconds, Meta(title="the time", extra={"digits": 2, "key": "time"})] = 0.0
    requests: Count | None = None
    order: Annotated[str, choice(("up", "down"), "order")] = "up"
    colour: Colour = Colour.RED
    parts: tuple[Part, ...] = ()
    amounts: Mapping[str, Annotated[float, Meta(ge=0, le=9)]] = field(default_factory=dict)
    arguments: Arguments = ()
    ends: Annotated[Ends, flat()] = Ends(1.0)
    secret: Annotated[str, INNER] = "hidden"

    @property
    def double(self) -> Annotated[int, "twice as many"]:
        """A member that follows from others."""
        return 2 * self.workers


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "the whole lacks workers", "add it"),
    ({"workers": 0}, "workers in the whole is 0", "give a number from 1 to 1000"),
    # numbers that no float can hold
    ({"workers": 10**400}, "workers in the whole is 1000", "give a number from 1 to 1000"),
    (
        {"workers": 1, "amounts": {"a": 10**400}},
        "amounts[a] in the whole is 1000",
        "give a number from 0 to 9",
    ),
    (
        {"workers": 1, "time_s": 10**400},
        "time_s in the whole is 1000",
        "give seconds from 0 to 2.592e",
    ),
    ({"workers": "8"}, "workers in the whole is '8', not a whole number", "e.g. 8"),
    ({"workers": True}, "workers in the whole is true, not a whole number", "e.g. 8"),
    ({"workers": 1.5}, "is 1.5, not a whole number", "e.g. 8"),
    ({"workers": 1, "time_s": -1}, "time_s in the whole is -1 s", "give seconds from 0 to"),
    ({"workers": 1, "requests": -1}, "requests in the whole is -1", "give a number from 0"),
    ({"workers": 1, "order": "dwn"}, "order is 'dwn'", "did you mean down?"),
    ({"workers": 1, "colour": "blu"}, "colour in the whole is 'blu'", "did you mean blue?"),
    (
        {"workers": 1, "parts": [{"name": "q"}, {"name": "q", "size": 0}]},
        "parts[1].size in the whole is 0",
        "1 to",
    ),
    ({"workers": 1, "parts": [{"size": 2}]}, "parts[0] in the whole lacks name", "add it"),
    ({"workers": 1, "parts": [{"name": "/"}]}, "invalid queue name '/'", "use 1 to 100 letters"),
    (
        {"workers": 1, "parts": [{"name": 3}]},
        "parts[0].name in the whole is 3, not text",
        "in quotes",
    ),
    ({"workers": 1, "parts": 3}, "parts in the whole is 3, not a list", "e.g. [a, b]"),
    (
        {"workers": 1, "amounts": {"a": 10}},
        "amounts[a] in the whole is 10",
        "give a number from 0 to 9",
    ),
    ({"workers": 1, "arguments": ["a\x00"]}, "contains a control character", "put binary data"),
    ({"workers": 1, "arguments": 5, "time_s": -1}, "arguments|time_s", ""),
]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # what Python reads, and neither writes nor compares with floats
        ({"workers": 10**5000}, "workers in the whole is an over-long or too deep int"),
        ({"workers": 1, "time_s": 10**5000}, "time_s in the whole is an over-long or too deep int"),
        # what YAML's escapes make
        ({"workers": "\ud800"}, "the whole holds text that is not valid Unicode"),
    ],
)
def test_values_beyond_json_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Whole.from_dict(values)


@pytest.mark.parametrize(("values", "message", "hint"), WRONG)
def test_an_error_names_the_field_and_what_it_takes(
    values: dict[str, Any], message: str, hint: str
) -> None:
    for reading in (
        lambda: Whole.from_dict(values),
        lambda: Whole.from_json(json.dumps(values)),
        lambda: Whole.from_json(json.dumps(values).encode()),
    ):
        with pytest.raises(InvalidValue) as error:
            reading()
        assert any(part in error.value.message for part in message.split("|"))
        assert hint in error.value.hint


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"workers": NaN}', "[" * 100_000])
def test_what_is_no_object_is_an_invalid_value(text: str) -> None:
    with pytest.raises(InvalidValue, match="the whole"):
        Whole.from_json(text)


@pytest.mark.parametrize(
    "values",
    [
        {"workers": 0},
        {"workers": True},
        {"workers": 1, "time_s": math.nan},
        {"workers": 1, "time_s": True},
        {"workers": 1, "requests": -1},
        {"workers": 1, "order": "sideways"},
        {"workers": 1, "amounts": {"a": -1.0}},
        {"workers": 1, "arguments": ("\x00",)},
    ],
)
def test_values_that_are_made_in_code_pass_the_same_checks(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Whole(**values)


def test_what_is_written_is_read_again_and_fits_the_schema() -> None:
    whole = Whole(3, 1.239, 4, "down", Colour.BLUE, (Part("q", 2),), {"a": 1.5}, ("-x",))
    document = whole.to_dict()
    assert document == {
        "schema_version": 1,
        "kind": "whole",
        "workers": 3,
        "time_s": 1.24,
        "requests": 4,
        "order": "down",
        "colour": "blue",
        "parts": [{"name": "q", "size": 2}],
        "amounts": {"a": 1.5},
        "arguments": ["-x"],
        "low_s": 1.0,
        "high": None,
        "double": 6,
    }
    assert json.loads(whole.to_json()) == document
    again = Whole.from_json(whole.to_json())
    assert again.parts == whole.parts and again.colour is Colour.BLUE and again.time_s == 1.24


def test_the_schema_says_all_that_is_declared() -> None:
    schema = class_schema("whole", "All of it.", Whole)
    jsonschema.Draft202012Validator.check_schema(schema)
    members = schema["properties"]
    assert members["workers"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
        "description": "how many there are",
    }
    assert members["requests"]["type"] == ["integer", "null"] and members["kind"] == {
        "const": "whole"
    }
    assert members["order"] == {
        "type": "string",
        "enum": ["up", "down"],
        "default": "up",
    }
    assert members["colour"]["enum"] == ["red", "blue"] and members["double"]["type"] == "integer"
    assert "secret" not in members and schema["additionalProperties"] is False
    assert set(schema["required"]) == set(members)


def test_a_file_that_people_write_has_its_own_keys_and_may_leave_out_defaults() -> None:
    schema = Form(is_file=True).object(Whole)
    assert "time" in schema["properties"] and "time_s" not in schema["properties"]
    assert schema["properties"]["parts"]["items"]["required"] == ["name"]


def test_members_of_newer_versions_are_ignored() -> None:
    assert Whole.from_dict({"workers": 1, "newer": {"x": [1]}}) == Whole(1)


def test_halves_of_surrogate_pairs_become_question_marks() -> None:
    assert Whole.from_json(r'{"workers": 1, "secret": "a\ud800"}').secret == "a?"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["workers", "time_s", "parts", "amounts", "arguments", "order", "colour"])


@given(st.dictionaries(NAMES, VALUES))
def test_hostile_values_are_read_or_refused(values: dict[str, Any]) -> None:
    for reading in (Whole.from_dict, lambda data: Whole.from_json(json.dumps(data))):
        try:
            reading({"workers": 1, **values})
        except InvalidValue as error:
            assert error.message


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
    lines = [
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]"
        for before, name in itertools.pairwise("abcdefghi")
    ]
    with pytest.raises(InvalidValue, match="more than 1000000 values"):
        reader.read("\n".join(["a: &a [x, x, x, x, x, x, x, x, x, x]", *lines]), "it")


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


@given(st.text() | st.text(alphabet="{}[]&*a: -!|>'\"\n,#?<1", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        reader.read_all(text, "it")
    except InvalidValue as error:
        assert error.message.startswith("it is not valid YAML") and error.hint


def test_templates_use_values_and_nothing_else() -> None:
    document = {
        "a": "{{ p.n }}",
        "b": "n is {{ p.n }}",
        "c": ["{{ p.list | toyaml }}"],
        "d": 5,
        "{{ p.n }}": "{% raw %}{{ theirs }}{% endraw %}",
        "e": "{% if %}",
    }
    assert fill_templates(document, {"p": {"n": 3, "list": [1]}}) == {
        "a": 3,
        "b": "n is 3",
        "c": [[1]],
        "d": 5,
        "3": "{{ theirs }}",
        "e": "{% if %}",
    }


@pytest.mark.parametrize(
    ("template", "problem", "hint"),
    [
        ("{{ p.nunber }}", "asks for 'nunber', which nothing fills", "did you mean number?"),
        ("{{ q }}", "asks for 'q', which nothing fills", "there are p, number"),
        ("{{ p.number.real.x }}", "asks for 'x', which nothing fills", "there are"),
        ("{{ ().__class__.__bases__ }}", "cannot be filled in: access to attribute", "NAME"),
        ("{{ p.update({'number': 4}) }}", "cannot be filled in", "NAME"),
        ("{{ p.number / 0 }}", "cannot be filled in: division by zero", "NAME"),
        ("{{ p.number", "cannot be filled in", "NAME"),
        ("{{ range(9) }}", "cannot be filled in: call is not allowed", "NAME"),
        ("{{ p.number | shout }}", "cannot be filled in: No filter named 'shout'", "NAME"),
        ("{{ 'x' * 100001 }}", "'x' is not a number", "NAME"),
        ("{{ '%9999d' % 1 }}", "'%9999d' is not a number", "NAME"),
        ("{{ p.long }}" * 2, "makes more than 100000 characters", "shorten it"),
        ("{{ p }}" + "x" * 100_000, "makes more than 100000 characters", "shorten it"),
        ("{{ 9**(9**9) }}", "cannot be filled in: pow is not allowed", "NAME"),
        ("{{ 'x'.ljust(10**9) | length }}", "cannot be filled in: ", "NAME"),
        ("{{ 'x' | center(1000000000) }}", "the filter center with arguments is not", "NAME"),
        ("{{ 1.5 | round(1000000000, 'ceil') }}", "the filter round with arguments is", "NAME"),
        ("{{ p.number ~ p.number }}", "concat is not allowed", "NAME"),
        ("{% for i in p %}{{ i }}{% endfor %}", "for is not allowed", "NAME"),
        ("{{ p.number + 11e999 }}", "a number without end is not allowed", "NAME"),
        ("{{ p.number * 9e18 }}", "the result is too large", "NAME"),
        ("{{ " + "p and " * 300 + "p }}", "more than 20 levels are nested", "NAME"),
        ("{{ 1e9\uff11 }}", "cannot be filled in", "NAME"),
        ("{{ p.gone | toyaml }}", "cannot be filled in", "NAME"),
        ("{{ '[1' }}", "makes is not valid YAML", "correct it"),
    ],
)
def test_mistakes_are_explained(template: str, problem: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        fill_templates({"a": [template]}, {"p": {"number": 3, "long": "x" * 60_000}})
    assert problem in caught.value.message
    assert hint in caught.value.hint


@given(st.text(alphabet="{}%#pn.|'\"()[]-+ 1~", max_size=20))
def test_any_template_is_filled_in_or_refused(text: str) -> None:
    try:
        fill_templates("{{" + text, {"p": {"n": 3}})
    except InvalidValue as error:
        assert error.hint
