"""A headless Chromium of the system, driven through its own driver; nothing is downloaded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from tests.conftest import missing

Browser = webdriver.Chrome


@pytest.fixture
def browse(tmp_path: Any) -> Iterator[Callable[..., Browser]]:
    """Open browsers: width and height in pixels, dark or not, with or without script."""
    opened: list[Browser] = []
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing("chromium or its driver (apt-get install chromium chromium-driver)")

    def open_one(width: int = 1280, height: int = 900, *, dark: bool = False, script: bool = True) -> Browser:
        options = webdriver.ChromeOptions()
        options.binary_location = str(chromium)
        for argument in (
            "--headless=new",
            "--no-sandbox",  # as root, in a container
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            f"--user-data-dir={tmp_path}/profile-{len(opened)}",
            f"--window-size={width},{height}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        browser = webdriver.Chrome(options=options, service=Service(str(driver)))
        opened.append(browser)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        if width < 500:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        if not script:
            browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        return browser

    yield open_one
    for browser in opened:
        browser.quit()
