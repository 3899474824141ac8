"""A headless Chromium of the system, driven through its own driver; nothing is downloaded."""

import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

Browser = webdriver.Chrome


class NoBrowser(Exception):
    """Chromium or its driver is not installed."""


def start(profile: Path) -> Browser:
    """Start a browser with an empty profile in this folder. Raises NoBrowser."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise NoBrowser("chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",  # as root, in a container
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


def resize(
    browser: Browser, width: int, height: int, *, dark: bool = False, scale: float = 1
) -> None:
    """Show pages at this size in CSS pixels; scale: how many pixels each of them has."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
