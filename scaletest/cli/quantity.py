"""Option values with a unit: durations and rates."""

import math
from collections.abc import Mapping

import click

from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError
from scaletest.model.quantities import PER_SECOND, SECONDS, in_base_units


class Quantity(click.ParamType[float]):
    """A number with a unit, in base units."""

    def __init__(self, name: str, units: Mapping[str, float], example: str) -> None:
        """Set what the option takes.

        name: what messages call it. units: in base units, by name; without "" among them a number
        must have a unit. example: for hints.
        """
        self.name, self._units, self._example = name, units, example

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number in base units."""
        if isinstance(value, int | float):
            return float(value)
        measured = in_base_units(str(value).strip(), self._units)
        if measured is None or math.isinf(measured):
            name = param.opts[-1] if param else self.name
            raise UsageError(
                f"{name}: invalid {self.name} {cut_text(repr(value), limit=60)}",
                hint=f"write e.g. {self._example}",
            )
        return measured


DURATION = Quantity("duration", {"": 1.0, **SECONDS}, "90s, 3m or 500ms")
RATE = Quantity("rate", {"": 1.0, **PER_SECOND}, "20/s or 600/min")
# For rates that people count per second or per minute.
RATE_WITH_UNIT = Quantity("rate", PER_SECOND, "2/s or 120/min")
# In money of any kind.
PRICE = Quantity("price of an hour", {"": 1.0, "/h": 1.0}, "1.2/h")
