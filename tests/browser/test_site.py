"""The site of the documentation, opened as files: what people look for is found by search."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from hack.browser import Browser
from tests.browser.axe import assert_accessible
from tests.browser.conftest import eventually
from tests.browser.test_ui import complaints
from tests.conftest import missing

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
Open = Callable[..., Browser]
# What a newcomer asks, and the page that answers.
TASKS = {
    "which rule should my autoscaler have": "autoscale",
    "share a GPU between workers": "share-a-gpu",
    "compare two driver versions": "compare",
    "fail my pipeline on a regression": "pipelines",
    "understand INVALID": "troubleshooting",
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the site, which was built without a warning."""
    if not (CACHE / "scaletest" / "docs" / "stamp").exists():
        missing("the tools of the site: ./hack/site installs them")
    folder = tmp_path_factory.mktemp("site") / "html"
    done = subprocess.run(
        [ROOT / "hack/site", folder], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder.as_uri()


@pytest.mark.parametrize(("asked", "page"), TASKS.items(), ids=TASKS.values())
def test_search_finds_the_page_of_a_task_first_or_second(
    asked: str, page: str, pages: str, browse: Open
) -> None:
    browser = browse()
    browser.get(f"{pages}/index.html")
    field = browser.find_element(By.CSS_SELECTOR, ".sidebar-search")
    field.send_keys(asked)
    field.submit()
    found = eventually(lambda: browser.find_elements(By.CSS_SELECTOR, "#search-results li a"))
    assert f"{pages}/how-to/{page}.html" in [
        str(link.get_attribute("href")).partition("#")[0] for link in found[:2]
    ]
    assert complaints(browser) == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
@pytest.mark.parametrize("page", ["index", "how-to/validate", "reference/http"])
def test_a_page_fits_asks_nobody_else_and_is_accessible(
    page: str, width: int, dark: bool, pages: str, browse: Open
) -> None:
    browser = browse(width, 900, dark=dark)
    browser.get(f"{pages}/{page}.html")
    asked = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    assert complaints(browser) == []
    assert browser.execute_script(
        "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
    assert_accessible(browser)
