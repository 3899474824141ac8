"""Numbers, times and foreign texts on pages. Pure; a dash means unknown."""

from __future__ import annotations

from datetime import UTC, datetime

from scaletest.model.checks import cut

LONGEST_TEXT = 500
UNKNOWN = "–"  # noqa: RUF001
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def seconds(duration_s: float | None) -> str:
    """A duration with three significant digits and a suitable unit."""
    if duration_s is None:
        return UNKNOWN
    if duration_s >= 120:
        return clock(duration_s)
    for factor, unit in UNITS:
        if duration_s >= factor * 0.9995:
            return f"{_three(duration_s / factor)} {unit}"
    return "0 s" if duration_s < 5e-10 else f"{duration_s * 1e6:.2g} µs"


def printable(text: str) -> str:
    """A foreign text in one line; invisible and direction-changing characters are escaped."""
    if text.isprintable() and len(text) <= LONGEST_TEXT:
        return text
    return cut(" ".join(text.splitlines()), LONGEST_TEXT)


def rate(per_s: float | None) -> str:
    """A number with three significant digits, without decimals from a hundred on."""
    return UNKNOWN if per_s is None else _three(per_s)


def count(number: int) -> str:
    """A whole number with separated thousands."""
    return f"{number:,}".replace(",", "\u202f")


def share(part: int, whole: int) -> str:
    """A share in percent; never 0 % or 100 % unless it is."""
    if not whole:
        return UNKNOWN
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.9 < percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %"


def clock(duration_s: float) -> str:
    """A long duration as 1:02:03, with days where there are some."""
    whole = int(duration_s)
    days, rest = divmod(whole, 86400)
    text = f"{rest // 3600}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days} d {text}" if days else text


def moment(epoch_s: float) -> str:
    """A point in time, in UTC, which the caller must mention. Unknown for an impossible year."""
    return _utc(epoch_s, "%Y-%m-%d %H:%M:%S") or UNKNOWN


def moment_iso(epoch_s: float) -> str:
    """A point in time as ISO 8601 in UTC, for programs; empty where unknown."""
    return _utc(epoch_s, "%Y-%m-%dT%H:%M:%SZ")


def _utc(epoch_s: float, form: str) -> str:
    try:
        return datetime.fromtimestamp(epoch_s, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return ""


def _three(number: float) -> str:
    if number >= 99.95:
        return count(round(number))
    text = f"{number:.3g}"
    return text if "e" not in text else f"{number:.2g}"
