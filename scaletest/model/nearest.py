"""The name that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: object, known: Iterable[str]) -> str:
    """The known name most like this one; "" when none is like it."""
    names = {option.lower(): option for option in known}
    near = difflib.get_close_matches(str(name).lower(), names, n=1)
    return names[near[0]] if near else ""


def suggestion(name: object, known: Iterable[str]) -> str:
    """A hint: the nearest name, else all names."""
    names = list(known)
    near = nearest(name, names)
    return f"did you mean {near}?" if near else f"there are {', '.join(names) or 'none'}"
