"""The pages of queues in a real browser: on desktop and phone, light and dark, by keyboard alone,
without a script, and renewed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from scaletest.http.server import Server
from scaletest.model.errors import Unreachable
from scaletest.pages.security import HEADERS
from tests.browser.conftest import ONLINE, Browser, eventually
from tests.browser.test_ui_runs import complaints, reach, text_of
from tests.unit.queue_pages import AT_S, MadeReader, busy_queue, failure, queue, site, under_load
from tests.unit.test_ui_queues import HOSTILE, PATHS, hostile_reader

Open = Callable[..., Browser]


class Pages:
    """The UI over a reading that a test changes."""

    def __init__(self) -> None:
        self.reader = under_load()
        app = site(self.reader)
        self.server = Server(app, "127.0.0.1:0", headers=HEADERS)
        self._app = app
        self.url = self.server.url

    def show(self, reader: MadeReader) -> None:
        self._app.extensions["queues"] = reader


@pytest.fixture
def pages() -> Iterator[Pages]:
    pages = Pages()
    with closing(pages.server):
        yield pages


def updated(browser: Browser) -> str:
    return browser.find_element(By.ID, "freshness").text


def test_problems_and_numbers_are_in_sight_on_a_phone(pages: Pages, browse: Open) -> None:
    browser = browse(390)
    browser.get(pages.url)
    tile = browser.find_element(By.CSS_SELECTOR, ".tiles .bad dd")
    assert tile.text.startswith("4")
    waiting = browser.find_element(By.CSS_SELECTOR, '[data-live="queues"] tbody td:nth-child(3)')
    assert waiting.text == "3"
    assert waiting.rect["x"] + waiting.rect["width"] <= 390
    # a badge says in words what its colour adds
    badges = browser.find_elements(By.CLASS_NAME, "badge")
    assert all(badge.text for badge in badges)


def test_a_queue_is_reached_by_keyboard_alone(pages: Pages, browse: Open) -> None:
    browser = browse()
    browser.get(pages.url)
    browser.switch_to.active_element.send_keys(Keys.TAB, Keys.ENTER)  # to the contents
    link = browser.find_element(By.CSS_SELECTOR, '[data-live="queues"] tr[data-key="media"] a')
    reach(browser, link)
    link.send_keys(Keys.ENTER)
    eventually(lambda: "Queue media" in text_of(browser))


def test_pages_are_whole_without_a_script(pages: Pages, browse: Open) -> None:
    browser = browse(script=False)
    browser.get(pages.url)
    browser.find_element(By.LINK_TEXT, "media").click()
    eventually(lambda: "Failed to initialise VAAPI" in text_of(browser))
    browser.find_element(By.CSS_SELECTOR, "details > summary").click()
    assert "failed-3" in text_of(browser)
    refresh = browser.find_element(By.CSS_SELECTOR, 'meta[http-equiv="refresh"]')
    assert refresh.get_attribute("content") == "10"


def test_the_parts_of_a_page_are_renewed_and_the_others_are_left_alone(
    pages: Pages, browse: Open
) -> None:
    # given somebody who has gone to a table, unfolded a list and scrolled a table
    browser = browse(800)
    browser.get(f"{pages.url}/queues/media")
    fold = browser.find_element(By.CSS_SELECTOR, "details")
    fold.find_element(By.TAG_NAME, "summary").click()
    workers = browser.find_element(By.CSS_SELECTOR, '[data-live="workers"] .scroll')
    reach(browser, workers)
    table = browser.find_element(By.CSS_SELECTOR, "details .scroll")
    browser.execute_script("arguments[0].scrollLeft = 60", table)
    top = "return arguments[0].getBoundingClientRect().top"
    title = browser.find_element(By.ID, "workers-title")
    before = browser.execute_script(top, title)
    node = browser.find_element(By.CSS_SELECTOR, '[data-live="nodes"] tr[data-key]')
    # when a request has ended, another has begun, and one more failed
    row = pages.reader.queues[0]
    members = tuple(
        member._replace(busy=True, request="request-6", started_s=AT_S - 99.0)
        if member.name == "media-3"
        else member
        for member in row.workers
    )
    changed = replace(row, waiting=77, workers=(*members[:2], *members[3:]))
    failed = [failure(99, error="quite another error"), *pages.reader.failed]
    pages.show(replace(pages.reader, queues=(changed,), failed=failed))
    # expect what changed to be shown, and everything else to be as it was
    eventually(lambda: "77" in browser.find_element(By.CSS_SELECTOR, ".tiles dd").text)
    assert "quite another error" in fold.text
    assert fold.get_attribute("open")
    assert browser.switch_to.active_element == workers
    assert browser.execute_script("return arguments[0].scrollLeft", table) == 60
    # the tables of failures above have grown, and what is in sight stands where it stood
    assert browser.execute_script(top, title) == pytest.approx(before, abs=2)
    assert node.is_displayed()
    keys = browser.execute_script(
        "return [...document.querySelectorAll('[data-live=workers] tr[data-key]')]"
        ".map(row => row.dataset.key)"
    )
    assert keys == ["media-3", "media-5", "media-4", "media-1", "media-0"]
    assert complaints(browser) == []


def test_a_part_waits_while_text_in_it_is_selected(pages: Pages, browse: Open) -> None:
    browser = browse()
    browser.get(pages.url)
    browser.execute_script(
        "getSelection().selectAllChildren(document.querySelector('[data-live=problems] li'))"
    )
    selected = browser.execute_script("return String(getSelection())")
    pages.show(replace(pages.reader, unreadable=(), queues=(busy_queue("media", waiting=99),)))
    eventually(lambda: "99" in browser.find_element(By.CSS_SELECTOR, ".tiles dd").text)
    assert selected and browser.execute_script("return String(getSelection())") == selected
    browser.execute_script("getSelection().removeAllRanges()")
    eventually(lambda: "unreadable" not in text_of(browser))


@pytest.mark.parametrize("path", ["/", "/queues/media"])
def test_a_page_tells_of_an_outage_and_goes_on_after_it(
    pages: Pages, browse: Open, path: str
) -> None:
    browser = browse()
    browser.get(pages.url + path)
    pages.show(MadeReader(error=Unreachable("Redis is away", hint="start it")))
    eventually(lambda: "Redis cannot be read" in text_of(browser))
    assert "request-5" not in text_of(browser)
    pages.show(pages.reader)
    eventually(lambda: "request-5" in text_of(browser))
    assert "Redis cannot be read" not in text_of(browser)


def test_a_page_tells_when_its_queue_is_gone_or_its_server(
    pages: Pages, browse: Open, chrome: Browser
) -> None:
    browser = browse()
    chrome.execute_cdp_cmd("Network.enable", {})
    browser.get(f"{pages.url}/queues/media")
    pages.show(MadeReader((queue("other"),)))
    eventually(lambda: "knows nothing of this any more" in updated(browser))
    chrome.execute_cdp_cmd("Network.emulateNetworkConditions", {**ONLINE, "offline": True})
    eventually(lambda: "does not answer; trying again" in updated(browser))


def test_hostile_texts_are_shown_as_text(pages: Pages, browse: Open) -> None:
    pages.show(hostile_reader(HOSTILE))
    browser = browse()
    for path in PATHS:
        browser.get(pages.url + path)
        assert browser.title != "owned"
        assert not browser.find_elements(By.TAG_NAME, "img")
    browser.get(pages.url)
    assert HOSTILE in text_of(browser)
    # also when they come into a page that is open
    pages.show(pages.reader)
    browser.get(pages.url)
    pages.show(hostile_reader(HOSTILE))
    eventually(lambda: HOSTILE in text_of(browser))
    assert browser.title != "owned"
    assert not browser.find_elements(By.TAG_NAME, "img")
    assert complaints(browser) == []
