"""Foreign text made harmless: for HTML, for Markdown, for a spreadsheet. Worker names, errors and commands are foreign.

Markup is markupsafe's: text that is already HTML. Everything else is escaped when it meets markup.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from scaletest.model.checks import printable

__all__ = ["Markup", "cell", "clean", "code", "element", "join"]


def clean(text: object, limit: int | None = None) -> str:
    """Printable text: control characters, directions and lone surrogates as escapes; cut in the middle at `limit`."""
    raw = str(text)
    if limit is not None and len(raw) > limit:
        raw = f"{raw[: limit // 2]} ... {raw[-(limit // 2) :]}"
    return printable(raw, keep="\n")


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. Attributes that are None are left out; view_box becomes view-box, class_ becomes class."""
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _plain(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, join(*children))


def join(*parts: object) -> Markup:
    """Parts in a row, those that are no markup escaped."""
    return Markup("").join(part if isinstance(part, Markup) else escape(clean(part)) for part in parts)


def code(text: object, limit: int = 200) -> str:
    """Foreign text as a code span of Markdown that also fits into a table's cell."""
    plain = clean(text, limit).replace("\n", " ").replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") or not plain else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def cell(text: object) -> str:
    """Foreign text for CSV; one that a spreadsheet would take for a formula gets an apostrophe in front."""
    plain = clean(text).replace("\n", " ")
    return f"'{plain}" if plain[:1] in ("=", "+", "-", "@") else plain


def _plain(attribute: object) -> str:
    """Coordinates in tenths of a pixel are fine enough, and keep the files small."""
    return f"{attribute:.1f}".removesuffix(".0") if isinstance(attribute, float) else clean(attribute)
