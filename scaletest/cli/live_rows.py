"""Rows at the foot of a terminal, drawn anew a few times a second while lines scroll above them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from scaletest.render.text import clean_text, one_line, wrap_line


class LiveRows:
    """Rows at the foot of standard error, until it is closed.

    They are shortened to the width of the terminal, which obeys no foreign text in them.
    """

    def __init__(
        self,
        rows: Callable[[int], Sequence[str]],
        console: Console | None = None,
        *,
        per_s: int = 4,
    ) -> None:
        """Make the rows; they are drawn `per_s` times a second while the context is open.

        rows: called with a width in characters, from another thread; returns the rows.
        """
        self._rows = rows
        self._console = console or Console(stderr=True, highlight=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=per_s,
            transient=True,
        )

    def add_line(self, line: str) -> None:
        """Print a line above the rows, where it stays and scrolls."""
        # a terminal that is gone must not end the run that is measured
        with suppress(OSError):
            text = wrap_line(clean_text(line), self._console.width)
            self._console.print(Text(text), soft_wrap=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take the rows away, and show the cursor."""
        with suppress(OSError):
            self._live.stop()

    def _draw(self) -> Group:
        texts = []
        for row in self._rows(self._console.width - 1):
            # rich would fail at a letter that the terminal cannot show
            encoding = self._console.encoding
            text = one_line(row).encode(encoding, "replace").decode(encoding)
            texts.append(Text(text, no_wrap=True, overflow="ellipsis"))
        return Group(*texts)
