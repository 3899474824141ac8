"""A table for programs: base units, and None where nothing is known."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

Value = float | int | str | None
Row = TypeVar("Row")
# Digits of durations and rates in a sheet; no clock gives more.
CLOCK_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Sheet:
    """Titles and rows."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Value]]
    line_end: str = "\r\n"  # of each row
    digits: int = 0  # significant ones of fractions; 0 for as many as there are

    @classmethod
    def of_columns(
        cls, columns: Mapping[str, Callable[[Row], Value]], rows: Sequence[Row], **options: Any
    ) -> Self:
        """Make a sheet whose columns are functions of what a row is about."""
        cells = [map(column, rows) for column in columns.values()]
        return cls(list(columns), list(zip(*cells, strict=True)), **options)


def at(path: str) -> Callable[[Any], Value]:
    """Return a column that reads attributes or keys in turn, as in step.ratio.low.

    None where one of them is None or missing in a mapping, and for what is not finite.
    """
    names = path.split(".")

    def cell(row: Any) -> Value:
        value = row
        for name in names:
            if value is None:
                return None
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        is_unknown = isinstance(value, float) and not math.isfinite(value)
        return None if is_unknown else value

    return cell
