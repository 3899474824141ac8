"""Pages and reports have no serious violation of accessibility: light, dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from scaletest.report import formats
from scaletest.report.validation.report import validation_report
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Browser
from tests.browser.test_client_page import Site
from tests.conftest import eventually
from tests.unit import runs

Open = Callable[..., Browser]
WINDOWS = pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (390, False), (390, True)]
)


@WINDOWS
def test_the_client_page_is_accessible(browse: Open, width: int, dark: bool) -> None:
    site = Site()
    site.steering.set_parallel(16)
    eventually(lambda: len(site.statistics.snapshot().bins) > 1)
    eventually(lambda: site.statistics.snapshot().failed > 2)
    browser = browse(width, dark=dark)
    browser.get(site.url)
    eventually(lambda: "updated" in browser.find_element(By.ID, "freshness").text)
    assert_accessible(browser)
    site.close()


@WINDOWS
@pytest.mark.parametrize("case", ["pass", "limited"])
def test_a_report_is_accessible(
    browse: Open, tmp_path: Path, case: str, width: int, dark: bool
) -> None:
    page = tmp_path / "report.html"
    page.write_text(formats.render(validation_report(runs.make(case, tmp_path)), "html"), "utf-8")
    browser = browse(width, dark=dark)
    browser.get(page.as_uri())
    assert_accessible(browser)


def test_a_page_that_is_not_accessible_is_refused(browse: Open, tmp_path: Path) -> None:
    # given pale text, a button without a name and a picture without words, and the pages' policy
    page = tmp_path / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><title>t</title><meta http-equiv=Content-Security-Policy"
        " content=\"default-src 'none'; style-src 'unsafe-inline'\"><main><h1>t</h1>"
        '<p style="color:#ccc;background:#fff">pale</p><button></button><img src="x.png"></main>',
        "utf-8",
    )
    browser = browse()
    browser.get(page.as_uri())
    with pytest.raises(AssertionError) as refused:
        assert_accessible(browser)
    for rule in ("color-contrast (serious)", "button-name (critical)", "image-alt (critical)"):
        assert rule in str(refused.value)
