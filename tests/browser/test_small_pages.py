"""The exporter's page and that of simulated rules: as wide as a phone's screen, and accessible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from selenium.webdriver.common.by import By

from scaletest.cli.autoscale import command
from scaletest.exporter.app import make_app
from scaletest.http.server import Server
from scaletest.pages.security import HEADERS
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Browser
from tests.unit.test_exporter import queue, view

LONG = "a-queue-with-a-rather-long-name-for-narrow-screens.and-more-of-it_" + "x" * 30


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
def test_the_page_of_the_exporter_has_the_common_look(
    browse: Callable[..., Browser], width: int, dark: bool
) -> None:
    app = make_app(lambda: view(queue(LONG)), lambda: True)
    browser = browse(width, dark=dark)
    with closing(Server(app, "127.0.0.1:0", headers=HEADERS)) as server:
        browser.get(server.url)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        body = browser.find_element(By.TAG_NAME, "body")
        assert "Redis answers. 1 queue and 1 client" in body.text
        # the style sheet was let through by the page's policy
        assert body.value_of_css_property("margin-top") == "0px"
        assert browser.get_log("browser") == []
        assert_accessible(browser)


def test_the_page_of_rules_is_as_wide_as_the_screen(
    browse: Callable[..., Browser], tmp_path: Path
) -> None:
    page = tmp_path / "rules.html"
    line = ["simulate", "--duration", "300", "--rule", "demand", "-o", str(page)]
    assert CliRunner().invoke(command, line, standalone_mode=False).exception is None
    browser = browse(390)
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
