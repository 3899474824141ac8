"""The guides' complete files are those of the example package, which the tests run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = DOCS / "examples" / "scaletest_example"


def blocks(guide: str, language: str) -> list[str]:
    """The blocks of code in that language."""
    text = (DOCS / "how-to" / guide).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("guide", "file"),
    [("write-a-workload.md", "checksums.py"), ("add-a-benchmark-kind.md", "compression.py")],
)
def test_the_complete_file_of_a_guide_is_the_example(guide: str, file: str) -> None:
    title, _, code = blocks(guide, "python")[0].partition("\n")
    assert title.endswith(file)
    assert code == (PACKAGE / file).read_text("utf-8")


@pytest.mark.parametrize("guide", ["write-a-workload.md", "add-a-benchmark-kind.md"])
def test_the_entry_points_of_a_guide_are_those_of_the_example(guide: str) -> None:
    project = tomllib.loads((DOCS / "examples" / "pyproject.toml").read_text("utf-8"))["project"]
    shown = tomllib.loads(blocks(guide, "toml")[0])["project"]["entry-points"]
    assert shown.items() <= project["entry-points"].items()
