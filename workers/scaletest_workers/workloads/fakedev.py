"""A simulated device's run, and the metrics of this machine's simulated devices over HTTP.

A run takes the device's time by a known law of sharing, so that queues, dashboards, sharing and
scaling laws can be tried without hardware. Runs of one machine see each other by files in a shared
folder, each locked by its run: the kernel drops the lock of a process that dies, so that dead runs
are not counted.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from scaletest.model import Outcome, Reason, State
from scaletest.model.errors import InvalidValue
from scaletest_workers.devices import Chosen
from scaletest_workers.options.fakedev import DeviceUse, FakeWork, device_totals, from_words
from scaletest_workers.workloads.base import Interrupted, Result, failed, timed_out
from scaletest_workers.workloads.making import Making

if TYPE_CHECKING:  # it takes a while to import, and few workers serve metrics
    from wsgiref.simple_server import WSGIServer

    from prometheus_client import Metric

logger = logging.getLogger("scaletest.worker")

FOLDER_VARIABLE = "SCALETEST_FAKEDEV"
# How often a run counts the others, and how often it removes dead ones.
LOOK_S = 0.02
CLEAN_S = 0.5
MIB = 2**20


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the runs of this machine meet: SCALETEST_FAKEDEV, else a folder of this user."""
    return Path(
        environment.get(FOLDER_VARIABLE)
        or Path(tempfile.gettempdir()) / f"scaletest-fakedev-{os.getuid()}"
    )


class FakeDevice:
    """Runs the worker's description with the request's changes."""

    def __init__(self, making: Making) -> None:
        """InvalidValue for words that cannot be read."""
        self._metrics = from_words(making.options).metrics
        self._sampler = making.sampler
        self._options = making.options
        self._interrupt = making.interrupt
        self._node = making.node
        self._chance = random.Random()
        self._server: WSGIServer | None = None

    def prepare(self, device: Chosen | None) -> None:
        """Serve the metrics of this machine's simulated devices, where the options say so."""
        if self._metrics is None:
            return
        from prometheus_client import CollectorRegistry, start_http_server

        host, port = self._metrics
        registry = CollectorRegistry()
        registry.register(DeviceMetrics(self._node))
        try:
            self._server, _ = start_http_server(port, host, registry)
        except OSError as error:
            # workers of one machine may have the same address: the first one serves for all
            logger.warning("metrics are not served on %s:%d: %s", host, port, error)

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Take the device's time once. Raises Interrupted."""
        try:
            work = from_words((*self._options, *arguments))
        except InvalidValue as error:
            return failed(error)
        name = device.device.id if device else "none"
        use = DeviceUse(name, work.activity, work.memory_mib, work.device_memory_mib)
        with _present(folder(), use) as place:
            taken = sum(run.memory_mib for run in uses(place))
            if work.memory_mib and taken > work.device_memory_mib:
                return Result(
                    Outcome.FAILED,
                    Reason.EXIT,
                    error=f"the device is out of memory: {taken} of {work.device_memory_mib} MiB"
                    " wanted",
                    figures={"memory_limit_hits": 1},
                )
            watch = self._sampler.begin() if self._sampler else None
            result = self._work(work, limit_s, place)
            path = device.device.path if device else ""
            return (
                replace(result, activity=watch.close_own(State.DEVICE, path)) if watch else result
            )

    def close(self) -> None:
        """Stop to serve metrics."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _work(self, work: FakeWork, limit_s: float, place: Path) -> Result:
        left = max(0.0, work.seconds * self._chance.gauss(1.0, work.jitter))
        began = before = cleaned = time.monotonic()
        shared = 0.0
        while left > 0:
            runs = max(1, sum(1 for _ in place.iterdir()))
            speed = work.law.speed(runs)
            if self._interrupt.wait(min(LOOK_S, left / speed)):
                raise Interrupted
            now = time.monotonic()
            left -= (now - before) * speed
            shared += (now - before) * runs
            if limit_s and now - began >= limit_s:
                return timed_out(limit_s)
            if now - cleaned >= CLEAN_S:
                cleaned = now
                uses(place)
            before = now
        if self._chance.random() < work.failure_rate:
            return Result(Outcome.FAILED, Reason.EXIT, 1, "the simulated device failed")
        mean = round(shared / (before - began), 3) if before > began else 1.0
        return Result(Outcome.SUCCEEDED, exit_code=0, figures={"device_runs": mean})


@contextmanager
def _present(root: Path, use: DeviceUse) -> Iterator[Path]:
    """Keep a locked file of this run in its device's folder, which is returned."""
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
    """The runs in a device's folder; files of dead ones are removed."""
    running = []
    for path in place.iterdir() if place.is_dir() else ():
        try:
            with path.open(encoding="utf-8") as file:
                if _is_free(file):
                    path.unlink(missing_ok=True)
                    continue
                running.append(DeviceUse(**json.load(file)))
        except (OSError, ValueError, TypeError):  # the run ended, or the file is not ours
            continue
    return running


def _is_free(file: IO[str]) -> bool:
    with suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


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
