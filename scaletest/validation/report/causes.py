"""What a report says of the causes that keep throughput from growing."""

from scaletest.causes.causes import NO_CAUSE_HEADLINES, ONLY_ONE_STEP, Cause, Causes
from scaletest.render.blocks import Cell, Share, Table
from scaletest.render.numbers import format_percent, format_seconds
from scaletest.validation.report.words import share_text

# Of more causes a page and a comment show the largest.
MOST_CAUSES = 6
CONFIRMED = {True: "confirmed", False: "contradicted", None: ""}


def doubling_text(causes: Causes) -> str:
    """Return between which steps it is that something grew."""
    return f"{causes.before} to {causes.after} workers"


def causes_note(causes: Causes) -> str:
    """Return what a reader must know of the causes: why there are none, and what they lack."""
    lines = []
    if causes.headline == ONLY_ONE_STEP:
        lines.append("One step does not tell what grows with the workers.")
    elif causes.headline in NO_CAUSE_HEADLINES:
        lines.append(f"From {doubling_text(causes)} {causes.headline}.")
    elif causes.headline:
        lines.append(f"The cause is {causes.headline}.")
    if causes.slow:
        slow = causes.slow.sentence
        lines.append(f"{slow[0].upper()}{slow[1:]}; {causes.slow.remedy}.")
    if causes.sampled_share < 1.0:
        lines.append(
            f"Based on {causes.sampled_share:.0%} of requests (the rest were not sampled)."
        )
    return " ".join(lines)


def evidence_text(cause: Cause, most: int | None = None) -> str:
    """Return what the nodes' resources did, and whether that confirms the cause.

    As in "confirmed: 2.0 of 2 cores are busy"; "" without any.
    """
    measured_parts = "; ".join(cause.evidence[:most])
    confirmed = CONFIRMED[cause.confirmed]
    return f"{confirmed}: {measured_parts}" if confirmed and measured_parts else measured_parts


def causes_table(causes: Causes, *, on_page: bool, title: str = "", note: str = "") -> Table:
    """Return a row for each cause, the largest first, and one for what was not observed.

    A page has room for what was before.
    """
    rows: list[dict[str, Cell]] = []
    for cause in causes.causes[:MOST_CAUSES]:
        before_and_after = ""
        if on_page:
            before_and_after = (
                f"{format_seconds(cause.before_s)} -> {format_seconds(cause.after_s)}"
            )
        rows.append(
            {
                "cause": cause.label,
                "share of the added time": Share(cause.share.value, share_text(cause.share, 0)),
                "added": format_seconds(cause.grown_s.value),
                "per request": before_and_after,
                "object": cause.object,
                "measured": evidence_text(cause),
                "what to try": cause.remedy,
            }
        )
    if causes.not_observed:
        unseen = 1.0 - causes.observed
        row: dict[str, Cell] = dict.fromkeys(rows[0] if rows else (), "")
        row["cause"] = "not observed"
        row["share of the added time"] = Share(unseen, format_percent(unseen, 0))
        row["added"] = format_seconds(unseen * causes.grown_s.value)
        rows.append(row)
    texts = {"cause", "object", "measured", "what to try"}
    return Table.of_rows(rows, texts, {"object"}, layout="causes", title=title, note=note)
