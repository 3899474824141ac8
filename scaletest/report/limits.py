"""What limits a run: its causes as rows and sentences, the same in all reports."""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.analysis.causes import ALONE, NO_CAUSE, Cause, Causes
from scaletest.render.numbers import percent_between, seconds

# In a page and in a comment; a terminal shows fewer.
MOST_CAUSES = 6
CONFIRMED = {True: "confirmed", False: "contradicted", None: ""}


@dataclass(frozen=True, slots=True)
class CauseRow:
    """One cause in words. added: seconds that it added to a request; course: seconds a request
    before and after.

    measured: what the resources of the nodes did; confirmed: whether they agree, in a word, ""
    where that is open.
    """

    label: str
    share: str
    added: str
    course: str
    object: str
    remedy: str
    measured: tuple[str, ...]
    confirmed: str

    @property
    def evidence(self) -> str:
        """Both in a few words: confirmed: 2.0 of 2 cores are busy."""
        evidence = "; ".join(self.measured)
        return f"{self.confirmed}: {evidence}" if self.confirmed and evidence else evidence


def rows(causes: Causes | None) -> list[CauseRow]:
    """The causes, the largest first; none where none is named."""
    return [_row(cause) for cause in causes.causes[:MOST_CAUSES]] if causes else []


def doubling(causes: Causes) -> str:
    """Between which steps it is that something grew."""
    return f"{causes.before} to {causes.after} workers"


def grew(causes: Causes | None) -> bool:
    """Whether there is anything to say of what limits the run."""
    return causes is not None and causes.headline not in NO_CAUSE


def note(causes: Causes) -> str:
    """What a reader must know of the rows: why there are none, and what they do not hold."""
    lines = []
    if causes.headline == ALONE:
        lines.append("One step does not tell what grows with the workers.")
    elif not grew(causes):
        lines.append(f"From {causes.before} to {causes.after} workers {causes.headline}.")
    if causes.headline and grew(causes):
        lines.append(f"The cause is {causes.headline}.")
    if causes.slow:
        slow = causes.slow.sentence
        lines.append(f"{slow[0].upper()}{slow[1:]}; {causes.slow.remedy}.")
    if causes.covered < 1.0:
        lines.append(
            f"{causes.covered:.0%} of the requests say where their time went; the others are left"
            " out."
        )
    return " ".join(lines)


def _row(cause: Cause) -> CauseRow:
    return CauseRow(
        label=cause.label,
        share=percent_between(cause.share.value, cause.share.low, cause.share.high, 0),
        added=seconds(cause.grown_s.value),
        course=f"{seconds(cause.before_s)} -> {seconds(cause.after_s)}",
        object=cause.object,
        remedy=cause.remedy,
        measured=cause.evidence,
        confirmed=CONFIRMED[cause.confirmed],
    )
