"""The pages of queues, workers and requests from made-up readings, without a Redis."""

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.broker.snapshot import RqState
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.model.time_slots import TimeSlot
from scaletest.ui.app import make_app
from scaletest.ui.queues import MOST_ROWS, PAGE_WORKERS
from scaletest.ui.sources import Sources
from tests.unit.queue_pages import (
    AT_S,
    HOSTILE,
    MadeReader,
    busy_queue,
    failure,
    queue,
    sample,
    site,
    under_load,
    worker,
)

AWAY = Unreachable("Redis at redis://h is away <b>", hint="start it")


# Making an application compiles its templates, which takes longer than a page.
APPLICATION = site(None)


def page(reader: MadeReader | None, path: str = "/", status: int = 200) -> str:
    APPLICATION.extensions["queues"] = reader
    answer = APPLICATION.test_client().get(path)
    assert answer.status_code == status, answer.text
    return answer.text


def text_of(html: str) -> str:
    """What a reader sees, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def part(html: str, name: str) -> str:
    """A part that is renewed in place."""
    rest = html.partition(f'data-live="{name}"')[2]
    return text_of("<" + rest.partition("<div data-live=")[0].partition("</main>")[0])


def test_the_overview_tells_of_queues_workers_and_devices() -> None:
    html = page(under_load())
    tiles = part(html, "tiles")
    for text in ("Waiting 27", "Running 8", "Workers 12 8 busy now", "Clients 2 3 queues"):
        assert text in tiles
    queues = part(html, "queues")
    assert re.search(r"media working 12 4.2 s 4 23% of 6 1\.\d+ .*24 2 ", queues)
    assert "lonely no worker 3 1 min 1 s" in queues
    workers = part(html, "workers")
    assert "media-1 busy media request-1 7.0 s /dev/dri/renderD129 node-1 pod-of-media-1" in workers
    assert "/dev/dri/renderD128 node-1 media , team/sleep 6 4 82% 2.00 GB of 8.00 GB" in part(
        html, "devices"
    )
    assert html.count('<svg class="spark"') == 6


def test_problems_come_first_with_a_command_each() -> None:
    reader = under_load()
    sick = worker("ill", suspect=True)
    reader.queues += (queue("sick", workers=(worker("well"), sick)),)
    html = page(reader)
    problems = part(html, "problems")
    for text in (
        "unreadable Queue <b>bad</b> : it cannot be read and is left out: its entry is not valid"
        " JSON. What to do: redis-cli hdel scaletest:queues '<b>bad</b>'",
        "no worker Queue lonely : 3 requests wait and no worker is alive. What to do: scaletest"
        " worker --queue lonely",
        "full Queue lonely : 3 requests wait, which is its maximum, and new ones are refused",
        "suspect Queue sick : 1 worker is suspect: requests fail there at once",
        "paused Queue team/sleep : it is paused, so its workers take nothing. What to do: scaletest"
        " queue resume team/sleep",
    ):
        assert text in problems
    badges = re.findall(r'class="badge \w+">([\w ]+)<', html.partition('data-live="problems"')[2])
    assert badges[:5] == ["unreadable", "no worker", "full", "suspect", "paused"]
    assert "Needs attention 5 see below" in part(html, "tiles")
    broken = page(MadeReader(unreadable=(("broken", "WRONGTYPE"),)))
    assert "What to do: scaletest queue check broken" in part(broken, "problems")
    # the queues with the worst problems and the workers that are ill come first
    assert re.findall(r'<tr data-key="([^"]*)">', html)[:4] == [
        "lonely",
        "sick",
        "team/sleep",
        "media",
    ]
    workers = part(html, "workers")
    assert workers.index(" ill suspect") < workers.index("busy") < workers.index("well idle")


def test_a_queue_is_judged_by_its_last_minute() -> None:
    # given a worker that is between two requests, of which one in four fails
    number = int(AT_S // 10)
    slots = tuple(TimeSlot(number - age, 8, 8, 4.0, failed=2) for age in range(1, 7))
    between = queue("between", workers=(worker("w"),), slots=slots)
    # and one whose requests failed before
    before = queue("before", slots=(TimeSlot(number - 9, 8, 8, 4.0, failed=8),))
    html = page(MadeReader((between, before)))
    queues = part(html, "queues")
    assert re.search("between failing 0 . 0 40% of 1 0.8", queues) and "before idle" in queues
    problems = part(html, "problems")
    assert "12 of 48 requests failed in the last minute" in problems and "before" not in problems
    assert "Needs attention 1" in part(html, "tiles")
    # its requests are in the chart, and its page says the same
    assert "submitted ended failed" in part(html, "activity")
    assert "12 of 48" in part(page(MadeReader((between,)), "/queues/between"), "problems")
    # without failures it works, although no request runs at this moment
    well = replace(between, slots=tuple(slot._replace(failed=0) for slot in slots))
    html = page(MadeReader((well,)))
    assert "between working" in part(html, "queues")
    assert "submitted ended failed" not in part(html, "activity")


def test_counters_that_no_device_has_are_no_columns() -> None:
    html = page(replace(under_load(), samples={}))
    devices = html.partition('data-live="devices"')[2]
    assert "renderD128" in devices
    assert "Utilisation" not in devices and "Memory" not in devices and "n/a" not in devices


def test_all_is_well_is_said_in_words() -> None:
    html = page(MadeReader((queue(workers=(worker("w"),)),)))
    assert "Needs attention none" in part(html, "tiles")
    assert part(html, "problems") == ""
    html = page(replace(under_load(), failed=[]), "/queues/media")
    assert "No request has failed." in part(html, "failures")


def test_a_suspension_by_rq_is_told() -> None:
    html = page(replace(under_load(), rq=RqState(True, {})))
    assert "suspended RQ is suspended, so no worker takes anything" in part(html, "problems")


def test_a_long_list_of_workers_is_cut_and_says_where_the_rest_is() -> None:
    many = tuple(worker(f"w-{number:04}", request=f"r-{number}") for number in range(450))
    reader = MadeReader((queue("q", workers=many),))
    html = page(reader)
    assert html.count("<tr data-key") == 1 + MOST_ROWS
    assert "and 400 more: suspect workers come first" in part(html, "workers")
    first, last = page(reader, "/queues/q"), page(reader, "/queues/q?page=3")
    assert first.count("<tr data-key") == PAGE_WORKERS
    assert last.count("<tr data-key") == 50
    assert '<a href="?page=3" aria-current="page">3</a>' in last
    # every worker is on one of the pages
    pages = [first, page(reader, "/queues/q?page=2"), last]
    assert len({name for html in pages for name in re.findall(r'data-key="(w-\d+)"', html)}) == 450
    for odd in ("0", "-7", "99999", "abc", "1e9"):
        assert page(reader, f"/queues/q?page={odd}")


@pytest.mark.parametrize("path", ["/", "/queues/media"])
def test_pages_say_that_redis_is_away_and_what_to_do(path: str) -> None:
    html = page(MadeReader(error=AWAY), path, 503)
    assert "Redis at redis://h is away &lt;b&gt;. What to do: start it." in html
    assert '<a href="/runs">' in html
    # the parts stand there, empty, so that a script fills them when Redis is back
    assert html.count("data-live=") > 3


@pytest.mark.parametrize("path", ["/", "/queues/media"])
def test_pages_without_a_redis_url_say_how_to_name_it(path: str) -> None:
    html = page(None, path)
    assert "scaletest ui --redis-url redis://HOST:6379/0" in html
    assert '<a href="/runs">' in html


def test_without_queues_the_page_says_how_to_begin() -> None:
    assert "scaletest queue add NAME" in page(MadeReader())


def test_a_url_that_cannot_be_read_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidValue):
        make_app(Sources(Path("/nowhere"), "http://nowhere"))


def test_the_page_of_a_queue_has_its_times_failures_nodes_and_books() -> None:
    html = page(under_load(), "/queues/media")
    assert "Wait in the queue 234" in part(html, "times")
    failures = part(html, "failures")
    oldest = "[AVHWDeviceContext @ 0x55d0c006] Failed to initialise VAAPI"
    assert f"{oldest} 7 " in failures
    assert "node-1 renderD128" in failures
    assert "no space left on device 1 " in failures
    assert failures.index(oldest) < failures.index("no space left")
    assert "8 failures, the newest first" in failures
    assert "failed: exit 3 node-1" in failures
    assert "node-1 50% 25% 0% 50% 5.00 GB 0.5 s ago" in part(html, "nodes")
    books = part(html, "books")
    assert "Submitted 640" in books
    assert "scaletest queue purge media" in books
    assert "Dead letters 2" in part(html, "tiles")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/queues/typo", "Queue typo is not declared."),
        ("/queues/a/requests/<b>", "Queue a/requests/&lt;b&gt; is not declared."),
        ("/queues/%3Cb%3Ebad%3C/b%3E", "cannot be read: its entry is not valid JSON."),
    ],
)
def test_unknown_queues_are_not_found(path: str, text: str) -> None:
    assert text in page(under_load(), path, 404)


class Tags(HTMLParser):
    """The names of elements and attributes of a page, and how deep it ends."""

    VOID = ("meta", "link", "br", "img", "input")

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(html: str) -> set[str]:
    parser = Tags()
    parser.feed(html)
    assert parser.open == []
    return parser.names


def hostile_reader(text: str) -> MadeReader:
    """A reading whose foreign texts are all this text."""
    member = worker(
        text, request=text, started_s=AT_S, device=text, node=text, pod=text, suspect=True
    )
    row = replace(busy_queue(), note=text, workers=(member,))
    failed = [failure(1, error=text, node=text, device=text, pod=text, reason=text)]
    node = replace(sample(), node=text, resources={f"device:{text}": {"busy": 0.5}})
    return MadeReader((row,), ((text, text),), {"media": [node]}, failed=failed)


PATHS = (
    "/",
    "/queues/media",
)


@given(st.text(max_size=60) | st.just(HOSTILE))
def test_foreign_texts_are_shown_as_text(text: str) -> None:
    for path in PATHS:
        assert tags(page(hostile_reader(text), path)).isdisjoint({"img", "onerror", "style", "b"})
    error = Unreachable(text or "away", hint=text)
    assert tags(page(MadeReader(error=error), "/", 503)).isdisjoint({"img", "onerror"})


def test_no_page_has_inline_scripts_styles_or_foreign_hosts() -> None:
    for path in PATHS:
        html = page(under_load(), path)
        assert re.findall(r"<script(?! defer src=\"/static/)", html) == []
        assert not re.search(r"<style|style=|https?://|\son\w+=", html)
        assert "data-live" in html
        assert '<noscript><meta http-equiv="refresh"' in html


def test_links_stay_below_a_prefix() -> None:
    client = site(under_load(), prefix="/lab").test_client()
    for path in ("/lab/", "/lab/queues/media"):
        links = re.findall(r'href="([^"?#]+)', client.get(path).text)
        assert links
        assert all(link.startswith("/lab/") for link in links)
