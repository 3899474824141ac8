"""Pictures for the guides: a terminal as SVG, and what the guides show."""

import re
from pathlib import Path

from hack import pictures

ROOT = Path(__file__).parents[3]


def test_every_picture_is_made_by_the_script_small_and_shown_somewhere() -> None:
    drawn = {name for names in pictures.DRAWN.values() for name in names}
    stored = {path.stem for path in pictures.FOLDER.iterdir()}
    # hack/docs draws the house from the imports, and two rules from the simulator
    assert stored == drawn | {"house", "autoscaling-complaint", "autoscaling-remedy"}
    assert set(pictures.HEIGHTS) == drawn - {"terminal"}
    assert max(path.stat().st_size for path in pictures.FOLDER.iterdir()) <= pictures.MOST_BYTES
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"pictures/([\w-]+)\.(?:svg|webp)", page.read_text("utf-8"))
    }
    assert shown == stored
