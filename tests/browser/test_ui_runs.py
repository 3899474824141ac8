"""The pages Runs, Compare and Live in a real browser: on desktop and phone, light and dark, by
keyboard alone, and without a script.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from scaletest.http.server import Server
from scaletest.model.labels import Labels
from scaletest.model.run_progress import RunProgress
from scaletest.pages.security import HEADERS
from scaletest.runs.folder import PROGRESS, RESULT
from scaletest.ui import runs as runs_page
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from scaletest.validation.folder import ValidationFolder
from tests.browser.conftest import Browser, eventually
from tests.conftest import program
from tests.integration.services import running
from tests.unit import runs

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
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    monkeypatch.setattr(runs_page, "PATIENCE_S", 60.0)
    root = tmp_path / "runs"
    with closing(Server(make_app(Sources(root)), "127.0.0.1:0", headers=HEADERS)) as server:
        site = Archive(root, server.url)
        site.add("one", verdict={"kind": "PASS"}).relabel(lambda _: Labels("base"))
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


def test_a_run_in_progress_is_shown_without_a_script(archive: Archive, browse: Open) -> None:
    folder = archive.add("three")
    browser = browse(390, script=False)
    with folder.locked():
        tell(folder, done=1, steps=8)
        browser.get(f"{archive.url}/live")
        assert "step 2 of 8" in text_of(browser) and "How far it scales" in text_of(browser)


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
