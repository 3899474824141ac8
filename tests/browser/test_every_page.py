"""Every page: on desktop and phone, light and dark, by keyboard alone, and without a script."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hack.browser import Browser, resize
from tests.browser import every_page
from tests.browser.axe import assert_accessible
from tests.browser.every_page import PAGES
from tests.browser.test_ui import complaints

Open = Callable[..., Browser]
# The width places, the scheme colours: each of them is looked at once.
LOOKS = [(1280, False), (390, True)]
EACH = pytest.mark.parametrize(("place", "path"), PAGES, ids="".join)
WITH_SCRIPT = [(place, path) for place, path in PAGES if place != "written"]
# Text of charts that is too small to be read, or outside of its chart.
UNREADABLE = """
return [...document.querySelectorAll('svg text')].filter(text => {
  const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
  const scale = text.getScreenCTM(), size = parseFloat(getComputedStyle(text).fontSize);
  return box.width && (size * Math.hypot(scale.a, scale.b) < 9
    || box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1);
}).map(text => text.textContent);
"""
CONTROLS = "a[href], button, input:not([type=hidden]), select, textarea, summary"
UNFOLD = "document.querySelectorAll('details').forEach(fold => { fold.open = true; });"
# Names of elements that can be seen.
VISIBLE_NAMES = """
const named = e => (e.getAttribute('aria-label') || e.labels?.[0]?.textContent || e.textContent);
return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).map(
  e => `${e.nodeName} ${named(e)}`.trim());
"""
# The element that has the focus, by its number among those that can have it.
FOCUSED = """
const all = [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility());
const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
const isOutlined = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
const isInSight = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
return [all.indexOf(e), isOutlined && isInSight, e.outerHTML.slice(0, 200)];
"""
TAB = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with ExitStack() as stack:
        yield every_page.addresses(stack, tmp_path_factory.mktemp("pages"))


@EACH
def test_a_page_fits_and_can_be_read_on_every_screen(
    addresses: dict[str, str], browse: Open, place: str, path: str
) -> None:
    browser = browse()
    browser.get(addresses[place] + path)
    for width, dark in LOOKS:
        resize(browser, width, 900, dark=dark)
        browser.execute_script(UNFOLD)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(UNREADABLE) == []
        assert_accessible(browser)
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, re.findall(r"\d+", ground))) < 60) is dark
    # the status of a page is no complaint of it
    assert [line for line in complaints(browser) if "with a status of" not in line] == []
    assert hosts_asked(browser) <= {urlsplit(addresses[place]).netloc}


def hosts_asked(browser: Browser) -> set[str]:
    """Hosts that the browser asked over the network."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [row["params"] for row in messages if row["method"] == "Network.requestWillBeSent"]
    urls = [urlsplit(row["request"]["url"]) for row in asked]
    return {url.netloc for url in urls if url.scheme.startswith("http")}


@EACH
def test_the_tabulator_reaches_every_control_and_shows_where_it_is(
    addresses: dict[str, str], browse: Open, place: str, path: str
) -> None:
    browser = browse()
    browser.get(addresses[place] + path)
    browser.execute_script(UNFOLD)
    number = len(browser.execute_script(VISIBLE_NAMES, CONTROLS))
    reached = set()
    # scrolled tables and charts have the focus in between
    for _ in range(2 * number + 20):
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", **TAB})
        place_of_focus, is_visible, element = browser.execute_script(FOCUSED, CONTROLS)
        if element.startswith("<body"):
            break
        assert is_visible, element
        reached.add(place_of_focus)
    assert reached - {-1} == set(range(number))


@pytest.mark.parametrize(("place", "path"), WITH_SCRIPT, ids="".join)
def test_a_page_has_the_same_parts_without_a_script(
    addresses: dict[str, str], browse: Open, place: str, path: str
) -> None:
    parts = []
    for script in (True, False):
        browser = browse(390, script=script)
        browser.get(addresses[place] + path)
        browser.execute_script(UNFOLD)
        parts.append(browser.execute_script(VISIBLE_NAMES, f"h1, h2, h3, {CONTROLS}"))
    assert parts[0] and parts[0] == parts[1]


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
