"""A simulated device: how fast work goes when several share it, how busy it looks, and what exporters would say of it.

A run needs `seconds` of the device alone. With n runs on the device each goes at `Law.speed(n)` of that, so throughput
grows by a known law, which a validation must find again.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from scaletest.model import checks
from scaletest.model.errors import InvalidValue

# Of a second: a device that changes faster is no device that warms up.
MOST_DRIFT = 0.1


@dataclass(frozen=True, slots=True)
class SharingLaw:
    """What sharing costs. contention, coherency: Gunther's USL; ceiling: runs that the device serves at full speed."""

    contention: float = 0.0
    coherency: float = 0.0
    ceiling: float = 0.0

    def speed(self, runs: int) -> float:
        """How fast each of `runs` goes, from 0 to 1."""
        slowed = 1 + self.contention * (runs - 1) + self.coherency * runs * (runs - 1)
        return min(1.0, self.ceiling / runs if self.ceiling else 1.0) / slowed


@dataclass(frozen=True, slots=True)
class ActivityPhase:
    """One part of a run's activity. load: percent of the device; swing: up and down; seconds: 0 for the rest."""

    load: float = 98.0
    swing: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class FakeWork:
    """One simulated run.

    seconds: on the device alone. jitter: standard deviation as a part of seconds. failure_rate: of runs, from 0 to 1.
    memory_mib: taken while it runs; a run that does not fit into device_memory_mib beside the others fails.
    drift: part by which all devices get faster every second since the first run, below 0 slower.
    """

    seconds: float = 1.0
    jitter: float = 0.0
    failure_rate: float = 0.0
    memory_mib: int = 0
    device_memory_mib: int = 16384
    law: SharingLaw = SharingLaw()
    drift: float = 0.0
    phases: tuple[ActivityPhase, ...] = (ActivityPhase(),)

    def __post_init__(self) -> None:
        checks.seconds(self.seconds, "seconds")
        checks.count(self.memory_mib, "memory")
        checks.count(self.device_memory_mib, "device memory", minimum=1)
        if not 0 <= self.jitter <= 1 or not 0 <= self.failure_rate <= 1:
            raise InvalidValue("jitter and failure rate are parts of one", hint="give numbers from 0 to 1")
        if not -MOST_DRIFT <= self.drift <= MOST_DRIFT:
            raise InvalidValue(f"a drift of {self.drift!r} a second", hint=f"give at most {MOST_DRIFT:g}, as in -0.001")

    def speed(self, runs: int, at_s: float) -> float:
        """How fast each of `runs` on a device goes, at_s seconds after the first run of all; 1 is alone and at once."""
        return self.law.speed(runs) * math.exp(self.drift * at_s)

    def activity(self, at_s: float, chance: float) -> float:
        """Percent of the device in use at this second of the run. chance: from -1 to 1, moves it within the swing."""
        began = 0.0
        for phase in self.phases:
            if phase.seconds == 0 or at_s < began + phase.seconds:
                return min(100.0, max(0.0, phase.load + phase.swing * chance))
            began += phase.seconds
        last = self.phases[-1]
        return min(100.0, max(0.0, last.load + last.swing * chance))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidValue(f"fakedev: {message}", hint="docs/how-to/fakedev.md lists its options")


def from_words(words: Sequence[str]) -> FakeWork:
    """Read a run's words; later ones win. InvalidValue for anything else."""
    parser = _Parser(prog="fakedev", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for name in ("--seconds", "--jitter", "--failure-rate", "--drift"):
        parser.add_argument(name, type=float)
    for name in ("--memory", "--device-memory"):
        parser.add_argument(name, type=int, dest=f"{name[2:].replace('-', '_')}_mib")
    parser.add_argument("--law", type=_law)
    parser.add_argument("--activity", type=_phases, dest="phases")
    return FakeWork(**vars(parser.parse_args(list(words))))


def _law(text: str) -> SharingLaw:
    name, *numbers = text.split(":")
    try:
        values = [checks.seconds(float(one), "law") for one in numbers]
        if name == "capped":
            (ceiling,) = values
            return SharingLaw(ceiling=checks.seconds(ceiling, "ceiling", zero=False))
        if len(values) != {"linear": 0, "amdahl": 1, "usl": 2}[name]:
            raise ValueError(text)
        return SharingLaw(*values)
    except (KeyError, TypeError, ValueError, InvalidValue) as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no law: linear, amdahl:CONTENTION, usl:CONTENTION:COHERENCY or capped:RUNS"
        ) from error


def _phases(text: str) -> tuple[ActivityPhase, ...]:
    try:
        parts = [[checks.seconds(float(one), "activity") for one in part.split(":")] for part in text.split(",")]
        return tuple(ActivityPhase(*part) for part in parts)
    except (TypeError, ValueError, InvalidValue) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no activity such as 98:1:5,20:0:0") from error


