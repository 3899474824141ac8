"""Times as texts."""

from datetime import UTC, datetime


def parse_time(text: object) -> float | None:
    """Return epoch seconds of a time as Kubernetes writes it; None for anything else."""
    if not isinstance(text, str) or not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    # a time without an offset is in UTC, and not in the zone of this machine
    return time.replace(tzinfo=time.tzinfo or UTC).timestamp()


def format_time(time_s: float | None) -> str | None:
    """Return a time in UTC with microseconds and offset; None for none."""
    if time_s is None:
        return None
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="microseconds")
