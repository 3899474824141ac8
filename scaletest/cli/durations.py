"""Seconds on the command line: a number, or one with a unit, as in 3m."""

from __future__ import annotations

import re

import click

from scaletest.cli.output import echo

_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# A bare number above it may be meant in milliseconds: 2000 is more than half an hour.
PLAUSIBLE_S = 1000.0
_TEXT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")


class Duration(click.ParamType[float]):
    """90, 90s, 1.5m, 500ms, 1h: seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        match = _TEXT.fullmatch(str(value).strip())
        if not match:
            self.fail(
                f"{value!r} is no duration: write seconds, or a unit, as in 90, 90s, 3m, 500ms",
                param,
                ctx,
            )
        if not match[2] and float(match[1]) > PLAUSIBLE_S:
            name = f"{param.opts[-1]} " if param else ""
            line = f"warning: {name}{value} is read as seconds; write {value}s, or {value}ms"
            echo(line, err=True)
        return float(match[1]) * _UNITS[match[2]]


DURATION = Duration()
