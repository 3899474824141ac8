"""The exporter's page and that of simulated rules on a phone: as wide as the screen, and numbers
are in sight.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from scaletest.cli.autoscale import command
from tests.browser.conftest import Browser
from tests.unit.test_exporter import client_of, queue, view

LONG = "a-queue-with-a-rather-long-name-for-narrow-screens.and-more-of-it_" + "x" * 30


def test_a_long_name_leaves_room_for_the_numbers(
    browse: Callable[..., Browser], tmp_path: Path
) -> None:
    page = tmp_path / "queues.html"
    page.write_text(client_of(view(queue(LONG))).get("/").text, "utf-8")
    browser = browse(390)
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    right = "return document.querySelector('tbody td').getBoundingClientRect().right"
    assert browser.execute_script(right) < 390


def test_the_page_of_rules_is_as_wide_as_the_screen(
    browse: Callable[..., Browser], tmp_path: Path
) -> None:
    page = tmp_path / "rules.html"
    line = ["simulate", "--duration", "300", "--rule", "demand", "-o", str(page)]
    assert CliRunner().invoke(command, line, standalone_mode=False).exception is None
    browser = browse(390)
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
