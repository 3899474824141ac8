"""Numbers for people: with a unit, and with no more digits than their interval supports.

Quantities have a prefix: 37.6 Gbit/s, 1.25 GB/s, 812 k/s. Prefixes are powers of 1000.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

NOTHING = "n/a"
# More digits say nothing to anyone, however narrow an interval is.
MOST_DIGITS = 4
# Down to nanoseconds, for latencies.
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_WHOLE_UNITS = ((3600, "h"), (60, "min"), (1, "s"))
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def format_seconds(duration_s: float | None) -> str:
    """Format a duration with three significant digits and a suitable unit."""
    if duration_s is None or not math.isfinite(duration_s):
        return NOTHING
    if duration_s <= 0:
        return "0"
    if duration_s < 0.0009995:
        return f"{duration_s * 1e6:.0f} µs"
    if duration_s < 0.9995:
        return f"{duration_s * 1e3:.3g} ms"
    return f"{duration_s:.3g} s" if duration_s < 999.5 else f"{duration_s:.0f} s"


def seconds_with_interval(duration_s: float, low: float, high: float) -> str:
    """Format a duration with its interval, all in the unit of the value: 55.2 [54.9, 56.1] ms."""
    size, unit = unit_of(duration_s)
    return f"{with_interval(duration_s / size, low / size, high / size)} {unit}"


def format_duration(duration_s: float | None) -> str:
    """Format a long duration, to the second: 42 s, 3 min 20 s, 2 h 5 min."""
    if duration_s is None or not math.isfinite(duration_s):
        return NOTHING
    return f"{duration_s:.1f} s" if duration_s < 9.95 else whole_duration(duration_s)


def whole_duration(duration_s: float) -> str:
    """Format a duration in whole seconds: 3 s, 3 min 20 s, 2 h 5 min."""
    total_s = round(duration_s)
    hours, minutes = total_s // 3600, total_s % 3600 // 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {total_s % 60} s" if minutes else f"{total_s} s"


def duration_range(least_s: float, most_s: float) -> str:
    """Format a range of durations: about 30 s, 20 to 35 s, 2 to 9 min, up to 8 s."""
    if most_s <= 1.1 * least_s:
        return f"about {whole_duration(most_s)}"
    size_s, unit = next(unit for unit in _WHOLE_UNITS if most_s >= 3 * unit[0] or unit[0] == 1)
    # whole units: the lower end is rounded down, the upper one up
    least, most = int(least_s // size_s), math.ceil(most_s / size_s)
    return f"{least} to {most} {unit}" if least else f"up to {most} {unit}"


def unit_of(largest_s: float) -> tuple[float, str]:
    """Return the unit for times up to `largest_s`: its length in seconds, and its name."""
    return next(((size, name) for size, name in _TIMES if largest_s >= size), _TIMES[-1])


def with_half_width(number: float, half_width: float) -> str:
    """Format a number as value ± half-width, with two digits of the half-width, rounded up."""
    if not math.isfinite(number):
        return NOTHING
    if not math.isfinite(half_width):
        return f"{format_significant(number)} ± {NOTHING}"
    places = supported_decimals(number, half_width)
    step = 10.0**-places
    half = math.ceil(half_width / step * (1 - 1e-9)) * step
    return f"{_round_to(number, places)} ± {_round_to(half, places)}"


def with_interval(number: float, low: float, high: float) -> str:
    """Format a number as value [low, high], all with the decimals that the interval supports."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{format_significant(number)} [{NOTHING}]"
    places = supported_decimals(number, (high - low) / 2)
    return f"{_round_to(number, places)} [{_round_to(low, places)}, {_round_to(high, places)}]"


def supported_decimals(number: float, half_width: float) -> int:
    """Return decimals for two digits of the half-width, but at most four digits of the number.

    Negative for tens and hundreds.
    """
    finest = MOST_DIGITS - 1 - _magnitude(number)
    return min(1 - _magnitude(half_width), finest) if half_width > 0 else finest


def format_significant(number: float | None, digits: int = 3) -> str:
    """Format a number with this many significant digits, never in the form 1e+05."""
    if number is None or not math.isfinite(number):
        return NOTHING
    return _round_to(number, digits - 1 - _magnitude(number, digits))


