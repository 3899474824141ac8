"""Pictures for the guides: a terminal as SVG, and what the guides show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from hack import pictures, terminal

ROOT = Path(__file__).parents[2]


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter() if element.text]


def test_a_terminal_shows_the_command_and_escapes_its_output() -> None:
    svg = terminal.picture("validate", ["N  ratio", "<&> 1", "", "PASS  all"])
    assert [text for text in texts(svg) if text.strip()] == [
        "$ validate",
        "N  ratio",
        "<&> 1",
        "PASS  all",
    ]
    assert terminal.COLOURS["PASS"] in svg


def test_a_long_line_goes_on_in_the_next_one_in_its_colour() -> None:
    line = "FAIL  " + "word " * 40
    shown = [text for text in texts(terminal.picture("validate", [line])) if "word" in text]
    assert len(shown) == 2
    assert all(len(text) <= terminal.MOST_COLUMNS for text in shown)
    assert shown[1].startswith("  word")
    assert terminal.picture("validate", [line]).count(terminal.COLOURS["FAIL"]) == 2


def test_every_picture_is_made_by_the_script_small_and_shown_somewhere() -> None:
    drawn = {name for names in pictures.DRAWN.values() for name in names}
    stored = {path.stem for path in pictures.FOLDER.iterdir()}
    assert stored == drawn
    assert set(pictures.HEIGHTS) == drawn - {"terminal"}
    assert max(path.stat().st_size for path in pictures.FOLDER.iterdir()) <= pictures.MOST_BYTES
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"pictures/(\w+)\.(?:svg|webp)", page.read_text("utf-8"))
    }
    assert shown == drawn