# -- annotations of the fake GPU operator ---------------------------------------------------------------------------

UTILISATION, FRACTION = "run.ai/simulated-gpu-utilization", "gpu-fraction"
# As the downward API writes them into a file: a key and a quoted value a line.
_ANNOTATION = re.compile(r'^([^=\s]+)=("(?:[^"\\]|\\.)*")\s*$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Annotated:
    """What a pod's annotations say of its use of a device. busy: percent, from and to; fraction: of its memory."""

    busy: tuple[float, float] | None = None
    fraction: float | None = None

    def activity(self, otherwise: float, chance: float) -> float:
        """Percent at this moment. chance: from -1 to 1, where in the range it lies."""
        if self.busy is None:
            return otherwise
        low, high = self.busy
        return low + (high - low) * (chance + 1) / 2

    def memory_mib(self, otherwise: int, device_memory_mib: int) -> int:
        """Memory in use."""
        return otherwise if self.fraction is None else round(self.fraction * device_memory_mib)


def annotated(text: str) -> Annotated:
    """Read a file of annotations; those of others are skipped. InvalidValue for a value that cannot be."""
    values: dict[str, str] = {}
    for key, quoted in _ANNOTATION.findall(text):
        if key in (UTILISATION, FRACTION):
            try:
                values[key] = str(json.loads(quoted))
            except ValueError as error:
                raise InvalidValue(f"the annotation {key} is {quoted}", hint="write plain numbers") from error
    busy = fraction = None
    if UTILISATION in values:
        parts = values[UTILISATION].split("-")
        ends = _numbers(UTILISATION, parts, 100.0, "20 or 20-35")
        if len(ends) > 2 or ends[0] > ends[-1]:
            raise InvalidValue(
                f"the annotation {UTILISATION} is {values[UTILISATION]!r}", hint="write it as 20 or 20-35"
            )
        busy = (ends[0], ends[-1])
    if FRACTION in values:
        (fraction,) = _numbers(FRACTION, [values[FRACTION]], 1.0, "0.5")
    return Annotated(busy, fraction)


def _numbers(name: str, parts: Sequence[str], most: float, example: str) -> list[float]:
    try:
        found = [float(one) for one in parts]
    except ValueError:
        found = []
    if not found or not all(0 <= one <= most for one in found):
        raise InvalidValue(f"the annotation {name} is {'-'.join(parts)!r}", hint=f"write it as {example}")
    return found


# -- metrics --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Use:
    """One run on a device at this moment. activity: percent; pod, namespace, container: of its worker."""

    device: str
    activity: float
    memory_mib: int
    device_memory_mib: int
    node: str = ""
    pod: str = ""
    namespace: str = ""
    container: str = ""


VENDORS = ("intel", "nvidia", "amd")


def exposition(uses: Sequence[Use], vendors: Sequence[str] = VENDORS) -> str:
    """Prometheus text under the names of the vendors' exporters: XPU Manager, DCGM exporter, AMD's metrics exporter.

    A device that several runs share shows the sum of their activity, 100 at most, and of their memory, once for each
    pod that uses it, as those exporters do.
    """
    devices = sorted({use.device for use in uses})
    lines: list[str] = []
    rows = [(devices.index(use.device), use, _sums(uses, use)) for use in _by_pod(uses)]
    for vendor in vendors:
        for name, value in _METRICS[vendor]:
            lines.append(f"# TYPE {name} gauge")
            lines += [f"{name}{{{_labels(vendor, at, use)}}} {value(*sums):.15g}" for at, use, sums in rows]
    return "\n".join(lines) + "\n" if rows else ""


_Metric = tuple[str, Any]
_METRICS: dict[str, tuple[_Metric, ...]] = {
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


def _by_pod(uses: Sequence[Use]) -> list[Use]:
    return list({(use.device, use.namespace, use.pod, use.container): use for use in uses}.values())


def _sums(uses: Sequence[Use], one: Use) -> tuple[float, int, int]:
    beside = [use for use in uses if use.device == one.device]
    used = min(one.device_memory_mib, sum(use.memory_mib for use in beside))
    return min(100.0, sum(use.activity for use in beside)), used, one.device_memory_mib


def _labels(vendor: str, at: int, use: Use) -> str:
    where = {"container": use.container, "namespace": use.namespace, "pod": use.pod}
    rows = {
        "intel": {"dev_file": use.device, "type": "compute", "vendor": "fake", "node": use.node}
        | {f"kube_{name}": value for name, value in where.items()},
        "nvidia": {"gpu": str(at), "UUID": f"GPU-fake-{at}", "device": use.device, "modelName": "fake"}
        | {"Hostname": use.node, **where},
        "amd": {"gpu_id": str(at), "hostname": use.node, "card_model": "fake", **where},
    }[vendor]
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in rows.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
