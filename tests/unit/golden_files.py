"""Files that hold what people see, so that a change of it shows."""

import os
import re
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
_STYLE_SHEET = re.compile("<style>[^<]+</style>")


def golden(name: str, text: str) -> None:
    """Compare a text with the file of this name; with REGENERATE=1, write the file.

    The style sheet of a page is left out, so that a colour changes no file.
    """
    if name.endswith(".html"):
        text, sheets = _STYLE_SHEET.subn("<style></style>", text)
        assert sheets == 1
    path = GOLDEN / name
    if os.environ.get("REGENERATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    assert text == path.read_bytes().decode()