def format_percent(part: float | None, places: int = 1) -> str:
    """Format a part of 1 in percent."""
    if part is None or not math.isfinite(part):
        return NOTHING
    return f"{_round_to(100 * part, places)}%"


def format_share(part: int, whole: int) -> str:
    """Format a part of a whole in percent; never 0 % or 100 % unless it is."""
    if not whole:
        return NOTHING
    text = format_percent(part / whole)
    if 0 < part < whole and text in ("0.0%", "100.0%"):
        return "< 0.1%" if 2 * part < whole else "> 99.9%"
    return text


def percent_with_interval(part: float, low: float, high: float, max_places: int = 1) -> str:
    """Format a part of 1 with its interval, with `max_places` decimals at most: 2.9% [1.8, 4.1]."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return format_percent(part)
    places = min(max_places, max(0, supported_decimals(100 * part, 50 * (high - low))))
    text, low_text, high_text = (_round_to(100 * end, places) for end in (part, low, high))
    return f"{text}% [{low_text}, {high_text}]"


def format_instant(epoch_s: float) -> str:
    """Format a moment in UTC, to the second; n/a for 0, which means unknown."""
    if epoch_s <= 0:
        return NOTHING
    try:
        return f"{datetime.fromtimestamp(epoch_s, UTC):%Y-%m-%d %H:%M:%S}Z"
    except (OverflowError, ValueError, OSError):
        return NOTHING


def group_thousands(count: int) -> str:
    """Format a count whose thousands are apart."""
    return f"{count:,}".replace(",", "\u202f")


def plural(count: int, word: str) -> str:
    """Format a count with its noun: 1 request, 2 requests."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def leading_names(counts: Mapping[str, int], max_names: int = 3, others: int = 0) -> str:
    """List the first few names with their counts, as in "a (80), b (40) and 5 more".

    A name alone is listed without its count; an empty one is n/a. others: how many were counted
    elsewhere, without a name.
    """
    if len(counts) < 2 and not others:
        return next(iter(counts), "") or NOTHING
    parts = [f"{name or NOTHING} ({group_thousands(count)})" for name, count in counts.items()]
    if len(parts) > max_names:
        parts[max_names:] = [f"{len(parts) - max_names} more"]
    if others:
        parts.append(f"{group_thousands(others)} elsewhere")
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _magnitude(number: float, digits: int = MOST_DIGITS) -> int:
    """Return the power of ten of the first digit, as it is after rounding to this many digits."""
    if number == 0 or not math.isfinite(number):
        return 0
    return int(f"{abs(number):.{digits - 1}e}".partition("e")[2])


def _round_to(number: float, places: int) -> str:
    """Format a number with these decimals, of which negative ones are tens and hundreds."""
    text = f"{round(number, max(places, -12)):.{max(0, places)}f}"
    # -0 loses its sign
    return text.removeprefix("-") if float(text) == 0 else text


def format_quantity(number: float, unit: str, digits: int = 4) -> str:
    """Format a number with three or four digits and its unit; "" is that of a plain number."""
    if not math.isfinite(number):
        return NOTHING
    if unit == "" and number == int(number) and abs(number) < 1e15:
        return str(int(number))
    size, name = unit_scale(number, unit, digits)
    return f"{format_significant(number / size, digits) if number else 0} {name}".strip()


def quantity_with_half_width(number: float, half_width: float, unit: str) -> str:
    """Format a number ± its half-width, with one unit; without an interval the number alone."""
    if not (math.isfinite(number) and math.isfinite(half_width)) or half_width == 0:
        return format_quantity(number, unit)
    length, name = unit_scale(number, unit, 4)
    return f"{with_half_width(number / length, half_width / length)} {name}".strip()


def unit_scale(number: float, unit: str, digits: int = 4) -> tuple[float, str]:
    """Return the factor and the unit with its prefix, the next one for what rounds up to 1000."""
    if unit == "":
        return 1.0, ""
    one = 1 - 0.5 * 10.0**-digits  # what rounds up to 1
    if unit == "s":
        # never larger than seconds, as kiloseconds are unusual
        return next((time for time in _TIMES if abs(number) >= time[0] * one), _TIMES[-1])
    power = 0
    while power < len(_PREFIXES) - 1 and abs(number) / 1000**power >= 1000 * one:
        power += 1
    base = "/s" if unit == "1/s" else unit
    return 1000.0**power, f"{_PREFIXES[power]}{base}"
