"""A simulated device: its speed when runs share it, and what a run takes of it.

A run takes `seconds` on the device alone. With n runs each has the speed `SharingLaw.speed(n)`, so
throughput follows a known law, which a validation must recover.
"""

import typing
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Meta

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model import checks
from scaletest.model.declared import Count, Positive, Seconds, key, parsed
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue

# The parameters of each law, in their order.
_LAWS = {
    "linear": (),
    "amdahl": ("contention",),
    "usl": ("contention", "coherency"),
    "capped": ("ceiling",),
}

Share = typing.Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class SharingLaw:
    """Cost of sharing a device."""

    # parameters of Gunther's universal scalability law
    contention: float = 0.0
    coherency: float = 0.0
    ceiling: float = 0.0  # runs at full speed; 0 for any number

    def speed(self, runs: int) -> float:
        """Return the speed of each of `runs`, from 0 to 1."""
        slowed = 1 + self.contention * (runs - 1) + self.coherency * runs * (runs - 1)
        share = self.ceiling / runs if self.ceiling else 1.0
        return min(1.0, share) / slowed


def _parse_address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 65536):
        raise InvalidValue(
            f"{checks.shown(text)} is not an address", hint="write it as in 127.0.0.1:9400"
        )
    return host.strip("[]"), int(port)


def _parse_law(text: str) -> SharingLaw:
    name, *numbers = text.split(":")
    try:
        values = [checks.seconds(float(part), "law", zero=name != "capped") for part in numbers]
        return SharingLaw(**dict(zip(_LAWS[name], values, strict=True)))
    except (KeyError, TypeError, ValueError, InvalidValue) as error:
        raise InvalidValue(
            f"{checks.shown(text)} is not a law",
            hint="use linear, amdahl:CONTENTION, usl:CONTENTION:COHERENCY or capped:RUNS",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeWork(Document):
    """One simulated run."""

    seconds: Seconds = 1.0  # on the device alone
    jitter: Share = 0.0  # standard deviation, relative to seconds
    failure_rate: typing.Annotated[Share, Meta(title="failure rate")] = 0.0
    # a run whose memory does not fit into that of the device with the others fails
    memory_mib: typing.Annotated[Count, Meta(title="memory"), key("memory")] = 0
    device_memory_mib: typing.Annotated[
        Positive, Meta(title="device memory"), key("device_memory")
    ] = 16384
    law: typing.Annotated[SharingLaw, parsed(_parse_law)] = SharingLaw()
    activity: typing.Annotated[float, Meta(ge=0, le=100)] = 98.0  # percent of the device
    # address and port at which a worker serves them
    metrics: typing.Annotated[tuple[str, int] | None, parsed(_parse_address)] = None


def from_words(arguments: Sequence[str]) -> FakeWork:
    """Parse the options of a run; the last of several counts. InvalidValue for anything else."""
    return FakeWork(**TypedArguments(FakeWork, "fakedev").values(arguments))
