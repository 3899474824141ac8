"""The browser of these tests: one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hack.browser import Browser, NoBrowser, resize, start
from tests.conftest import missing

ONLINE = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests: it takes longer to start than most of them run."""
    try:
        browser = start(tmp_path_factory.mktemp("chromium"))
    except NoBrowser as error:
        missing(str(error))
        raise
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
