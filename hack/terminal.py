"""Pictures of a terminal, as SVG without external fonts."""

import textwrap
from collections.abc import Sequence
from html import escape

COLUMN, LINE, PAD = 8.4, 20, 18
MOST_COLUMNS = 118
PROMPT, INK = "#8b949e", "#e6edf3"
COLOURS = {"$": PROMPT, "PASS": "#7ee787", "FAIL": "#ff7b72", "INVALID": "#e3b341"}


def picture(command: str, output: Sequence[str]) -> str:
    """Draw the command and its output; lines that are too long go on in the next one."""
    lines = [(f"$ {command}", PROMPT)]
    for line in output:
        colour = COLOURS.get(line.split(" ")[0], INK)
        parts = textwrap.wrap(
            line,
            MOST_COLUMNS,
            subsequent_indent="  ",
            drop_whitespace=len(line) > MOST_COLUMNS,
            replace_whitespace=False,
        )
        lines += [(part, colour) for part in parts or [""]]
    width = round(max(len(text) for text, _ in lines) * COLUMN + 2 * PAD)
    height = len(lines) * LINE + 2 * PAD
    # browsers join spaces unless each text says otherwise; the root's word does not reach it
    texts = "\n".join(
        f'<text x="{PAD}" y="{PAD + LINE * number - 6}" fill="{colour}" style="white-space:pre">'
        f"{escape(text)}</text>"
        for number, (text, colour) in enumerate(lines, 1)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="monospace" font-size="14">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>\n{texts}\n</svg>\n'
    )
