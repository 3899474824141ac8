"""Numbers with units, as people and tools write them."""

import re
from collections.abc import Mapping

SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
PER_SECOND = {"/s": 1.0, "/min": 1 / 60}
DECIMAL_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
BYTES = {**DECIMAL_BYTES, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
# No quantity is longer. Headers of a service are read with it too, for each of its responses.
LONGEST_QUANTITY = 40
_QUANTITY = re.compile(
    r"((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-zµ/%]*)"
)


def in_base_units(text: str, units: Mapping[str, float]) -> float | None:
    """Return the number times its unit's factor; None for any other text."""
    if len(text) > LONGEST_QUANTITY:
        return None
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * units[match[2]] if match and match[2] in units else None
