"""A simulated device: its speed when runs share it, and what a run takes of it.

A run takes `seconds` on the device alone. With n runs each has the speed `SharingLaw.speed(n)`, so
throughput follows a known law, which a validation must recover.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Meta

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model import checks
from scaletest.model.declared import Count, Positive, Seconds, key, parsed
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue

Share = typing.Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class SharingLaw:
    """Cost of sharing a device.

    contention, coherency: parameters of Gunther's USL. ceiling: number of runs at full speed.
    """

    contention: float = 0.0
    coherency: float = 0.0
    ceiling: float = 0.0

    def speed(self, runs: int) -> float:
        """Speed of each of `runs`, from 0 to 1."""
        slowed = 1 + self.contention * (runs - 1) + self.coherency * runs * (runs - 1)
        share = self.ceiling / runs if self.ceiling else 1.0
        return min(1.0, share) / slowed


# The parameters of each law, in their order.
_LAWS = {
    "linear": (),
    "amdahl": ("contention",),
    "usl": ("contention", "coherency"),
    "capped": ("ceiling",),
}


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 65536):
        raise InvalidValue(
            f"{checks.shown(text)} is not an address", hint="write it as in 127.0.0.1:9400"
        )
    return host.strip("[]"), int(port)


def _law(text: str) -> SharingLaw:
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
    """One simulated run.

    seconds: on the device alone. jitter: standard deviation, relative to seconds. failure_rate:
    share of runs, from 0 to 1. memory_mib: memory during the run; a run that does not fit into
    device_memory_mib with the others fails. activity: percent of the device that the run keeps
    busy. metrics: address and port at which a worker serves them.
    """

    seconds: Seconds = 1.0
    jitter: Share = 0.0
    failure_rate: typing.Annotated[Share, Meta(title="failure rate")] = 0.0
    memory_mib: typing.Annotated[Count, Meta(title="memory"), key("memory")] = 0
    device_memory_mib: typing.Annotated[
        Positive, Meta(title="device memory"), key("device_memory")
    ] = 16384
    law: typing.Annotated[SharingLaw, parsed(_law)] = SharingLaw()
    activity: typing.Annotated[float, Meta(ge=0, le=100)] = 98.0
    metrics: typing.Annotated[tuple[str, int] | None, parsed(_address)] = None


def from_words(arguments: Sequence[str]) -> FakeWork:
    """Parse the options of a run; the last of several counts. InvalidValue for anything else."""
    return FakeWork(**TypedArguments(FakeWork, "fakedev").values(arguments))


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a run takes of a device at this moment. activity: percent."""

    device: str
    activity: float
    memory_mib: int
    device_memory_mib: int


def device_totals(uses: Sequence[DeviceUse]) -> dict[str, DeviceUse]:
    """What all runs together take of each device: all of it at most."""
    totals: dict[str, DeviceUse] = {}
    for use in uses:
        so_far = totals.get(use.device, DeviceUse(use.device, 0.0, 0, use.device_memory_mib))
        totals[use.device] = DeviceUse(
            use.device,
            min(100.0, so_far.activity + use.activity),
            min(use.device_memory_mib, so_far.memory_mib + use.memory_mib),
            use.device_memory_mib,
        )
    return totals
