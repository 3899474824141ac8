"""The manual page: it has every command and option, and nothing in it is read as a command of
roff.
"""

import re
import tomllib
from pathlib import Path

import pytest

from hack import manual

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "scaletest.1"
# What the page consists of, beside text.
REQUESTS = {
    ".SH",
    ".SS",
    ".TH",
    ".TP",
    ".PP",
    ".B",
    ".I",
    ".RS",
    ".RE",
    ".nf",
    ".fi",
    ".ad",
    ".nh",
    '.\\"',
}


def test_the_page_is_in_the_wheel_and_in_the_images() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    name = str(PAGE.relative_to(ROOT))
    assert wheel["targets"]["wheel"]["shared-data"] == {name: "share/man/man1/scaletest.1"}
    assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()


def test_all_lines_are_text_or_known_requests() -> None:
    for line in PAGE.read_text("ascii").splitlines():
        if line.startswith((".", "'")):
            assert line.split()[0] in REQUESTS, line
        # escapes of signs only
        assert not re.search(r"\\(?![-e&:]|\([a-z]{2}|\[u[0-9A-F]{4,}\]|\")", line), line


@pytest.mark.parametrize(
    ("text", "roff"),
    [
        (".TH x", "\\&.TH x"),
        ("'a'", "\\(aqa\\(aq"),
        ("a\\b", "a\\eb"),
        ("± 2 %", "\\[u00B1] 2 %"),
        ("--x", "\\-\\-x"),
        (" a", "\\& a"),
    ],
)
def test_text_stays_text(text: str, roff: str) -> None:
    assert manual.escape_roff(text) == roff


def test_lines_of_an_example_stay_apart() -> None:
    assert manual.paragraphs("One\ntwo.\n\n\b\n  a\n    b\n\nThree.") == [
        *("One two.", ".PP", ".RS 4", ".nf", "a", "\\&  b", ".fi", ".RE", ".PP", "Three.")
    ]
