"""`scaletest help`: the guides, by name and by words."""

import tomllib
from pathlib import Path

import pytest

from scaletest.cli.main import run

ROOT = Path(__file__).parents[3]


def test_a_guide_is_printed_as_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "share-a-gpu"]) == 0
    printed = capsys.readouterr().out.splitlines()
    page = (ROOT / "docs" / "how-to" / "share-a-gpu.md").read_text("utf-8").splitlines()
    told_to_tests = [line for line in page if line.startswith("<!-- ")]
    assert told_to_tests
    assert printed == [line for line in page if line not in told_to_tests]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("autoscaler", "# Autoscaling: which rule should my autoscaler have?"),
        ("INVALID", "# Troubleshooting: understand INVALID, FAIL and errors"),
        ("driver version", "# Compare two versions of a driver, firmware or code"),
        ("sentinel failover", ""),
    ],
)
def test_a_guide_is_found_by_words_of_its_title(
    words: str, title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["help", *words.split()]) == (0 if title else 2)
    printed = capsys.readouterr()
    assert printed.out.partition("\n")[0] == title
    assert title or "no guide about 'sentinel failover'" in printed.err


def test_without_words_all_guides_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    pages = [path.stem for path in (ROOT / "docs" / "how-to").glob("*.md")]
    assert {"tutorial", "statistics", "causes", *pages} <= set(listed)
    assert len(listed) == len(set(listed))


def test_a_wheel_carries_the_guides() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for path in (*(ROOT / "docs").glob("how-to/*.md"), ROOT / "docs/statistics.md"):
        place = str(path.relative_to(ROOT))
        assert any(place.startswith(source) for source in carried), place
