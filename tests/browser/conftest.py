"""The browser of these tests: one for all of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException

from hack.browser import Browser, NoBrowser, resize, start
from tests import conftest
from tests.conftest import missing

ONLINE = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def eventually(condition: Callable[[], Any]) -> Any:
    """Wait for a truthy value, also of elements of a page that comes in place of another one."""

    def on_this_page() -> Any:
        try:
            return condition()
        except (NoSuchElementException, StaleElementReferenceException):
            return None

    return conftest.eventually(on_this_page)


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests: it takes longer to start than most of them run."""
    try:
        browser = start(tmp_path_factory.mktemp("chromium"))
    except NoBrowser as error:
        missing(str(error))
    yield browser
    browser.quit()


@pytest.fixture
def browse(chrome: Browser) -> Iterator[Callable[..., Browser]]:
    """The browser as if just started: width and height in pixels, dark or not, with or without
    script.
    """

    def as_new(
        width: int = 1280, height: int = 900, *, dark: bool = False, script: bool = True
    ) -> Browser:
        resize(chrome, width, height, dark=dark)
        chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        for kind in ("browser", "performance"):
            chrome.get_log(kind)
        return chrome

    yield as_new
    chrome.execute_cdp_cmd("Network.emulateNetworkConditions", ONLINE)
    chrome.get("about:blank")
