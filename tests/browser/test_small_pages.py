"""The exporter's page, and reports of simulated rules, lifecycles and benchmarks: as wide as the
screen, numbers in sight, accessible, and no complaint of the browser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from scaletest.exporter.app import make_app
from scaletest.http.server import Server
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.pages.security import HEADERS
from scaletest.report import formats
from scaletest.report.autoscaling import simulation_report
from scaletest.report.benchmark import benchmark_report
from scaletest.report.lifecycle import lifecycle_report
from tests.browser.axe import assert_accessible
from tests.browser.conftest import Browser
from tests.unit.lifecycles import of
from tests.unit.test_autoscale_report import played
from tests.unit.test_benchmark_report import READ, a_run, only
from tests.unit.test_exporter import queue, view
from tests.unit.test_lifecycle_figures import made

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


def simulated_rules() -> str:
    """The page of two rules."""
    simulation = played("waiting-fast", "desired:window=300")
    return formats.render(simulation_report(simulation), "html")


def lifecycle() -> str:
    """The page of a lifecycle of pods on three nodes."""
    run = LifecycleRun("", "/runs/l", of(*made(60, 2), until="ready"), title="lifecycle of 60 Jobs")
    return formats.render(lifecycle_report(run), "html")


def single_benchmark() -> str:
    """The page of one benchmark, which has no chart."""
    return formats.render(benchmark_report(only(READ)), "html")


def sweep() -> str:
    """The page of benchmarks over a value."""
    return formats.render(benchmark_report(a_run()), "html")


PAGES = {
    "rules": simulated_rules,
    "lifecycle": lifecycle,
    "benchmark": single_benchmark,
    "sweep": sweep,
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
def test_reports_fit_the_screen_and_can_be_read(
    browse: Callable[..., Browser], tmp_path: Path, name: str, width: int, dark: bool
) -> None:
    page = tmp_path / "report.html"
    page.write_text(PAGES[name](), "utf-8")
    browser = browse(width, dark=dark)
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    # expect text in charts that is as large as a reader needs, and none outside of its chart
    small, outside = browser.execute_script(
        """
        let small = 99, outside = [];
        for (const text of document.querySelectorAll('svg text')) {
          const box = text.getBoundingClientRect();
          const frame = text.ownerSVGElement.getBoundingClientRect();
          if (!box.width) continue;
          small = Math.min(small, box.height, box.width + 9);
          if (box.left < frame.left - 1 || box.right > frame.right + 1
              || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
            outside.push(text.textContent);
        }
        return [small, outside];
        """
    )
    assert small >= 9 and outside == []
    ink = browser.execute_script("return getComputedStyle(document.body).color")
    assert (min(map(int, re.findall(r"\d+", ink))) > 200) is dark
