"""The site of the documentation: which pages it has, and where their links lead."""

import re
from pathlib import Path

from hack import site

ROOT = Path(__file__).parents[3]


def test_every_page_has_one_place_in_the_navigation() -> None:
    listed = [f"{page}.md" for pages in site.NAVIGATION.values() for page in pages]
    assert len(listed) == len(set(listed))
    pages = {place for place in site.files_of_site().values() if place.endswith(".md")}
    assert {*listed, "index.md"} == pages


def test_links_lead_within_the_site_or_to_the_repository(tmp_path: Path) -> None:
    site.copy_pages(tmp_path, "https://example.org/repository")
    index = (tmp_path / "index.md").read_text("utf-8")
    assert "](pictures/terminal.svg)" in index
    assert "](how-to/validate.md)" in index
    production = (tmp_path / "how-to/production.md").read_text("utf-8")
    assert "](../charts/scaletest/README.md#memory)" in production
    original = (tmp_path / "how-to/autoscale.md").read_text("utf-8")
    rules = "charts/scaletest/prometheus-adapter.yaml"
    assert f"](https://example.org/repository/blob/main/{rules})" in original
    for page in tmp_path.rglob("*.md"):
        for target in re.findall(r"\]\((?!\w+:)([^)#\s]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
