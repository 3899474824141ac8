"""Times as texts."""

from datetime import UTC, datetime


def epoch(text: object) -> float | None:
    """Return epoch seconds of a time as Kubernetes writes it; None for anything else."""
    if not isinstance(text, str) or not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def iso(time_s: float | None) -> str | None:
    """Return a time in UTC with microseconds and offset; None for none."""
    return (
        None
        if time_s is None
        else datetime.fromtimestamp(time_s, UTC).isoformat(timespec="microseconds")
    )
