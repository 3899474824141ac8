"""The report in a real browser: nothing is blocked or asked for, and it can be read on a phone."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scaletest.report.formats import FORMATS
from tests.conftest import missing
from tests.unit import runs

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
    small: Math.min(...[...page.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height || 99)),
  });
};
</script>
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    """The browser's program."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        missing("chromium")
    assert found
    return found


def browse(chromium: str, page: Path, *options: str) -> tuple[str, list[str]]:
    """What the page is after it was loaded, and what the browser's console said."""
    line = [
        chromium,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={page.parent / 'profile'}",
        *options,
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=280, check=True)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


@pytest.mark.parametrize("case", runs.CASES)
def test_every_report_opens_without_a_complaint_and_shows_its_verdict(chromium: str, tmp_path: Path, case: str) -> None:
    run = runs.make(case, tmp_path)
    page = tmp_path / "report.html"
    page.write_text(FORMATS["html"](run), "utf-8")
    dom, console = browse(chromium, page)
    assert console == []
    assert f"<strong>{run.result.verdict.kind}</strong>" in dom
    assert "<script" not in dom


def test_the_console_would_tell(chromium: str, tmp_path: Path) -> None:
    # given the same page with a script and a picture in it, expect the policy to block both and the console to say so
    page = tmp_path / "report.html"
    text = FORMATS["html"](runs.make("pass", tmp_path))
    page.write_text(text.replace("<main>", "<main><script>document.title = 'ran'</script><img src=x.png>"), "utf-8")
    dom, console = browse(chromium, page)
    assert "<title>ran" not in dom
    assert len(console) == 2


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False)])
def test_it_fits_its_reader(chromium: str, tmp_path: Path, width: int, dark: bool) -> None:
    page = tmp_path / "frame.html"
    report = html.escape(FORMATS["html"](runs.make("fail", tmp_path)), quote=True)
    page.write_text(
        f'{PROBE}<iframe width="{width}" height="844" style="border:0" srcdoc="{report}"></iframe>', "utf-8"
    )
    dom, _ = browse(
        chromium, page, f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--window-size=1400,900"
    )
    data = re.search(r'data-found="([^"]*)"', dom)
    assert data, "the probe did not run"
    found = json.loads(html.unescape(data.group(1)))
    assert found["verdict"] == "FAIL"
    assert found["wide"] <= width  # nothing to scroll sideways
    assert found["below"] < 844  # the verdict is on the first screen
    assert (found["narrow"] > 0, found["broad"] > 0) == (width < 640, width >= 640)
    assert found["small"] >= 9.0
    light = [int(part) for part in re.findall(r"\d+", found["ink"])]
    assert (min(light) > 200) is dark


def test_it_can_be_printed(chromium: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(FORMATS["html"](runs.make("pass", tmp_path)), "utf-8")
    browse(chromium, page, f"--print-to-pdf={tmp_path / 'report.pdf'}")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
