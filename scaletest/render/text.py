"""Escaping of foreign text for HTML, Markdown and spreadsheets.

Worker names, errors and commands are foreign text. Markup is markupsafe's: text that is already
HTML. All other text is escaped when it is joined with markup.
"""

import re
import textwrap
from pathlib import PurePosixPath

from markupsafe import Markup, escape

from scaletest.model.checks import escape_unprintable

# The blank between a number and its unit, where no line ends.
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[µm]?s|min|h|%|[kMG]?B)(?!\w))")

__all__ = [
    "Markup",
    "csv_cell",
    "clean_text",
    "code_span",
    "device_name",
    "html_element",
    "join_markup",
    "one_line",
    "wrap_line",
]


def clean_text(text: object, limit: int | None = None) -> str:
    """Return printable text: control characters as escapes; shortened in the middle to `limit`.

    The narrow space between thousands stays, as it does no harm.
    """
    raw = str(text)
    if limit is not None and len(raw) > limit:
        raw = f"{raw[: limit // 2]} ... {raw[-(limit // 2) :]}"
    return escape_unprintable(raw, keep="\n\u202f")


def one_line(text: object, limit: int | None = None) -> str:
    """Return printable text without line feeds; shortened as by `clean_text`."""
    return clean_text(text, limit).replace("\n", " ")


def wrap_line(line: str, width: int) -> str:
    """Wrap a line at words, the rest of it indented; a command stays whole, to be copied."""
    if len(line) <= width or line.lstrip().startswith("scaletest "):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    lines = textwrap.wrap(
        _BEFORE_UNIT.sub("\u00a0", line),
        width,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\u00a0", " ")


def device_name(path: str) -> str:
    """Return the last part of a device's path."""
    return PurePosixPath(path).name or path


def html_element(name: str, /, *children: object, **attributes: object) -> Markup:
    """Write an element; attributes that are None are left out, class_ becomes class."""
    # a chart has hundreds of them: formats of Markup take longer
    written = ""
    for key, value in attributes.items():
        if value is None:
            continue
        if isinstance(value, float):
            # coordinates are rounded to tenths of a pixel, to keep files small
            value = f"{value:.1f}".removesuffix(".0")
        written += f' {key.rstrip("_").replace("_", "-")}="{escape(clean_text(value))}"'
    return Markup(f"<{name}{written}>{join_markup(*children)}</{name}>")


def join_markup(*parts: object) -> Markup:
    """Join all parts in order, escaped unless they are markup."""
    return Markup(
        "".join(part if isinstance(part, Markup) else escape(clean_text(part)) for part in parts)
    )


def code_span(text: object, limit: int = 200) -> str:
    """Write foreign text as a code span of Markdown that also fits into a table's cell."""
    plain = one_line(text, limit).replace("|", "\\|")
    # a fence is longer than any row of backquotes in the text
    fence = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if not plain or plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{space}{plain}{space}{fence}"


def csv_cell(text: object) -> str:
    """Write foreign text for CSV; text that looks like a formula begins with an apostrophe."""
    plain = one_line(text)
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain
