"""Pictures of a terminal in a real browser: columns stand under their headings."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hack import terminal
from hack.browser import Browser

DRAWN = Path(__file__).parents[2] / "docs" / "pictures" / "terminal.svg"
TABLE = [
    "N     requests/s          ratio  speed-up",
    "1  1.988 ± 0.003                     1.00",
    "2  3.980 ± 0.007  2.002 ± 0.004      2.00",
]
# x of the end of each text's last character, and its number of characters
ENDS = """
return [...document.querySelectorAll('text')].map(text => {
  const characters = text.getNumberOfChars();
  return [characters, text.getEndPositionOfChar(characters - 1).x];
});
"""


@pytest.mark.parametrize("text", [terminal.picture("validate", TABLE), DRAWN.read_text("utf-8")])
def test_every_character_of_a_line_has_its_column(
    browse: Callable[..., Browser], tmp_path: Path, text: str
) -> None:
    page = tmp_path / "terminal.svg"
    page.write_text(text, "utf-8")
    browser = browse()
    browser.get(page.as_uri())
    ends = browser.execute_script(ENDS)
    # a browser that joins spaces sees fewer characters than the file has
    lines = [
        line.rstrip()
        for line in browser.execute_script(
            "return [...document.querySelectorAll('text')].map(text => text.textContent)"
        )
    ]
    assert [characters for characters, _ in ends] == [len(line) for line in lines]
    widths = {round((x - terminal.PAD) / characters, 1) for characters, x in ends}
    assert len(widths) == 1
    # and all of them are in the picture
    assert max(x for _, x in ends) < browser.execute_script(
        "return document.documentElement.width.baseVal.value"
    )
