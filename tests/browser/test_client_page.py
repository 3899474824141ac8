"""The client's page in a real browser, over a load that the test makes up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from scaletest import pages
from scaletest.http.server import Server
from scaletest.load import ClosedLoop, Statistics, Steering
from scaletest.model import Outcome, Reason, Request
from scaletest.pages.security import HttpCounts
from scaletest.web.app import make_app
from tests.browser.conftest import ONLINE, Browser
from tests.conftest import eventually, missing
from tests.unit.fakes import FakeClient, replied

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
SHOTS = os.environ.get("SCALETEST_SCREENSHOTS", "")


class Site:
    """A load that answers itself with what a bad day brings, and its page."""

    def __init__(self, **options: str) -> None:
        self._number = 0
        client: Any = FakeClient(self._answer)
        self.statistics = Statistics("films")
        loop = ClosedLoop(
            client, "films", self.statistics.add, delay_s=0.02, observer=self.statistics
        )
        self.loop = loop
        self.steering = Steering(loop, self.statistics, load="closed", maximum=64)
        counts = HttpCounts()
        self.server = Server(make_app(self.steering, counts, **options), "127.0.0.1:0")
        self.url = f"{self.server.url}/"

    def _answer(self, request: Request) -> Any:
        self._number += 1
        place = {"node": f"node-{self._number % 3}", "pod": f"transcode-{self._number % 5}"}
        run_s = 0.4 + self._number % 17 / 40
        if self._number % 25 == 0:
            text = HOSTILE if self._number % 50 else "/usr/bin/ffmpeg returned error code 1"
            failed = {"reason": Reason.EXIT, "exit_code": 1, "error": text, "ended_s": 0.0}
            return replied(request.id, Outcome.FAILED, **place, **failed)
        return replied(
            request.id, **place, device=f"/dev/dri/renderD{128 + self._number % 2}", run_s=run_s
        )

    def close(self) -> None:
        self.server.close()
        self.loop.close()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    site.steering.set_parallel(4)
    yield site
    site.close()


def tile(browser: Browser, name: str) -> str:
    """The number under a name, read in one go, since the script may replace it at any time."""
    find = "[...document.querySelectorAll('.tiles dt')].find(e => e.textContent === arguments[0])"
    return str(
        browser.execute_script(f"return {find}.nextElementSibling.firstChild.textContent", name)
    )


def inner(browser: Browser, selector: str, property_name: str = "innerHTML") -> str:
    """A property of the first element that is found, read in one go; "" when there is none."""
    script = f"return document.querySelector(arguments[0])?.{property_name} ?? ''"
    return str(browser.execute_script(script, selector))


def whole(text: str) -> int:
    """The number, without the spaces between its thousands."""
    return int("".join(character for character in text if character.isdigit()))


def check_quiet(browser: Browser, site: Site) -> None:
    """Nothing on the console, and no request to anybody else."""
    assert browser.get_log("browser") == []
    asked = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        entry["params"]["request"]["url"]
        for entry in asked
        if entry["method"] == "Network.requestWillBeSent"
    ]
    assert urls
    assert {urlsplit(url).netloc for url in urls if url.startswith("http")} == {
        urlsplit(site.url).netloc
    }


Open = Callable[..., Browser]


def test_numbers_move_and_the_load_is_steered_without_leaving_the_page(
    site: Site, browse: Open
) -> None:
    browser = browse()
    browser.get(site.url)
    first = whole(tile(browser, "Succeeded"))
    eventually(lambda: whole(tile(browser, "Succeeded")) > first + 10)
    # the field, in one go: while it has the focus the page does not write into it
    field = browser.find_element(By.ID, "parallel")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "9", Keys.ENTER)
    eventually(lambda: site.steering.parallel == 9)
    eventually(lambda: browser.find_element(By.ID, "said").text == "9 requests in parallel.")
    # the buttons follow
    double = browser.find_element(By.CSS_SELECTOR, "[data-step='*2']")
    eventually(lambda: double.get_attribute("value") == "18")
    double.click()
    eventually(lambda: site.steering.parallel == 18)
    eventually(
        lambda: (
            tile(browser, "In flight")
            and browser.find_element(By.ID, "parallel").get_attribute("value") == "18"
        )
    )
    # clicks that come faster than answers all count
    more = browser.find_element(By.CSS_SELECTOR, "[data-step='+1']")
    browser.execute_script("for (let n = 0; n < 5; n += 1) arguments[0].click();", more)
    eventually(lambda: site.steering.parallel == 23)
    # more than the maximum is not accepted by the field, and pausing is a button
    browser.find_element(By.CSS_SELECTOR, "[data-step='0']").click()
    eventually(lambda: site.steering.parallel == 0)
    assert browser.current_url == site.url
    check_quiet(browser, site)


def test_the_reset_button_sets_the_statistics_to_zero(site: Site, browse: Open) -> None:
    browser = browse()
    browser.get(site.url)
    eventually(lambda: site.statistics.snapshot().succeeded > 200)
    site.steering.set_parallel(0)
    browser.find_element(By.TAG_NAME, "summary").click()
    browser.find_element(By.CSS_SELECTOR, "[data-reset] button").click()
    eventually(lambda: site.statistics.snapshot().generation == 1)
    eventually(lambda: whole(tile(browser, "Succeeded")) < 10)
    eventually(lambda: browser.find_element(By.ID, "said").text == "The statistics began anew.")
    check_quiet(browser, site)


def test_names_with_markup_are_shown_as_text(site: Site, browse: Open) -> None:
    browser = browse()
    site.steering.set_parallel(32)
    eventually(lambda: site.statistics.snapshot().failed > 2)
    browser.get(site.url)
    assert HOSTILE in inner(browser, "table.failures", "innerText")
    assert browser.find_elements(By.CSS_SELECTOR, "main img") == []
    # also after the script has put it there
    before = whole(tile(browser, "Failed"))
    eventually(lambda: whole(tile(browser, "Failed")) > before)
    assert browser.title == "films – scaletest client"  # noqa: RUF001
    assert browser.find_elements(By.CSS_SELECTOR, "main img") == []
    check_quiet(browser, site)


def test_the_page_works_without_javascript(site: Site, browse: Open) -> None:
    eventually(lambda: len(site.statistics.snapshot().bins) > 1)
    browser = browse(script=False)
    browser.get(site.url)
    assert whole(tile(browser, "Succeeded")) > 0
    drawings = browser.find_elements(
        By.CSS_SELECTOR, "figure svg.chart path.line, figure svg.chart circle"
    )
    assert len(drawings) > 6
    browser.find_element(By.CSS_SELECTOR, "[data-step='+1']").click()
    eventually(lambda: site.steering.parallel == 5)
    field = browser.find_element(By.ID, "parallel")
    field.clear()
    field.send_keys("3", Keys.ENTER)
    eventually(lambda: site.steering.parallel == 3)
    browser.find_element(By.TAG_NAME, "summary").click()
    browser.find_element(By.CSS_SELECTOR, "[data-reset] button").click()
    eventually(lambda: site.statistics.snapshot().generation == 1)
    assert browser.current_url == site.url
    check_quiet(browser, site)


def test_charts_are_drawn_by_uplot_where_it_was_built_in_and_by_the_server_elsewhere(
    site: Site, browse: Open, monkeypatch: Any
) -> None:
    eventually(lambda: len(site.statistics.snapshot().bins) > 1)
    browser = browse()
    monkeypatch.setattr(pages.site, "UPLOT", Path("/nonexistent"))
    browser.get(site.url)
    before = inner(browser, "[data-chart='rate'] svg")
    eventually(lambda: inner(browser, "[data-chart='rate'] svg") not in ("", before))
    monkeypatch.undo()
    if not pages.site.UPLOT.exists():
        missing("uPlot (npm, then: python3 hatch_build.py)")
    browser.get(site.url)
    eventually(lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure .uplot canvas")) == 6)
    assert browser.find_elements(By.CSS_SELECTOR, "figure svg.chart") == []
    check_quiet(browser, site)


def test_the_keyboard_reaches_everything_in_order(site: Site, browse: Open) -> None:
    browser = browse()
    browser.get(site.url)
    names = []
    for _ in range(12):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        # in one go, since the script may replace it at any time
        name = "const e = document.activeElement; return e.ariaLabel || e.innerText || e.id"
        names.append(str(browser.execute_script(name)).strip())
    assert names[:4] == ["To the statistics", "parallel", "Set", "Pause: no requests"]
    assert "Reset the statistics" in names
    # every control and every image has a name, every table header a scope
    unnamed = browser.execute_script(
        "return [...document.querySelectorAll('button, input:not([type=hidden]), [role=img],"
        " [role=region]')].filter(e => !(e.textContent.trim() || e.labels?.length || e.ariaLabel ||"
        " e.hasAttribute('aria-labelledby'))).length +"
        " document.querySelectorAll('th:not([scope])').length"
    )
    assert unnamed == 0


def test_the_page_says_when_the_client_stops_answering_and_when_it_answers_again(
    site: Site, browse: Open
) -> None:
    browser = browse()
    browser.get(site.url)
    fresh = browser.find_element(By.ID, "freshness")
    eventually(lambda: "updated" in fresh.text)
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", {**ONLINE, "offline": True})
    eventually(lambda: "does not answer" in fresh.text)
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", ONLINE)
    eventually(lambda: "updated" in fresh.text)


def test_the_page_works_behind_a_path_prefix(browse: Open) -> None:
    site = Site(prefix="/tester")
    browser = browse()
    browser.get(f"{site.url}tester/")
    browser.find_element(By.CSS_SELECTOR, "[data-step='+1']").click()
    eventually(lambda: site.steering.parallel == 1)
    check_quiet(browser, site)
    site.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(("width", "height"), [(1280, 2600), (390, 4200)])
def test_nothing_is_wider_than_the_window(
    site: Site, browse: Open, width: int, height: int, dark: bool
) -> None:
    site.steering.set_parallel(16)
    eventually(
        lambda: len(site.statistics.snapshot().bins) > 1 and site.statistics.snapshot().failed > 2
    )
    browser = browse(width, height, dark=dark)
    browser.get(site.url)
    eventually(lambda: "updated" in browser.find_element(By.ID, "freshness").text)
    sizes = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scroll, client = browser.execute_script(sizes)
    assert scroll <= client
    dark_ground = (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        == "rgb(18, 21, 27)"
    )
    assert dark_ground == dark
    if SHOTS:
        browser.save_screenshot(f"{SHOTS}/{'dark' if dark else 'light'}-{width}.png")
