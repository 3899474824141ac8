"""Draws docs/demo.svg from a demo's output on standard input, without external fonts."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

COLUMN, LINE, PAD = 8.4, 20, 18
COLOURS = {"PASS": "#7ee787", "FAIL": "#ff7b72", "INVALID": "#e3b341"}


def main() -> None:
    lines = [
        line.rstrip() for line in sys.stdin.read().splitlines() if not line.startswith("saved in")
    ]
    width = int(max(map(len, lines)) * COLUMN + 2 * PAD)
    height = (len(lines) + 1) * LINE + 2 * PAD
    texts = [f'<text x="{PAD}" y="{PAD + LINE}" fill="#8b949e">$ ./hack/demo</text>']
    for number, line in enumerate(lines, 2):
        colour = COLOURS.get(line.split(" ")[0], "#e6edf3")
        texts.append(
            f'<text x="{PAD}" y="{PAD + LINE * number}" fill="{colour}">{escape(line)}</text>'
        )
    Path("docs/demo.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0'
        f' {width} {height}" font-family="monospace" font-size="14" xml:space="preserve"><rect'
        f' width="{width}" height="{height}" rx="8" fill="#0d1117"/>' + "".join(texts) + "</svg>\n",
        "utf-8",
    )


if __name__ == "__main__":
    main()
