"""Reports as JSON and back: what is drawn stays the same, and nothing that cannot be drawn comes
in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import Verdict, VerdictKind
from scaletest.model.errors import InvalidValue
from scaletest.render.contents import Charts, Facts, Figure, Section, Share, Table, Text
from scaletest.render.encoding import (
    MOST_BYTES,
    HeadOutline,
    ReportOutline,
    decode,
    encode,
    outline,
)
from scaletest.render.svg import Axis, Chart
from scaletest.report.formats import html
from scaletest.report.validation.report import validation_report
from scaletest.validation.run_type import ValidationRun
from tests.unit import runs


def shown(report: ReportOutline) -> str:
    return html.contents(report.head, report.sections)


@pytest.mark.parametrize("case", runs.CASES)
def test_a_report_is_drawn_elsewhere_as_here(
    example_runs: dict[str, ValidationRun], case: str
) -> None:
    report = outline(validation_report(example_runs[case]))
    again = decode(encode(report).encode())
    assert shown(again) == shown(report)


def test_what_names_the_machine_is_not_told(example_runs: dict[str, ValidationRun]) -> None:
    text = encode(outline(validation_report(example_runs["pass"])))
    assert "/runs/a7c3" not in text and "Example CPU 9" not in text and "--local" not in text


HEAD = HeadOutline("t", Verdict(VerdictKind.PASS, "why"))
texts = st.text(max_size=20)
numbers = st.floats(-1e6, 1e6)
points = st.tuples(numbers, numbers | st.just(math.nan))
axes = st.builds(
    Axis,
    texts,
    st.floats(0.1, 10.0),
    st.floats(11.0, 1e6),
    st.sampled_from(["linear", "log2"]),
    most=st.integers(2, 9),
)


@st.composite
def charts(draw: Callable[[Any], Any]) -> Chart:
    chart = Chart("c-1", draw(texts), draw(texts), draw(axes), draw(axes))
    chart.line(draw(st.lists(points, max_size=5)), "c-data", draw(texts))
    chart.dot(draw(numbers), draw(numbers), "c-dot", draw(texts))
    chart.error(1.0, 2.0, draw(numbers), "c-error")
    chart.note(draw(numbers), 2.0, draw(texts), draw(st.sampled_from(["start", "end"])))
    chart.legend(draw(texts), "c-time-on_cpu", draw(st.sampled_from(["line", "dot", "area"])))
    return chart


parts = st.floats(0, 1)
cells = texts | st.builds(Share, parts, texts, st.none() | st.tuples(parts, parts))
tables = st.integers(1, 3).flatmap(
    lambda width: st.builds(
        Table,
        st.lists(texts, min_size=width, max_size=width),
        st.lists(st.lists(cells, min_size=width, max_size=width), max_size=3),
        texts=st.lists(st.integers(0, width - 1)),
        layout=st.sampled_from(["", "causes", "errors"]),
        title=texts,
        folded=texts,
        note=texts,
    )
)
blocks = st.one_of(
    tables,
    st.builds(Figure, charts(), texts),
    st.builds(Charts, st.lists(charts(), max_size=2), st.sampled_from(["", "two"]), texts),
    st.builds(Text, st.lists(texts), st.sampled_from(["plain", "copy", "warning"]), title=texts),
    st.builds(Facts, st.lists(st.tuples(texts, texts))),
)
sections = st.lists(st.builds(Section, texts, st.lists(blocks, max_size=3)), max_size=2)


@given(sections)
def test_every_block_comes_back_as_it_was(content: list[Section]) -> None:
    report = ReportOutline(HEAD, content)
    again = decode(encode(report).encode())
    assert shown(again) == shown(report)
    assert encode(decode(encode(again).encode())) == encode(again)


def document(block: dict[str, Any]) -> bytes:
    whole = json.loads(encode(ReportOutline(HEAD, [])))
    return json.dumps({**whole, "sections": [{"title": "s", "blocks": [block]}]}).encode()


def chart_document(**changes: Any) -> dict[str, Any]:
    chart = Chart("c", "t", "d", Axis("x", 0.0, 9.0), Axis("y", 0.0, 9.0))
    chart.dot(1.0, 2.0, "c-dot")
    report = ReportOutline(HEAD, [Section("s", [Charts([chart])])])
    block: dict[str, Any] = json.loads(encode(report))["sections"][0]["blocks"][0]
    block["charts"][0] |= changes
    return block


AXIS = {"label": "x", "low": 0.0, "high": 9.0, "kind": "linear", "most": 6}


@pytest.mark.parametrize(
    "block",
    [
        {"block": "script"},
        {"block": "text"},
        {"block": "text", "lines": [1]},
        {"block": "table", "titles": ["a"], "rows": [["x", "y"]]},
        {"block": "table", "titles": ["a"], "rows": [["x"]], "layout": 'x" onclick="'},
        {"block": "table", "titles": ["a"], "rows": [[{"part": 2.0, "text": "x"}]]},
        {"block": "figure", "wide": None, "caption": "", "narrow_size": [1, 2]},
        chart_document(width=1e9),
        chart_document(id='"><script>'),
        chart_document(marks=[["line", [[0, 0]], "evil{}", "", 0.0, ""]]),
        chart_document(marks=[["star", [[0, 0]], "c-dot", "", 0.0, ""]]),
        chart_document(marks=[["dot", [[0, 0], [1, 1]], "c-dot", "", 1.0, ""]]),
        chart_document(marks=[["dot", [[None, 0]], "c-dot", "", 1.0, ""]]),
        chart_document(marks=[["line", [[1e300, 0]], "c-dot", "", 1.0, ""]]),
        chart_document(marks=[["note", [[1, 0]], "c-note", "", 1.0, "inherit"]]),
        chart_document(explained=[["x", "c-dot", "cube"]]),
        chart_document(x={**AXIS, "kind": "cubic"}),
        chart_document(x={**AXIS, "kind": "log2"}),
        chart_document(x={**AXIS, "most": 1}),
        chart_document(x={**AXIS, "marks": [1.0], "names": ["a", "b"]}),
        chart_document(x={**AXIS, "high": None}),
    ],
    ids=lambda block: json.dumps(block)[:60],
)
def test_what_cannot_be_drawn_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="a published report"):
        decode(document(block))
    assert decode(document(chart_document())).sections[0].blocks


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"head": 1}', b"NaN", b"x" * (MOST_BYTES + 1), b"\xff" * 10]
)
def test_what_is_no_report_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidValue):
        decode(text)


junk = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@given(st.data())
def test_whatever_is_read_can_be_drawn(data: st.DataObject) -> None:
    """Any part of a valid report is replaced by anything: it is refused, or drawn."""
    block = chart_document()
    place: Any = block["charts"][0]
    path = data.draw(st.sampled_from(["x", "y", "marks", "explained", "width", "id"]))
    inner = place[path]
    if isinstance(inner, dict) and data.draw(st.booleans()):
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(junk | st.floats(-1e3, 1e3))
    else:
        place[path] = data.draw(junk)
    try:
        report = decode(document(block))
    except InvalidValue:
        return
    assert "<svg" in shown(report)


def test_of_a_report_that_is_too_long_only_the_head_is_told() -> None:
    report = ReportOutline(HEAD, [Section("s", [Text(["x" * 1000])])])
    again = decode(encode(report, 500).encode())
    assert again.head == HEAD and again.sections == []
