"""The HTML page of a validation: it needs no other host, acts on no foreign text, and names every
measuring.
"""

import re
from pathlib import Path

import pytest

from scaletest.model import Activity, State
from scaletest.report import formats
from scaletest.validation.judging.schedule import way
from scaletest.validation.plan import Plan
from scaletest.validation.report.report import validation_report
from scaletest.validation.run_type import ValidationRun
from tests.unit import made_runs as runs
from tests.unit.report_page import Page


def test_a_page_says_why_no_cause_is_named(tmp_path: Path) -> None:
    plan = Plan(limit=4, command=("x",), queue="q", tolerate_failures=99)
    page = Page(
        formats.render(
            validation_report(
                runs.slower_at_last(tmp_path, plan, Activity({State.ON_CPU: 0.2}, cpu_s=0.2))
            ),
            "html",
        )
    )
    assert "The cause is unknown: 100% of the added 0.2 s was not observed." in page.text


@pytest.mark.parametrize("case", runs.CASES)
def test_the_page_loads_no_other_resource_and_runs_no_foreign_text(
    example_runs: dict[str, ValidationRun], case: str
) -> None:
    page = Page(formats.render(validation_report(example_runs[case]), "html"))
    assert not page.open
    names = {tag for tag, _ in page.tags}
    assert not names & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "image",
        "use",
    }
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    for tag, attributes in page.tags:
        if tag == "a":
            # links lead to headings of the page itself
            assert attributes.keys() == {"href"}
            address = attributes.pop("href") or ""
            assert address.startswith("#") and address[1:] in ids
        assert not any(
            name.startswith("on") or name in ("src", "href", "xlink:href") for name in attributes
        ), tag
    styles = [attributes["style"] or "" for _, attributes in page.tags if "style" in attributes]
    # pages whose policy forbids styles in attributes show the same blocks
    assert not styles
    policy = next(
        a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and "default-src 'none'" in policy and "script" not in policy


@pytest.mark.parametrize("case", runs.CASES)
def test_the_page_holds_no_url(example_runs: dict[str, ValidationRun], case: str) -> None:
    text = formats.render(validation_report(example_runs[case]), "html")
    if case == "hostile":  # there it is foreign text that was asked for, and only shown
        text = text.replace("http://evil.example/x", "")
    assert not re.search(
        r"(?i)(?<![\w-])(https?|ftp|data|file|javascript):|url\((?!#)|@import|//[a-z]", text
    )


def test_hostile_text_is_escaped_on_the_page(example_runs: dict[str, ValidationRun]) -> None:
    text = formats.render(validation_report(example_runs["hostile"]), "html")
    assert "<script" not in text and "<img" not in text
    assert text.count("</style>") == 1
    assert "49" not in Page(text).text.rpartition("How to reproduce")[2].partition("Environment")[0]
    assert "</style><script>alert(1)</script>" in Page(text).text
    assert "\x1b" not in text and "\u202e" not in text


def test_ids_on_a_page_are_unique(example_runs: dict[str, ValidationRun]) -> None:
    for run in example_runs.values():
        ids = [
            a["id"]
            for _, a in Page(formats.render(validation_report(run), "html")).tags
            if "id" in a
        ]
        assert len(ids) == len(set(ids))


def test_every_chart_has_a_title_and_description_for_screen_readers(
    example_runs: dict[str, ValidationRun],
) -> None:
    page = Page(formats.render(validation_report(example_runs["pass"]), "html"))
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    # bars of cells are decoration: their text stands beside them
    charts = [attributes for attributes in pictures if "aria-hidden" not in attributes]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert len(charts) > 8
    for chart in charts:
        assert chart["role"] == "img"
        assert set((chart["aria-labelledby"] or "").split()) <= ids


def test_further_pairs_are_numbered_from_the_second_on() -> None:
    names = [way(repeat) for repeat in range(4)]
    assert names == ["way up", "way down", "way up, pair 2", "way down, pair 2"]
