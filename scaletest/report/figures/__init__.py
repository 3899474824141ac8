"""The charts of a report: each file makes charts of one kind, and the sentence that stands under
them.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.render.svg import Chart


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart for wide pages and one for phones (the same when it is small anyway), and what it
    says.
    """

    wide: Chart
    narrow: Chart
    caption: str
