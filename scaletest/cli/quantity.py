"""Option values with a unit: durations and rates."""

import math
from collections.abc import Mapping

import click

from scaletest.cli.output import echo
from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError
from scaletest.model.quantities import PER_SECOND, SECONDS, in_base_units


class Quantity(click.ParamType[float]):
    """A number with a unit, in base units."""

    def __init__(
        self,
        name: str,
        units: Mapping[str, float],
        example: str,
        bare: str = "",
        plausible: float = math.inf,
    ) -> None:
        """Set what the option takes.

        name: what messages call it. units: in base units, by name. example: for hints.
        bare: the unit of a number without one; "" refuses such a number.
        plausible: the largest number without a unit, in base units, that gets no warning.
        """
        self.name, self._example, self._bare, self._plausible = name, example, bare, plausible
        self._units = {**units, "": units[bare]} if bare else units

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number in base units."""
        if isinstance(value, int | float):
            return float(value)
        text, name = str(value).strip(), param.opts[-1] if param else self.name
        measured = in_base_units(text, self._units)
        if measured is None or math.isinf(measured):
            raise UsageError(
                f"{name}: invalid {self.name} {cut_text(repr(value), limit=60)}",
                hint=f"write e.g. {self._example}",
            )
        if text[-1].isdigit() and measured > self._plausible:
            echo(
                f"warning: {name} {text} is read as {text}{self._bare}; write its unit, e.g."
                f" {self._example}",
                err=True,
            )
        return measured


# 500 without a unit may be meant in milliseconds.
DURATION = Quantity("duration", SECONDS, "90s, 3m or 500ms", "s", plausible=60.0)
RATE = Quantity("rate", PER_SECOND, "20/s or 600/min", "/s")
# For rates that people count per second or per minute.
RATE_WITH_UNIT = Quantity("rate", PER_SECOND, "2/s or 120/min")
