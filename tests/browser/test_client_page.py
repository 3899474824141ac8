"""The client's page in a real browser, over a load that the test makes up."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from hack.browser import Browser
from scaletest.client_page.app import make_app
from scaletest.load import ClosedLoop, LoadLoop, OpenLoop, Statistics, Steering, pace
from scaletest.model import Outcome, Reason, Request
from scaletest.pages.security import HttpCounts
from scaletest.pages.server import Server
from tests.browser.conftest import ONLINE, eventually
from tests.unit.fakes import FakeClient, replied

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


class Site:
    """A load that answers itself with what a bad day brings, and its page."""

    def __init__(self, follows: Iterator[float] | None = None, **options: str) -> None:
        """follows: the pace of an open load."""
        self._number = 0
        client: Any = FakeClient(self._answer)
        self.statistics = Statistics("films")
        take, observer = self.statistics.add, self.statistics
        if follows is None:
            self.loop: LoadLoop = ClosedLoop(client, "films", take, delay_s=0.02, observer=observer)
        else:
            self.loop = OpenLoop(client, "films", take, follows, maximum=64, observer=observer)
        self.steering = Steering(self.loop, self.statistics, load="closed", maximum=64)
        counts = HttpCounts()
        self.server = Server(make_app(self.steering, counts, **options), "127.0.0.1:0")
        self.url = f"{self.server.url}/"

    def _answer(self, request: Request) -> Any:
        self._number += 1
        place = {"node": f"node-{self._number % 3}", "pod": f"transcode-{self._number % 6}"}
        place["worker"] = place["pod"]
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
    field = browser.find_element(By.ID, "wanted")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "9", Keys.ENTER)
    eventually(lambda: site.steering.parallel == 9)
    eventually(lambda: browser.find_element(By.ID, "said").text == "9 requests in parallel.")
    # the buttons follow
    double = browser.find_element(By.CSS_SELECTOR, "[data-button='twice']")
    eventually(lambda: double.get_attribute("value") == "18")
    double.click()
    eventually(lambda: site.steering.parallel == 18)
    eventually(
        lambda: (
            tile(browser, "In flight")
            and browser.find_element(By.ID, "wanted").get_attribute("value") == "18"
        )
    )
    # clicks that come faster than answers all count
    more = browser.find_element(By.CSS_SELECTOR, "[data-button='more']")
    browser.execute_script("for (let n = 0; n < 5; n += 1) arguments[0].click();", more)
    eventually(lambda: site.steering.parallel == 23)
    # more than the maximum is not accepted by the field, and pausing is a button
    browser.find_element(By.CSS_SELECTOR, "[data-button='pause']").click()
    eventually(lambda: site.steering.parallel == 0)
    assert browser.current_url == site.url
    check_quiet(browser, site)


@pytest.fixture
def paced() -> Iterator[Site]:
    """An open load of 20 requests a second."""
    site = Site(pace.constant(20))
    yield site
    site.close()


def button(browser: Browser, key: str) -> Any:
    return browser.find_element(By.CSS_SELECTOR, f"[data-button='{key}']")


def drawn(browser: Browser) -> None:
    """Wait for the charts that follow the pointer."""
    eventually(lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure .uplot canvas")) == 6)


def chart_text(browser: Browser, chart: str) -> str:
    """What a chart says beside the names of its lines, and when that was."""
    return inner(browser, f"[data-chart='{chart}']", "innerText").replace("\n", " ")


@pytest.mark.parametrize("script", [False, True])
def test_a_paused_load_goes_on_with_the_former_number(
    site: Site, browse: Open, script: bool
) -> None:
    browser = browse(script=script)
    site.steering.set_parallel(7)
    browser.get(site.url)
    button(browser, "pause").click()
    eventually(lambda: site.steering.parallel == 0)
    # also after the page was loaded anew, and from another browser
    browser.get(site.url)
    eventually(lambda: button(browser, "pause").text == "Resume 7")
    button(browser, "pause").click()
    eventually(lambda: site.steering.parallel == 7)
    eventually(lambda: button(browser, "pause").text == "Pause")
    assert inner(browser, "#wanted", "value") == "7"
    check_quiet(browser, site)


def test_the_rate_of_an_open_load_is_steered(paced: Site, browse: Open) -> None:
    browser = browse()
    browser.get(paced.url)
    field = browser.find_element(By.ID, "wanted")
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "1800/min", Keys.ENTER)
    eventually(lambda: paced.steering.rate == 30)
    eventually(
        lambda: browser.find_element(By.ID, "said").text == "30 requests per second are started."
    )
    eventually(lambda: inner(browser, "[data-live='load']", "innerText") == "30 requests/s")
    button(browser, "twice").click()
    eventually(lambda: paced.steering.rate == 60)
    button(browser, "pause").click()
    eventually(lambda: paced.steering.rate == 0)
    eventually(lambda: button(browser, "pause").text == "Resume 60/s")
    button(browser, "pause").click()
    eventually(lambda: paced.steering.rate == 60)
    # what is no rate changes nothing
    field.send_keys(Keys.CONTROL, "a", Keys.NULL, "fast")
    browser.execute_script("arguments[0].form.noValidate = true", field)
    field.send_keys(Keys.ENTER)
    eventually(lambda: "is not a rate" in browser.find_element(By.ID, "said").text)
    assert paced.steering.rate == 60
    (refused,) = browser.get_log("browser")  # Chromium tells of each status of 400 and above
    assert "400" in refused["message"]
    check_quiet(browser, paced)


def test_the_pointer_shows_values_in_all_charts_at_once(site: Site, browse: Open) -> None:
    eventually(lambda: len(site.statistics.snapshot().points) > 4)
    browser = browse()
    browser.get(site.url)
    drawn(browser)
    canvas = browser.find_element(By.CSS_SELECTOR, "[data-chart='rate'] .u-over")
    width = canvas.size["width"]
    ActionChains(browser).move_to_element_with_offset(canvas, -width // 2 + 5, 0).perform()
    for chart in ("rate", "in_flight", "wait", "run", "overhead", "total"):
        eventually(lambda chart=chart: "at 0:00 (" in chart_text(browser, chart))
    assert re.search(r"succeeded \d", chart_text(browser, "rate"))
    assert "asked for 4" in chart_text(browser, "in_flight")
    assert re.search(
        # few requests have no 95th percentile
        r"median \d+ ms 95th percentile (\d+ ms|n/a) longest \d+ ms",
        chart_text(browser, "run"),
    )
    # away from the charts they show the last point again
    ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "h1")).perform()
    eventually(lambda: "at 0:00 (" not in chart_text(browser, "run"))
    check_quiet(browser, site)


def test_arrow_keys_move_through_the_charts(site: Site, browse: Open) -> None:
    eventually(lambda: len(site.statistics.snapshot().points) > 3)
    browser = browse()
    browser.get(site.url)
    drawn(browser)
    browser.execute_script("document.querySelector('[data-chart=run] [data-drawn]').focus()")

    def press(key: str) -> None:
        ActionChains(browser).send_keys(key).perform()

    press(Keys.HOME)
    eventually(lambda: "at 0:00 (" in chart_text(browser, "rate"))
    press(Keys.ARROW_RIGHT)
    eventually(lambda: "at 0:01 (" in chart_text(browser, "total"))
    shown = inner(browser, "[data-chart='run'] [data-drawn]", "ariaValueText")
    assert re.match(r"at 0:01 \(\d\d:\d\d:\d\dZ\): median \d+ ms, 95th percentile", shown)
    # the chosen point stays while new ones come
    count = int(inner(browser, "[data-chart='run'] [data-drawn]", "ariaValueMax"))
    eventually(
        lambda: int(inner(browser, "[data-chart='run'] [data-drawn]", "ariaValueMax")) > count
    )
    assert "at 0:01 (" in chart_text(browser, "rate")
    press(Keys.ESCAPE)
    eventually(lambda: "at 0:01 (" not in chart_text(browser, "rate"))
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
    eventually(lambda: len(site.statistics.snapshot().points) > 1)
    browser = browse(script=False)
    browser.get(site.url)
    assert whole(tile(browser, "Succeeded")) > 0
    assert "Drawn with JavaScript" in browser.find_element(By.TAG_NAME, "figure").text
    browser.find_element(By.CSS_SELECTOR, "[data-button='more']").click()
    eventually(lambda: site.steering.parallel == 5)
    field = browser.find_element(By.ID, "wanted")
    field.clear()
    field.send_keys("3", Keys.ENTER)
    eventually(lambda: site.steering.parallel == 3)
    browser.find_element(By.TAG_NAME, "summary").click()
    browser.find_element(By.CSS_SELECTOR, "[data-reset] button").click()
    eventually(lambda: site.statistics.snapshot().generation == 1)
    assert browser.current_url == site.url
    check_quiet(browser, site)


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
    browser.find_element(By.CSS_SELECTOR, "[data-button='more']").click()
    eventually(lambda: site.steering.parallel == 1)
    check_quiet(browser, site)
    site.close()
