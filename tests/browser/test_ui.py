"""The pages of queues, and the pages Runs, Compare and Live, in a real browser: on desktop and
phone, light and dark, by keyboard alone, without a script, and renewed in place.
"""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from hack.browser import Browser
from scaletest.model.errors import Unreachable
from scaletest.model.labels import Labels
from scaletest.model.run_progress import RunProgress
from scaletest.pages.security import HEADERS
from scaletest.pages.server import Server
from scaletest.runs.folder import PROGRESS, RESULT
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from scaletest.ui.start import Starter
from scaletest.validation.folder import ValidationFolder
from tests.browser.conftest import ONLINE, eventually
from tests.conftest import program
from tests.integration.services import running
from tests.unit import made_runs as runs
from tests.unit.queue_pages import AT_S, MadeReader, busy_queue, failure, queue, site, under_load
from tests.unit.ui.test_queues import PATHS, hostile_reader
from tests.unit.ui.test_runs import HOSTILE

Open = Callable[..., Browser]


class Archive:
    """Stored runs, and the UI that serves them."""

    def __init__(self, root: Path, url: str) -> None:
        self.root, self.url = root, url

    def add(self, name: str, **result: Any) -> ValidationFolder:
        folder = runs.stored(self.root / name, runs.LIMITED, runs.limited_steps())
        steps = [{"throughput_per_s": rate} for rate in (3.0, 5.0, 6.0)]
        folder.write(RESULT, {"elapsed_s": 25.4, "steps": steps, **result})
        return folder


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    root = tmp_path / "runs"
    with closing(Server(make_app(Sources(root)), "127.0.0.1:0", headers=HEADERS)) as server:
        site = Archive(root, server.url)
        site.add("one", verdict={"kind": "PASS"}).set_labels(Labels("base"))
        site.add("two", verdict={"kind": "FAIL"})
        yield site


