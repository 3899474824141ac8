"""A headless Chromium of the system, driven through its own driver; nothing is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.conftest import missing

Browser = webdriver.Chrome
ONLINE = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests: it takes longer to start than most of them run."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing("chromium or its driver (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = str(chromium)
    for argument in (
        "--headless=new",
        "--no-sandbox",  # as root, in a container
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(str(driver)))
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
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        for kind in ("browser", "performance"):
            chrome.get_log(kind)
        return chrome

    yield as_new
    chrome.execute_cdp_cmd("Network.emulateNetworkConditions", ONLINE)
    chrome.get("about:blank")
