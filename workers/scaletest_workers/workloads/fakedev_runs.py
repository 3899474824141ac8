"""What runs on this machine's simulated devices now.

Runs see each other by files in a shared folder, each locked by its run: the kernel drops the lock
of a process that dies, so that dead runs are not counted.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it takes a while to import, and few workers serve metrics
    from prometheus_client import Metric

FOLDER_VARIABLE = "SCALETEST_FAKEDEV"
MIB = 2**20


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a run takes of a device at this moment."""

    device: str
    activity: float  # percent
    memory_mib: int
    device_memory_mib: int


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the runs of this machine meet: SCALETEST_FAKEDEV, else a folder of this user."""
    return Path(
        environment.get(FOLDER_VARIABLE)
        or Path(tempfile.gettempdir()) / f"scaletest-fakedev-{os.getuid()}"
    )


@contextmanager
def locked_file(root: Path, use: DeviceUse) -> Iterator[Path]:
    """Keep a locked file of this run in its device's folder, which is yielded."""
    place = root / use.device.replace("/", "_")
    place.mkdir(parents=True, exist_ok=True)
    # created under a hidden name and renamed when locked and written, so others see it whole
    hidden = root / f".{uuid.uuid4().hex}"
    path = place / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with hidden.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump(asdict(use), file)
            file.flush()
            hidden.rename(path)
            yield place
        finally:
            path.unlink(missing_ok=True)


def uses(place: Path) -> list[DeviceUse]:
    """Return the runs in a device's folder; files of dead ones are removed."""
    running = []
    for path in place.iterdir() if place.is_dir() else ():
        try:
            with path.open(encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:  # its run holds it
                    running.append(DeviceUse(**json.load(file)))
                else:
                    path.unlink(missing_ok=True)
        except (OSError, ValueError, TypeError):  # the run ended, or the file is not ours
            continue
    return running


def device_totals(uses: Sequence[DeviceUse]) -> dict[str, DeviceUse]:
    """Return what all runs together take of each device: all of it at most."""
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


class DeviceMetrics:
    """The metrics of all simulated devices of a node, for a registry of Prometheus."""

    def __init__(self, node: str) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        """Read the files of all runs."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        places = folder().iterdir() if folder().is_dir() else ()
        totals = device_totals([use for place in places for use in uses(place)])
        figures: dict[str, dict[str, float]] = {
            "busy_ratio": {name: use.activity / 100 for name, use in totals.items()},
            "memory_used_bytes": {name: use.memory_mib * MIB for name, use in totals.items()},
            "memory_bytes": {name: use.device_memory_mib * MIB for name, use in totals.items()},
        }
        for figure, by_device in figures.items():
            labels = ["node", "device"]
            family = GaugeMetricFamily(f"scaletest_fakedev_{figure}", "Of all runs.", labels=labels)
            for device, value in sorted(by_device.items()):
                family.add_metric([self._node, device], value)
            yield family
