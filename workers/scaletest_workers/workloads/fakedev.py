"""A simulated device as a workload, to try queues, dashboards and scaling laws without hardware.

A run takes `seconds` on the device alone. With n runs each has the speed `SharingLaw.speed(n)`, so
throughput follows a known law, which a validation must recover.

Runs see each other by files in a shared folder, each locked by its run: the kernel drops the lock
of a process that dies, so that dead runs are not counted.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import random
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model import Outcome, Reason, State, checks
from scaletest.model.declared import Count, Positive, Seconds, named_in_files, parsed_by
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import (
    Interrupted,
    PreparedWorkload,
    Result,
    WorkloadSetup,
    failed_result,
    timed_out_result,
)

if TYPE_CHECKING:  # they take a while to import, and few workers serve metrics
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import Metric

# The parameters of each law, in their order.
_LAWS = {
    "linear": (),
    "amdahl": ("contention",),
    "usl": ("contention", "coherency"),
    "capped": ("ceiling",),
}
Share = Annotated[float, Meta(ge=0, le=1)]
FOLDER_VARIABLE = "SCALETEST_FAKEDEV"
MIB = 2**20
# How often a run counts the others, and how often it removes dead ones.
COUNT_EVERY_S = 0.02
CLEAN_EVERY_S = 0.5

logger = logging.getLogger("scaletest.worker")


@dataclass(frozen=True, slots=True)
class SharingLaw:
    """How much slower each run becomes where several share a device."""

    # parameters of Gunther's universal scalability law
    contention: float = 0.0
    coherency: float = 0.0
    ceiling: float = 0.0  # runs at full speed; 0 for any number

    def speed(self, runs: int) -> float:
        """Return the speed of each of `runs`, from 0 to 1."""
        cost = 1 + self.contention * (runs - 1) + self.coherency * runs * (runs - 1)
        share = self.ceiling / runs if self.ceiling else 1.0
        return min(1.0, share) / cost


def _parse_address(text: str) -> tuple[str, int]:
    """Split HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 65536):
        raise InvalidValue(
            f"{checks.show_value(text)} is not an address", hint="write e.g. 127.0.0.1:9400"
        )
    return host.strip("[]"), int(port)


