"""One version, in every place that names it."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from scaletest import __version__

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("chart", ["charts/scaletest", "charts/scaletest/charts/redis"])
def test_the_charts_have_the_version_of_the_package(chart: str) -> None:
    described = yaml.safe_load((ROOT / chart / "Chart.yaml").read_text("utf-8"))
    assert described["version"] == __version__
    if described["name"] == "scaletest":
        assert described["appVersion"] == __version__
        assert [entry["version"] for entry in described["dependencies"]] == [__version__]


def test_the_newest_heading_of_the_changes_is_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == __version__


def test_the_citation_names_this_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == __version__


def test_documents_name_images_of_this_version() -> None:
    pages = [ROOT / "dockerfiles/Dockerfile", *(ROOT / "docs").rglob("*.md")]
    named = {
        (page.name, tag)
        for page in pages
        for tag in re.findall(r"\bscaletest(?:-[a-z-]+)?:(\d+\.\d+[\w.]*)", page.read_text("utf-8"))
    }
    assert named
    assert {tag for _, tag in named} == {__version__}, named


def test_one_place_names_the_owner() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    owner, name = project["urls"]["Repository"].removeprefix("https://github.com/").split("/")
    assert project["urls"]["Documentation"] == f"https://{owner}.github.io/{name}"
    assert project["urls"]["Changelog"].startswith(f"{project['urls']['Repository']}/")
