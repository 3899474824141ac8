"""The report in a real browser: nothing is blocked or asked for, and it can be read on a phone."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from hack.browser import Browser
from scaletest.report import formats
from scaletest.report.formats.html import render_notebook
from scaletest.validation.report.report import validation_report
from tests.browser.conftest import eventually
from tests.unit import made_runs as runs

Open = Callable[..., Browser]

# Runs in the page around the report's frame, which itself may run nothing.
PROBE = """
<script>
onload = () => {
  const page = frames[0].document, box = css => page.querySelector(css).getBoundingClientRect();
  document.body.dataset.found = JSON.stringify({
    wide: page.documentElement.scrollWidth,
    verdict: page.querySelector('.verdict strong').innerText,
    below: box('.verdict').bottom,
    narrow: box('.narrow svg').width,
    broad: box('.wide svg').width,
    ink: frames[0].getComputedStyle(page.body).color,
    small: Math.min(...[...page.querySelectorAll('svg text')].map(
      text => text.getBoundingClientRect().height || 99)),
  });
};
</script>
"""


def opened(browser: Browser, page: Path) -> tuple[str, list[str]]:
    """What the page is after it was loaded, and what the browser's console said."""
    browser.get(page.as_uri())
    return browser.page_source, [entry["message"] for entry in browser.get_log("browser")]


@pytest.mark.parametrize("case", runs.CASES)
def test_every_report_opens_without_a_complaint_and_shows_its_verdict(
    browse: Open, tmp_path: Path, case: str
) -> None:
    run = runs.make(case, tmp_path)
    page = tmp_path / "report.html"
    page.write_text(formats.render(validation_report(run), "html"), "utf-8")
    dom, console = opened(browse(), page)
    assert console == []
    assert f"<strong>{run.result.verdict.kind}</strong>" in dom
    assert "<script" not in dom


def test_the_content_policy_blocks_scripts_and_pictures(browse: Open, tmp_path: Path) -> None:
    # given the same page with a script and a picture in it, expect the policy to block both and the
    # console to say so
    page = tmp_path / "report.html"
    text = formats.render(validation_report(runs.make("pass", tmp_path)), "html")
    page.write_text(
        text.replace("<main>", "<main><script>document.title = 'ran'</script><img src=x.png>"),
        "utf-8",
    )
    dom, console = opened(browse(), page)
    assert "<title>ran" not in dom
    assert len(console) == 2


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
def test_the_report_fits_phones_and_screens_in_light_and_dark(
    browse: Open, tmp_path: Path, width: int, dark: bool
) -> None:
    page = tmp_path / "frame.html"
    report = html.escape(
        formats.render(validation_report(runs.make("fail", tmp_path)), "html"), quote=True
    )
    page.write_text(
        f'{PROBE}<iframe width="{width}" height="844" style="border:0" srcdoc="{report}"></iframe>',
        "utf-8",
    )
    browser = browse(1400, 900, dark=dark)
    browser.get(page.as_uri())
    data = eventually(lambda: browser.find_element(By.TAG_NAME, "body").get_attribute("data-found"))
    sizes = json.loads(str(data))
    assert sizes["verdict"] == "FAIL"
    assert sizes["wide"] <= width  # nothing to scroll sideways
    assert sizes["below"] < 844  # the verdict is on the first screen
    assert (sizes["narrow"] > 0, sizes["broad"] > 0) == (width < 640, width >= 640)
    assert sizes["small"] >= 9.0
    light = [int(part) for part in re.findall(r"\d+", sizes["ink"])]
    assert (min(light) > 200) is dark


def test_the_output_of_a_notebook_is_a_report_and_changes_nothing_else(
    browse: Open, tmp_path: Path
) -> None:
    report = validation_report(runs.make("limited", tmp_path))
    page = tmp_path / "notebook.html"
    page.write_text(
        "<!doctype html><meta charset='utf-8'><style>td{color:red;font-size:1px}</style>"
        f"<p id='outside' style='color:#123456'>text</p>{render_notebook(report)}",
        "utf-8",
    )
    browser = browse()
    _, console = opened(browser, page)
    assert console == []
    outside = browser.find_element(By.ID, "outside")
    assert outside.value_of_css_property("color") == "rgba(18, 52, 86, 1)"
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    assert report.head.verdict.reason[:20] in browser.find_element(By.TAG_NAME, "main").text
    cell = browser.find_element(By.TAG_NAME, "td")
    assert cell.value_of_css_property("font-size") != "1px"


def test_contents_work_without_script_and_nothing_of_short_tables_is_cut_off_on_a_phone(
    browse: Open, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text(
        formats.render(validation_report(runs.make("sampled", tmp_path)), "html"), "utf-8"
    )
    browser = browse(390, 844)
    opened(browser, page)
    link = browser.find_element(By.LINK_TEXT, "Wait and run times")
    link.click()
    heading = browser.find_element(By.ID, "section-wait-and-run-times")
    top = "return arguments[0].getBoundingClientRect().top"
    eventually(lambda: -5 < browser.execute_script(top, heading) < 400)
    assert browser.current_url.endswith("#section-wait-and-run-times")
    cut = browser.execute_script(
        "return [...document.querySelectorAll('.wrapped')].map("
        "table => table.parentNode.scrollWidth - table.parentNode.clientWidth)"
    )
    assert cut and max(cut) <= 0
