"""Numbers and values as they stand in text."""

import json

# A smaller number is floating-point noise.
NOISE = 1e-9


def short_number(number: float, digits: int = 3) -> str:
    """Return at most `digits` significant digits: 0.5, 12.3, 12300, 0.00012; noise is 0."""
    if abs(number) < NOISE:
        return "0"
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    places = max(0, digits - 1 - int(text.partition("e")[2]))
    return f"{float(text):.{places}f}"


def as_yaml(value: object) -> str:
    """Return a value as YAML writes it on one line: true, null, [1, 2]; text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, default=str, ensure_ascii=False)
    except TypeError:
        # in YAML a key may have any type
        return str(value)
