"""A simulated device as a workload, to try queues, dashboards and scaling laws without hardware.

A run takes `seconds` on the device alone. With n runs each has the speed `FakeWork.speed(n)`, so
throughput follows a known law, which a validation must recover.

Runs see each other by files in a shared folder, each locked by its run: the kernel drops the lock
of a process that dies, so that dead runs are not counted.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote

from msgspec import Meta

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model import Outcome, Reason, State
from scaletest.model.declared import Count, Positive, Seconds, named_in_files, text
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

# Where the runs of this machine meet.
FOLDER_VARIABLE = "SCALETEST_FAKEDEV"
# How often a run counts the others, and how often it removes the files of dead ones.
COUNT_EVERY_S = 0.02
CLEAN_EVERY_S = 0.5
MIB = 2**20

Share = Annotated[float, Meta(ge=0, le=1)]

logger = logging.getLogger("scaletest.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeWork(Document):
    """One simulated run."""

    seconds: Seconds = 1.0  # on the device alone
    jitter: Share = 0.0  # standard deviation, relative to seconds
    # a run whose memory does not fit into that of the device with the others fails
    memory_mib: Annotated[Count, Meta(title="memory"), named_in_files("memory")] = 0
    device_memory_mib: Annotated[
        Positive, Meta(title="device memory"), named_in_files("device_memory")
    ] = 16384
    # parameters of Gunther's universal scalability law
    contention: Share = 0.0
    coherency: Share = 0.0
    ceiling: Count = 0  # runs at full speed together; 0 for any number
    activity: Annotated[float, Meta(ge=0, le=100)] = 98.0  # percent of the device
    # where a worker serves them; "" for nowhere
    metrics: Annotated[str, text(r"(.+:\d{1,5})?", "127.0.0.1:9400")] = ""

    def speed(self, runs: int) -> float:
        """Return the speed of each of `runs` that share the device, from 0 to 1."""
        cost = 1 + self.contention * (runs - 1) + self.coherency * runs * (runs - 1)
        share = self.ceiling / runs if self.ceiling else 1.0
        return min(1.0, share) / cost


def from_words(arguments: Sequence[str]) -> FakeWork:
    """Parse the options of a run; the last of several counts. InvalidValue for anything else."""
    return FakeWork(**TypedArguments(FakeWork, "fakedev").values(arguments))


def meeting_folder() -> Path:
    """Return where the runs of this machine meet: SCALETEST_FAKEDEV, else a folder of this user."""
    return Path(
        os.environ.get(FOLDER_VARIABLE)
        or Path(tempfile.gettempdir()) / f"scaletest-fakedev-{os.getuid()}"
    )


@contextmanager
def locked_file(device: str, work: FakeWork) -> Iterator[Path]:
    """Keep a locked file of this run, which describes it; yield its device's folder."""
    root = meeting_folder()
    folder = root / quote(device, safe="")
    folder.mkdir(parents=True, exist_ok=True)
    # created under a hidden name and renamed when locked and written, so others see it whole
    hidden = root / f".{uuid.uuid4().hex}"
    path = folder / f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with hidden.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(work.to_json())
            file.flush()
            hidden.rename(path)
            yield folder
        finally:
            path.unlink(missing_ok=True)


def read_runs(folder: Path) -> list[FakeWork]:
    """Return the runs in a device's folder, and remove the files of dead ones."""
    runs = []
    for path in folder.iterdir() if folder.is_dir() else ():
        try:
            with path.open(encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:  # its run holds it
                    runs.append(FakeWork.from_json(file.read()))
                else:
                    path.unlink(missing_ok=True)
        except (OSError, ValueError, InvalidValue):  # the run ended, or the file is not ours
            continue
    return runs


class FakeDevice(PreparedWorkload):
    """Runs the worker's description with the request's changes."""

    def __init__(self, setup: WorkloadSetup) -> None:
        """Check the worker's description. InvalidValue for words that cannot be read."""
        self._host, _, self._port = from_words(setup.options).metrics.rpartition(":")
        self._setup = setup
        self._chance = random.Random()
        self._server: WSGIServer | None = None

    def prepare(self, device: ChosenDevice | None) -> None:
        """Serve the metrics of this machine's simulated devices, where the options say so."""
        if not self._port:
            return
        from prometheus_client import CollectorRegistry, start_http_server

        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server, _ = start_http_server(int(self._port), self._host.strip("[]"), registry)
        except (OSError, OverflowError) as error:
            # workers of one machine may have the same address: the first one serves for all
            logger.warning("metrics are not served on %s:%s: %s", self._host, self._port, error)

    def collect(self) -> Iterator[Metric]:
        """Yield for Prometheus what all runs of this machine take of each device together."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        families = [
            GaugeMetricFamily(
                f"scaletest_fakedev_{name}", "Of all runs.", labels=["node", "device"]
            )
            for name in ("busy_ratio", "memory_used_bytes", "memory_bytes")
        ]
        root = meeting_folder()
        for folder in root.iterdir() if root.is_dir() else ():
            if runs := read_runs(folder):
                # together they take all of a device at most
                most_mib = runs[-1].device_memory_mib
                used_mib = min(most_mib, sum(run.memory_mib for run in runs))
                busy = min(100.0, sum(run.activity for run in runs)) / 100
                labels = self._setup.node, unquote(folder.name)
                for family, value in zip(
                    families, (busy, used_mib * MIB, most_mib * MIB), strict=True
                ):
                    family.add_metric(labels, value)
        yield from families

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Take the device's time once. Raises Interrupted."""
        try:
            work = from_words((*self._setup.options, *arguments))
        except InvalidValue as error:
            return failed_result(error)
        with locked_file(device.device.id if device else "none", work) as folder:
            # this run's file is there already, so that its own memory counts
            wanted_mib = sum(run.memory_mib for run in read_runs(folder))
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
        began_s = counted_s = cleaned_s = time.monotonic()
        run_seconds = 0.0  # of all runs together
        while left_s > 0:
            runs = max(1, sum(1 for _ in folder.iterdir()))
            speed = work.speed(runs)
            if self._setup.interrupt.wait(min(COUNT_EVERY_S, left_s / speed)):
                raise Interrupted
            now_s = time.monotonic()
            left_s -= (now_s - counted_s) * speed
            run_seconds += (now_s - counted_s) * runs
            counted_s = now_s
            if limit_s and now_s - began_s >= limit_s:
                return timed_out_result(limit_s)
            if now_s - cleaned_s >= CLEAN_EVERY_S:
                read_runs(folder)
                cleaned_s = now_s
        passed_s = counted_s - began_s
        mean_runs = round(run_seconds / passed_s, 3) if passed_s else 1.0
        return Result(Outcome.SUCCEEDED, exit_code=0, figures={"device_runs": mean_runs})

    def close(self) -> None:
        """Stop serving metrics."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
