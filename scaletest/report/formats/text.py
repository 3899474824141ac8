"""A run as plain text, and on a terminal: heading, summary, verdict, where it is, what to try next.

The most important stands last, where a terminal leaves the eye. A table that is too wide leaves out
its spare columns, and else is broken into several below each other. Texts that are optional are
cut, and charts left out, where the whole would be longer than a screen.
"""

import io
import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text as Styled

from scaletest.model import VerdictKind
from scaletest.render.blocks import Block, Table, Text, lay_out
from scaletest.render.contents import Head, Report
from scaletest.render.numbers import format_duration
from scaletest.render.text import clean_text, one_line, wrap_line
from scaletest.render.text_table import align_table

COLOURS = {
    VerdictKind.PASS: "green",
    VerdictKind.FAIL: "red",
    VerdictKind.INVALID: "yellow",
    VerdictKind.RUNNING: "cyan",
}
STYLES = {"soft": "dim", "warning": "yellow"}
SIGNS = {
    VerdictKind.PASS: "✓",
    VerdictKind.FAIL: "✗",
    VerdictKind.INVALID: "?",
    VerdictKind.RUNNING: "…",
}
WIDTH = 160
# Of the title in a heading that would be wider.
LONGEST_TITLE = 64
MOST_LINES = 24


def render(report: Report) -> str:
    """Write the text for files."""
    out = io.StringIO()
    print_report(report, Console(file=out, width=WIDTH, color_system=None))
    return out.getvalue()


def print_to_terminal(report: Report) -> None:
    """Print the summary on standard output, in the width of the terminal if it is one."""
    console = Console(highlight=False)
    print_report(report, console if console.is_terminal else Console(highlight=False, width=WIDTH))


def print_report(report: Report, console: Console) -> None:
    """Print the summary of a report on a console."""
    head = report.head
    # thresholds that are not met come first, since of too many the last are left out
    ordered = sorted(head.thresholds, key=lambda line: line.kind is VerdictKind.PASS)
    thresholds = [f"threshold {SIGNS[line.kind]} {line.text}: {line.reason}" for line in ordered]
    blocks = list(lay_out([*report.summary(), Text(thresholds, most=8, rest="threshold")]))
    # where the run lies, and what to do next, as far as that is known
    foot = [f"saved in {head.folder}"] if head.folder else []
    if head.following:
        foot.append(f"next: {head.following}")
    # how many lines are left on a screen, or below 0 are too many
    reason, *cause = re.split(r"\. (?=Cause)", head.reason, maxsplit=1)
    used = 2 + len(cause) + len(head.gains) + bool(head.remedy) + len(foot)
    room = MOST_LINES - used - sum(len(_block_lines(block, console.width)) for block in blocks)
    _print_line(console, heading_line(head))
    for label in filter(None, [head.labels.called, head.labels.note]):
        _print_line(console, label)
    _print_blocks(console, blocks, room)
    # PASS, FAIL, INVALID or RUNNING, in words and in colour, with the reason; the cause follows
    style = f"bold {COLOURS[head.verdict.kind]}"
    _print_line(console, f"{head.word}  {reason}", style, len(head.word))
    for line in cause:
        _print_line(console, f"  c{line[1:]}")
    for line in head.gains:
        _print_line(console, f"  {line}")
    if head.remedy:
        _print_line(console, f"  what to do: {head.remedy}")
    for line in foot:
        _print_line(console, line)


def _print_blocks(console: Console, blocks: Sequence[Block], room: int) -> None:
    """Print the blocks of a summary.

    room: how many lines are left on a screen. Below 0 optional texts are cut, and charts of
    characters left out, since a part of one says little.
    """
    for block in blocks:
        lines = _block_lines(block, console.width)
        if isinstance(block, Text) and block.optional and room < 0:
            most = 0 if block.style == "chart" else max(0, len(lines) + room)
            room += len(lines) - most
            lines = lines[:most]
        style = STYLES.get(block.style, "") if isinstance(block, Text) else "bold"
        for line in lines:
            _print_line(console, line, style)
            if isinstance(block, Table):  # only its titles are bold
                style = ""


def heading_line(head: Head) -> str:
    """Return one line: what was run, where, what was asked of it, and how long it took."""
    elapsed = format_duration(head.elapsed_s) if head.elapsed_s else ""
    others = list(filter(None, (head.machine, *head.conditions, elapsed)))
    line = " · ".join([clean_text(head.title), *others])
    if len(line) > WIDTH:
        line = " · ".join([clean_text(head.title, LONGEST_TITLE), *others])
    return line


def _print_line(console: Console, line: str, style: str = "", styled: int | None = None) -> None:
    """Print a line, which a terminal wraps at words. styled: characters with the style, all."""
    shown = one_line(line)
    text = Styled(wrap_line(shown, console.width) if console.is_terminal else shown)
    text.stylize(style, 0, styled)
    console.print(text, soft_wrap=True)


def _block_lines(block: Block, width: int) -> list[str]:
    if isinstance(block, Table):
        return list(align_table(block, width))
    if isinstance(block, Text):
        is_too_wide = (
            block.style == "chart" and max(map(len, block.summary_lines), default=0) > width
        )
        return [] if is_too_wide else block.summary_lines
    return []
