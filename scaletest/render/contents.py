"""A report as plain data: its head, and the parts that formats show, each in its own way."""

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from scaletest.model import Verdict, VerdictKind
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.model.wording import as_options
from scaletest.render.blocks import Block, Pairs, lay_out
from scaletest.render.chart import Chart
from scaletest.render.numbers import plural

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
        cells = [[column(row) for column in columns.values()] for row in rows]
        return cls(list(columns), cells, **options)


def column_at(path: str) -> Callable[[Any], Value]:
    """Return a column that reads attributes or keys in turn, as in step.ratio.low.

    None where one of them is None or missing in a mapping, and for what is not finite.
    """
    names = path.split(".")

    def read_cell(row: Any) -> Value:
        value = row
        for name in names:
            if value is None:
                return None
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
        is_unknown = isinstance(value, float) and not math.isfinite(value)
        return None if is_unknown else value

    return read_cell


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a page."""

    title: str
    blocks: Sequence[Block]
    leads: bool = False  # whether it stands at once below the verdict, in a box
    is_folded: bool = False  # whether a page shows its title alone until it is asked for the rest


def make_page(
    parts: Mapping[str, Iterable[Block | None]],
    leading: str = "",
    folded: Mapping[str, Iterable[Block | None]] = MappingProxyType({}),
) -> list[Section]:
    """Make the sections that have anything to show.

    parts: blocks by title. leading: the title of the one that stands first; "" for none.
    folded: parts that follow, and that most readers do not need.
    """
    sections = []
    for title, blocks in {**parts, **folded}.items():
        if content := list(lay_out(blocks)):
            sections.append(Section(title, content, title == leading, title in folded))
    return sorted(sections, key=lambda section: not section.leads)


class Case(NamedTuple):
    """A test case of JUnit."""

    name: str
    kind: VerdictKind
    message: str  # shown where it is not passed
    seconds: float = 0.0
    group: str = ""  # what it belongs to; "" for the run
    problem: str = ""  # what kind of problem it is; "" for the kind
    output: str = ""  # what else is known of it, shown whether it passed or not


class ThresholdLine(Protocol):
    """A threshold in a report: whether it holds, its text, and what was measured."""

    @property
    def kind(self) -> VerdictKind:
        """PASS, FAIL, or INVALID where it is undecided."""

    @property
    def text(self) -> str:
        """The threshold."""

    @property
    def reason(self) -> str:
        """What was measured, in its unit."""


@dataclass(frozen=True)
class Head:
    """What every report begins and ends with."""

    title: str  # what was run
    verdict: Verdict
    folder: str
    name: str = ""  # by which commands find the run
    labels: Labels = UNLABELLED  # what people call it
    conditions: Sequence[str] = ()  # what was asked of it, in a few words each
    elapsed_s: float = 0.0
    statement: str = ""  # the answer in one sentence without an end
    gains: Sequence[str] = ()  # what would be gained without what it names, and what that costs
    facts: Pairs = ()  # the few numbers beside the verdict, as (name, value)
    warnings: Sequence[str] = ()
    thresholds: Sequence[ThresholdLine] = ()
    following: str = ""  # the command to try next
    environment: Mapping[str, Any] = field(default_factory=dict)  # where and how it was made
    plan: Mapping[str, Any] = field(default_factory=dict)
    alarming: Collection[str] = ()  # the names of facts that are bad news
    # the words before the reason where nothing is judged, instead of the verdict's kind
    answer: str = ""

    @property
    def word(self) -> str:
        """The words before the reason of the verdict."""
        return self.answer or str(self.verdict.kind)

    @property
    def sentence(self) -> str:
        """The statement as a whole sentence; "" without one."""
        return f"{self.statement[:1].upper()}{self.statement[1:]}." if self.statement else ""

    @property
    def reason(self) -> str:
        """The reason of the verdict, with settings named as options."""
        return as_options(self.verdict.reason)

    @property
    def remedy(self) -> str:
        """The remedy of the verdict, with settings named as options."""
        return as_options(self.verdict.remedy)

    @property
    def began(self) -> str:
        """When it was run; "" when that is not on record."""
        return str(self.environment.get("began", ""))

    @property
    def machine(self) -> str:
        """Where it was run, in a few words; "" when that is not on record."""
        known = self.environment
        parts = [str(known[key]) for key in ("host", "processor") if known.get(key)]
        if known.get("cores"):
            parts.append(f"{known['cores']} cores")
        devices = known.get("devices")
        if isinstance(devices, list) and devices:
            parts.append(plural(len(devices), "device"))
        return ", ".join(parts)

    @property
    def command_line(self) -> str:
        """What was typed to make it, quoted for a shell; "" when that is not on record."""
        typed = self.environment.get("command_line")
        if not isinstance(typed, list) or not typed:
            return ""
        program, *arguments = map(str, typed)
        return shlex.join([Path(program).name, *arguments])


@dataclass(frozen=True)
class Report:
    """A run as all formats show it; a format calls only for the parts that it shows."""

    head: Head
    summary: Callable[[], Sequence[Block | None]]  # between heading and verdict on a terminal
    comment: Callable[[], Sequence[Block | None]]  # below the verdict in a comment of CI
    sections: Callable[[], Sequence[Section]]  # of a page
    sheet: Callable[[], Sheet]  # a row for each step, or for whatever the run has many of
    cases: Callable[[], Sequence[Case]]  # its parts, beside its verdict and its thresholds
    data: Callable[[], Mapping[str, Any]]  # all of it for programs, as plain values for JSON
    # the main charts, for a file of their own; None for those of the first section that has any
    picture: Callable[[], Sequence[Chart]] | None = None