def complaints(browser: Browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


def text_of(browser: Browser) -> str:
    return browser.find_element(By.TAG_NAME, "body").text


def tell(folder: ValidationFolder, **fields: Any) -> None:
    progress = RunProgress(folder.name, "validation", "sleep 1", **fields)
    folder.replace(PROGRESS, [progress.to_json()])


def test_runs_are_chosen_and_compared_by_keyboard_alone(archive: Archive, browse: Open) -> None:
    browser = browse()
    browser.get(f"{archive.url}/runs")
    for run in ("base", "two"):
        box = browser.find_element(By.CSS_SELECTOR, f'input[aria-label="Compare {run}"]')
        reach(browser, box)
        box.send_keys(Keys.SPACE)
        assert box.is_selected()
    button = browser.find_element(By.XPATH, "//button[text()='Compare the marked runs']")
    reach(browser, button)
    button.send_keys(Keys.ENTER)
    eventually(lambda: "What changed" in text_of(browser))
    back = browser.find_element(By.LINK_TEXT, "Runs")
    reach(browser, back)
    back.send_keys(Keys.ENTER)
    eventually(lambda: "Mark two or more" in text_of(browser))


def reach(browser: Browser, wanted: Any) -> None:
    """Go to an element by the tabulator."""
    for _ in range(80):
        if browser.switch_to.active_element == wanted:
            return
        browser.switch_to.active_element.send_keys(Keys.TAB)
    raise AssertionError("the tabulator does not reach it")


def test_runs_are_chosen_and_read_without_a_script(archive: Archive, browse: Open) -> None:
    browser = browse(script=False)
    browser.get(f"{archive.url}/runs")
    Select(browser.find_element(By.NAME, "verdict")).select_by_visible_text("FAIL")
    browser.find_element(By.XPATH, "//button[text()='Show']").click()
    eventually(lambda: "1 run, of 2 in all" in text_of(browser))
    browser.find_element(By.LINK_TEXT, "two").click()
    eventually(lambda: "How far it scales" in text_of(browser))
    browser.find_element(By.LINK_TEXT, "Runs").click()
    eventually(lambda: "2 runs" in text_of(browser))
    assert browser.find_elements(By.CSS_SELECTOR, "svg.spark path")


def test_a_run_in_progress_is_renewed_without_losing_what_is_unfolded(
    archive: Archive, browse: Open
) -> None:
    folder = archive.add("three")
    browser = browse()
    with folder.locked():
        tell(folder, done=1, steps=8)
        browser.get(f"{archive.url}/live")
        assert browser.current_url.endswith("/live/three")
        assert "step 2 of 8" in text_of(browser) and "RUNNING" in text_of(browser)
        # bars of cells are as long as they say, although the policy forbids styles in attributes
        bar = browser.find_element(By.CSS_SELECTOR, ".share rect")
        assert bar.size["width"] > 10
        folds = browser.find_elements(By.CSS_SELECTOR, "details > summary")
        for fold in folds[:1]:
            fold.click()
        chart = browser.find_element(By.CSS_SELECTOR, ".report svg.chart")
        tell(folder, done=2, steps=8, verdict="FAIL", log=("4 workers: 9/s",))
        eventually(lambda: "step 3 of 8" in text_of(browser))
        assert "Verdict so far: FAIL" in text_of(browser)
        assert "Log: 4 workers: 9/s" in text_of(browser)
        # what has not changed was left alone
        assert chart.is_displayed()
        assert len(browser.find_elements(By.CSS_SELECTOR, "details[open]")) == len(folds[:1])
    tell(folder, done=8, steps=8, ended=True)
    eventually(lambda: "The run has ended" in text_of(browser))
    browser.find_element(By.LINK_TEXT, "Read its report").click()
    eventually(lambda: "How to reproduce" in text_of(browser))
    assert complaints(browser) == []


SLOW = {"offline": False, "latency": 1500, "downloadThroughput": -1, "uploadThroughput": -1}


@pytest.mark.parametrize("command", ["saturate", "validate"])
def test_an_open_page_shows_how_its_run_ended_also_in_a_slow_browser(
    command: str, browse: Open, tmp_path: Path
) -> None:
    browser = browse()
    with ExitStack() as stack:
        # of a long run, which ends when the page was seen
        line = ["validate", "--local", "--limit", "2", "--seconds", "0.1", "--step-time", "10m"]
        if command == "saturate":
            line = ["saturate", stack.enter_context(running("--slots", "4")), "--warm", "0"]
            line += ["--start", "20", "--maximum", "80", "--step-time", "10m"]
        line = [*program(*line, "--ui", "--run-dir", str(tmp_path / "run"))]
        log = stack.enter_context((tmp_path / "log").open("wb"))
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(process.wait)
        stack.callback(process.kill)
        watched = re.compile(r"watch it at (http://\S+)")
        address = eventually(lambda: watched.search((tmp_path / "log").read_text()))[1]
        browser.get(address)
        browser.execute_cdp_cmd("Network.enable", {})
        browser.execute_cdp_cmd("Network.emulateNetworkConditions", SLOW)
        assert "The run has ended" not in text_of(browser)
        process.send_signal(signal.SIGINT)
        assert process.wait() == 4
    assert "The run has ended" in text_of(browser)
    report = browser.find_element(By.CSS_SELECTOR, '[data-live="report"]').text
    assert "it is still being measured" not in report and "RUNNING" not in report
    # with the command its page is gone
    eventually(lambda: "has probably ended" in text_of(browser))


def test_a_run_is_started_followed_and_stopped_by_its_user_alone(
    browse: Open, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        starter = stack.enter_context(closing(Starter("s3cret")))
        app = make_app(Sources(tmp_path / "runs"), starter=starter)
        url = stack.enter_context(closing(Server(app, "127.0.0.1:0", headers=HEADERS))).url
        browser = browse()
        browser.get(f"{url}/start#token=s3cret")
        # given a page of another server of this machine, which knows the token
        foreign = Flask("foreign")
        form = (
            f'<form method="post" action="{url}/start"><input name="command" value="sleep 1">'
            '<input name="token" value="s3cret">'
        )
        foreign.add_url_rule("/", view_func=lambda: f"{form}<button>Win a prize</button></form>")
        other = stack.enter_context(closing(Server(foreign, "127.0.0.1:0"))).url
        browser.get(other)
        browser.find_element(By.TAG_NAME, "button").click()
        eventually(lambda: "did not come from the page Start" in text_of(browser))
        assert not (tmp_path / "runs").exists()
        # the page itself starts a run, shows it, and stops it
        browser.get(f"{url}/runs")
        browser.find_element(By.LINK_TEXT, "Start").click()
        browser.find_element(By.NAME, "command").send_keys("sleep 0.1")
        browser.find_element(By.XPATH, "//button[text()='Start']").click()
        eventually(lambda: f"/live/{starter.running}" in browser.current_url and starter.running)
        eventually(lambda: "validation: sleep 0.1" in text_of(browser))
        browser.find_element(By.XPATH, "//button[text()='Stop the run']").click()
        eventually(lambda: "The run has ended" in text_of(browser))
        eventually(lambda: not starter.running)


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
    eventually(lambda: "is not valid JSON" not in text_of(browser))


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
