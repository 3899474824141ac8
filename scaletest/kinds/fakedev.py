"""A simulated device: its speed when runs share it, its activity, and the metrics of exporters.

A run takes `seconds` on the device alone. With n runs each has the speed `SharingLaw.speed(n)`, so
throughput follows a known law, which a validation must recover.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Meta

from scaletest.kinds.typed_arguments import TypedArguments
from scaletest.model import checks
from scaletest.model.declared import Count, Document, Positive, Seconds, key, parsed
from scaletest.model.errors import InvalidValue

# Largest drift of speed in a second: no real device warms up faster.
MOST_DRIFT = 0.1
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


@dataclass(frozen=True, slots=True)
class ActivityPhase:
    """A phase of a run. load: percent of the device; swing: variation; seconds: 0 for the rest."""

    load: float = 98.0
    swing: float = 0.0
    seconds: float = 0.0


# The parameters of each law, in their order.
_LAWS = {
    "linear": (),
    "amdahl": ("contention",),
    "usl": ("contention", "coherency"),
    "capped": ("ceiling",),
}


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


def _phases(text: str) -> tuple[ActivityPhase, ...]:
    try:
        return tuple(map(_phase, text.split(",")))
    except (TypeError, ValueError, InvalidValue) as error:
        raise InvalidValue(
            f"{checks.shown(text)} is not an activity", hint="write it as in 98:1:5,20:0:0"
        ) from error


def _phase(text: str) -> ActivityPhase:
    return ActivityPhase(*[checks.seconds(float(number), "activity") for number in text.split(":")])


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeWork(Document):
    """One simulated run.

    seconds: on the device alone. jitter: standard deviation, relative to seconds. failure_rate:
    share of runs, from 0 to 1. memory_mib: memory during the run; a run that does not fit into
    device_memory_mib with the others fails. drift: relative change of speed in each second
    since the first run.
    """

    seconds: Seconds = 1.0
    jitter: Share = 0.0
    failure_rate: typing.Annotated[Share, Meta(title="failure rate")] = 0.0
    memory_mib: typing.Annotated[Count, Meta(title="memory"), key("memory")] = 0
    device_memory_mib: typing.Annotated[
        Positive, Meta(title="device memory"), key("device_memory")
    ] = 16384
    law: typing.Annotated[SharingLaw, parsed(_law)] = SharingLaw()
    drift: typing.Annotated[float, Meta(ge=-MOST_DRIFT, le=MOST_DRIFT, title="drift a second")] = (
        0.0
    )
    phases: typing.Annotated[tuple[ActivityPhase, ...], parsed(_phases), key("activity")] = (
        ActivityPhase(),
    )

    def speed(self, runs: int, at_s: float) -> float:
        """Speed of each of `runs`, at_s seconds after the first run; 1: alone and at the start."""
        return self.law.speed(runs) * math.exp(self.drift * at_s)

    def activity(self, at_s: float, chance: float) -> float:
        """Percent of the device in use at this second of the run.

        chance: from -1 to 1, of the swing.
        """
        ends = itertools.accumulate(phase.seconds for phase in self.phases)
        lasting = zip(self.phases, ends, strict=True)
        current = next(
            (phase for phase, end_s in lasting if phase.seconds == 0 or at_s < end_s),
            self.phases[-1],
        )
        return min(100.0, max(0.0, current.load + current.swing * chance))


def from_words(arguments: Sequence[str]) -> FakeWork:
    """Parse the options of a run; the last of several counts. InvalidValue for anything else."""
    return FakeWork(**TypedArguments(FakeWork, "fakedev").values(arguments))


# -- annotations of the fake GPU operator
# --------------------------------------------------------------------------------------------------

UTILISATION, FRACTION = "run.ai/simulated-gpu-utilization", "gpu-fraction"
# Format of the downward API in a file: each line has a key and a quoted value.
_ANNOTATION = re.compile(r'^([^=\s]+)=("(?:[^"\\]|\\.)*")\s*$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Annotated:
    """A pod's use of a device by its annotations.

    busy: range in percent; fraction: of its memory.
    """

    busy: tuple[float, float] | None = None
    fraction: float | None = None

    def activity(self, otherwise: float, chance: float) -> float:
        """Percent at this moment. chance: from -1 to 1, the place in the range."""
        if self.busy is None:
            return otherwise
        low, high = self.busy
        return low + (high - low) * (chance + 1) / 2

    def memory_mib(self, otherwise: int, device_memory_mib: int) -> int:
        """Memory in use, in MiB."""
        return otherwise if self.fraction is None else round(self.fraction * device_memory_mib)


def annotated(text: str) -> Annotated:
    """Parse a file of annotations; others are skipped. InvalidValue for impossible values."""
    values: dict[str, str] = {}
    for name, quoted in _ANNOTATION.findall(text):
        if name in (UTILISATION, FRACTION):
            try:
                values[name] = str(json.loads(quoted))
            except ValueError as error:
                raise InvalidValue(
                    f"the annotation {name} is {quoted}", hint="write plain numbers"
                ) from error
    busy = _numbers(UTILISATION, values, 100.0, "20 or 20-35")
    fraction = _numbers(FRACTION, values, 1.0, "0.5")
    return Annotated((busy[0], busy[-1]) if busy else None, fraction[0] if fraction else None)


def _numbers(name: str, values: Mapping[str, str], most: float, example: str) -> list[float]:
    """The numbers of an annotation, one or the ends of a range; none where it is not set."""
    if name not in values:
        return []
    parts = values[name].split("-") if name == UTILISATION else [values[name]]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if not (len(numbers) in (1, 2) and 0 <= numbers[0] <= numbers[-1] <= most):
        raise InvalidValue(
            f"the annotation {name} is {values[name]!r}", hint=f"write it as {example}"
        )
    return numbers


# -- metrics
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Use:
    """A run on a device at this moment.

    activity: percent; pod, namespace, container: its worker.
    """

    device: str
    activity: float
    memory_mib: int
    device_memory_mib: int
    node: str = ""
    pod: str = ""
    namespace: str = ""
    container: str = ""


_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
VENDORS = ("intel", "nvidia", "amd")


def exposition(uses: Sequence[Use], vendors: Sequence[str] = VENDORS) -> str:
    """Prometheus metrics with the names of XPU Manager, DCGM exporter and AMD's exporter.

    A shared device has the sum of all activity, 100 at most, and of all memory, once for each pod
    that uses it, as with those exporters.
    """
    devices = sorted({use.device for use in uses})
    by_pod = {(use.device, use.namespace, use.pod, use.container): use for use in uses}
    series = [(devices.index(use.device), use, _sums(uses, use)) for use in by_pod.values()]
    lines: list[str] = []
    for vendor in vendors:
        for name, compute in _METRICS[vendor]:
            lines.append(f"# TYPE {name} gauge")
            lines += [
                f"{name}{{{_labels(vendor, at, use)}}} {compute(*sums):.15g}"
                for at, use, sums in series
            ]
    return "\n".join(lines) + "\n" if series else ""


_METRICS: dict[str, tuple[tuple[str, typing.Any], ...]] = {
    "intel": (
        ("xpum_engine_group_ratio", lambda busy, used, size: busy / 100),
        ("xpum_memory_used_bytes", lambda busy, used, size: used * 1048576),
        ("xpum_memory_ratio", lambda busy, used, size: used / size),
    ),
    "nvidia": (
        ("DCGM_FI_DEV_GPU_UTIL", lambda busy, used, size: busy),
        ("DCGM_FI_DEV_FB_USED", lambda busy, used, size: used),
        ("DCGM_FI_DEV_FB_FREE", lambda busy, used, size: size - used),
    ),
    "amd": (
        ("gpu_gfx_activity", lambda busy, used, size: busy),
        ("gpu_used_vram", lambda busy, used, size: used),
        ("gpu_free_vram", lambda busy, used, size: size - used),
        ("gpu_total_vram", lambda busy, used, size: size),
    ),
}


def _sums(uses: Sequence[Use], use: Use) -> tuple[float, int, int]:
    sharing = [other for other in uses if other.device == use.device]
    return (
        min(100.0, sum(other.activity for other in sharing)),
        min(use.device_memory_mib, sum(other.memory_mib for other in sharing)),
        use.device_memory_mib,
    )


def _labels(vendor: str, at: int, use: Use) -> str:
    where = {"container": use.container, "namespace": use.namespace, "pod": use.pod}
    labels = {
        "intel": {
            "dev_file": use.device,
            "type": "compute",
            "vendor": "fake",
            "node": use.node,
            **{f"kube_{name}": text for name, text in where.items()},
        },
        "nvidia": {
            "gpu": str(at),
            "UUID": f"GPU-fake-{at}",
            "device": use.device,
            "modelName": "fake",
            "Hostname": use.node,
            **where,
        },
        "amd": {"gpu_id": str(at), "hostname": use.node, "card_model": "fake", **where},
    }[vendor]
    return ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