def _parse_law(text: str) -> SharingLaw:
    """Read NAME or NAME:NUMBER:... as _LAWS has them."""
    name, *numbers = text.split(":")
    try:
        values = [checks.seconds(float(part), "law", zero=name != "capped") for part in numbers]
        return SharingLaw(**dict(zip(_LAWS[name], values, strict=True)))
    except (KeyError, TypeError, ValueError, InvalidValue) as error:
        raise InvalidValue(
            f"{checks.show_value(text)} is not a law",
            hint="use linear, amdahl:CONTENTION, usl:CONTENTION:COHERENCY or capped:RUNS",
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeWork(Document):
    """One simulated run."""

    seconds: Seconds = 1.0  # on the device alone
    jitter: Share = 0.0  # standard deviation, relative to seconds
    failure_rate: Annotated[Share, Meta(title="failure rate")] = 0.0
    # a run whose memory does not fit into that of the device with the others fails
    memory_mib: Annotated[Count, Meta(title="memory"), named_in_files("memory")] = 0
    device_memory_mib: Annotated[
        Positive, Meta(title="device memory"), named_in_files("device_memory")
    ] = 16384
    law: Annotated[SharingLaw, parsed_by(_parse_law)] = SharingLaw()
    activity: Annotated[float, Meta(ge=0, le=100)] = 98.0  # percent of the device
    # address and port at which a worker serves them
    metrics: Annotated[tuple[str, int] | None, parsed_by(_parse_address)] = None


def from_words(arguments: Sequence[str]) -> FakeWork:
    """Parse the options of a run; the last of several counts. InvalidValue for anything else."""
    return FakeWork(**TypedArguments(FakeWork, "fakedev").values(arguments))


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What a run takes of a device at this moment."""

    device: str
    activity: float  # percent
    memory_mib: int
    device_memory_mib: int


def meeting_folder() -> Path:
    """Return where the runs of this machine meet: SCALETEST_FAKEDEV, else a folder of this user."""
    return Path(
        os.environ.get(FOLDER_VARIABLE)
        or Path(tempfile.gettempdir()) / f"scaletest-fakedev-{os.getuid()}"
    )


@contextmanager
def locked_file(root: Path, use: DeviceUse) -> Iterator[Path]:
    """Keep a locked file of this run in its device's folder, which is yielded."""
    folder = root / use.device.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    # created under a hidden name and renamed when locked and written, so others see it whole
    hidden = root / f".{uuid.uuid4().hex}"
    path = folder / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with hidden.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump(asdict(use), file)
            file.flush()
            hidden.rename(path)
            yield folder
        finally:
            path.unlink(missing_ok=True)


def running_uses(folder: Path) -> list[DeviceUse]:
    """Return the runs in a device's folder, and remove files of dead ones."""
    running = []
    for path in folder.iterdir() if folder.is_dir() else ():
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


class DeviceMetrics:
    """The metrics of all simulated devices of a node, for a registry of Prometheus."""

    def __init__(self, node: str) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        """Read the files of all runs, and yield what they take of each device together."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        root = meeting_folder()
        percent: dict[str, float] = defaultdict(float)
        used_mib: dict[str, int] = defaultdict(int)
        device_mib: dict[str, int] = {}
        for folder in root.iterdir() if root.is_dir() else ():
            for use in running_uses(folder):
                percent[use.device] += use.activity
                used_mib[use.device] += use.memory_mib
                device_mib[use.device] = use.device_memory_mib
        # together they take all of a device at most
        figures: dict[str, dict[str, float]] = {
            "busy_ratio": {name: min(100.0, percent[name]) / 100 for name in device_mib},
            "memory_used_bytes": {
                name: min(most, used_mib[name]) * MIB for name, most in device_mib.items()
            },
            "memory_bytes": {name: most * MIB for name, most in device_mib.items()},
        }
        for figure, by_device in figures.items():
            family = GaugeMetricFamily(
                f"scaletest_fakedev_{figure}", "Of all runs.", labels=["node", "device"]
            )
            for device, value in sorted(by_device.items()):
                family.add_metric([self._node, device], value)
            yield family


class FakeDevice(PreparedWorkload):
    """Runs the worker's description with the request's changes."""

    def __init__(self, setup: WorkloadSetup) -> None:
        """Check the worker's description. InvalidValue for words that cannot be read."""
        self._metrics = from_words(setup.options).metrics
        self._setup = setup
        self._chance = random.Random()
        self._server: WSGIServer | None = None

    def prepare(self, device: ChosenDevice | None) -> None:
        """Serve the metrics of this machine's simulated devices, where the options say so."""
        if self._metrics is None:
            return
        from prometheus_client import CollectorRegistry, start_http_server

        host, port = self._metrics
        registry = CollectorRegistry()
        registry.register(DeviceMetrics(self._setup.node))
        try:
            self._server, _ = start_http_server(port, host, registry)
        except OSError as error:
            # workers of one machine may have the same address: the first one serves for all
            logger.warning("metrics are not served on %s:%d: %s", host, port, error)

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Take the device's time once. Raises Interrupted."""
        try:
            work = from_words((*self._setup.options, *arguments))
        except InvalidValue as error:
            return failed_result(error)
        use = DeviceUse(
            device.device.id if device else "none",
            work.activity,
            work.memory_mib,
            work.device_memory_mib,
        )
        with locked_file(meeting_folder(), use) as folder:
            # this run's file is there already, so that its own memory counts
            wanted_mib = sum(run.memory_mib for run in running_uses(folder))
            if work.memory_mib and wanted_mib > work.device_memory_mib:
                return Result(
                    Outcome.FAILED,
                    Reason.EXIT,
                    error=f"the device is out of memory: {wanted_mib} of {work.device_memory_mib}"
                    " MiB wanted",
                    figures={"memory_limit_hits": 1},
                )
            if self._setup.sampler is None:
                return self._wait_for_device(work, limit_s, folder)
            watch = self._setup.sampler.begin()
            result = self._wait_for_device(work, limit_s, folder)
            path = device.device.path if device else ""
            return replace(result, activity=watch.close_own(State.DEVICE, path))

    def _wait_for_device(self, work: FakeWork, limit_s: float, folder: Path) -> Result:
        """Wait until the device has done the work, at the speed that its present runs leave."""
        left_s = max(0.0, work.seconds * self._chance.gauss(1.0, work.jitter))
        began = before = cleaned = time.monotonic()
        run_seconds = 0.0  # of all runs together
        while left_s > 0:
            runs = max(1, sum(1 for _ in folder.iterdir()))
            speed = work.law.speed(runs)
            if self._setup.interrupt.wait(min(COUNT_EVERY_S, left_s / speed)):
                raise Interrupted
            now = time.monotonic()
            left_s -= (now - before) * speed
            run_seconds += (now - before) * runs
            if limit_s and now - began >= limit_s:
                return timed_out_result(limit_s)
            if now - cleaned >= CLEAN_EVERY_S:
                running_uses(folder)
                cleaned = now
            before = now
        if self._chance.random() < work.failure_rate:
            return Result(Outcome.FAILED, Reason.EXIT, 1, "the simulated device failed")
        mean_runs = round(run_seconds / (before - began), 3) if before > began else 1.0
        return Result(Outcome.SUCCEEDED, exit_code=0, figures={"device_runs": mean_runs})

    def close(self) -> None:
        """Stop serving metrics."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
