"""Options that take a number with a unit: a duration as in 3m, or a rate as in 20/s."""

import math
from collections.abc import Callable, Mapping

import click

from scaletest.cli.headings import F
from scaletest.cli.output import echo
from scaletest.model.checks import cut
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
        """bare: the unit of a number without one, which "" refuses.

        plausible: the largest such number, in base units, that is not asked about.
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
                f"{name}: {cut(repr(value), limit=60)} is no {self.name}",
                hint=f"write it as in {self._example}",
            )
        if text[-1].isdigit() and measured > self._plausible:
            echo(
                f"warning: {name} {text} is read as {text}{self._bare}; write its unit, as in"
                f" {self._example}",
                err=True,
            )
        return measured


# 500 without a unit may be meant in milliseconds.
DURATION = Quantity("duration", SECONDS, "90s, 3m or 500ms", "s", plausible=60.0)
RATE = Quantity("rate", PER_SECOND, "20/s or 600/min", "/s")
# For rates that people count per second or per minute.
RATE_WITH_UNIT = Quantity("rate with its unit", PER_SECOND, "2/s or 120/min")


def duration(*names: str, default: str | None = None, help: str) -> Callable[[F], F]:
    """Make an option that takes a duration."""
    return click.option(
        *names,
        type=DURATION,
        default=default,
        show_default=default not in (None, "0s"),
        metavar="TIME",
        help=help,
    )
