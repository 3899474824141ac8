"""A simulated device as a workload, so that queues, dashboards, sharing and scaling laws can be
tried without hardware.

A run takes the device's time by a known law of sharing.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from scaletest.model import Outcome, Reason, State
from scaletest.model.errors import InvalidValue
from scaletest_workers.devices import Chosen
from scaletest_workers.workloads.base import Interrupted, Result, failed_result, timed_out_result
from scaletest_workers.workloads.fakedev_options import FakeWork, from_words
from scaletest_workers.workloads.fakedev_runs import (
    DeviceMetrics,
    DeviceUse,
    folder,
    locked_file,
    uses,
)
from scaletest_workers.workloads.making import Making

if TYPE_CHECKING:  # it takes a while to import, and few workers serve metrics
    from wsgiref.simple_server import WSGIServer

logger = logging.getLogger("scaletest.worker")

# How often a run counts the others, and how often it removes dead ones.
LOOK_S = 0.02
CLEAN_S = 0.5


class FakeDevice:
    """Runs the worker's description with the request's changes."""

    def __init__(self, making: Making) -> None:
        """InvalidValue for words that cannot be read."""
        self._metrics = from_words(making.options).metrics
        self._making = making
        self._chance = random.Random()
        self._server: WSGIServer | None = None

    def prepare(self, device: Chosen | None) -> None:
        """Serve the metrics of this machine's simulated devices, where the options say so."""
        if self._metrics is None:
            return
        from prometheus_client import CollectorRegistry, start_http_server

        host, port = self._metrics
        registry = CollectorRegistry()
        registry.register(DeviceMetrics(self._making.node))
        try:
            self._server, _ = start_http_server(port, host, registry)
        except OSError as error:
            # workers of one machine may have the same address: the first one serves for all
            logger.warning("metrics are not served on %s:%d: %s", host, port, error)

    def run(self, arguments: tuple[str, ...], limit_s: float, device: Chosen | None) -> Result:
        """Take the device's time once. Raises Interrupted."""
        try:
            work = from_words((*self._making.options, *arguments))
        except InvalidValue as error:
            return failed_result(error)
        name = device.device.id if device else "none"
        use = DeviceUse(name, work.activity, work.memory_mib, work.device_memory_mib)
        with locked_file(folder(), use) as place:
            taken = sum(run.memory_mib for run in uses(place))
            if work.memory_mib and taken > work.device_memory_mib:
                return Result(
                    Outcome.FAILED,
                    Reason.EXIT,
                    error=f"the device is out of memory: {taken} of {work.device_memory_mib} MiB"
                    " wanted",
                    figures={"memory_limit_hits": 1},
                )
            watch = self._making.sampler.begin() if self._making.sampler else None
            result = self._work(work, limit_s, place)
            path = device.device.path if device else ""
            return (
                replace(result, activity=watch.close_own(State.DEVICE, path)) if watch else result
            )

    def _work(self, work: FakeWork, limit_s: float, place: Path) -> Result:
        """Wait until the device has done the work, at the speed that its present runs leave."""
        left_s = max(0.0, work.seconds * self._chance.gauss(1.0, work.jitter))
        began = before = cleaned = time.monotonic()
        run_seconds = 0.0  # of all runs together
        while left_s > 0:
            runs = max(1, sum(1 for _ in place.iterdir()))
            speed = work.law.speed(runs)
            if self._making.interrupt.wait(min(LOOK_S, left_s / speed)):
                raise Interrupted
            now = time.monotonic()
            left_s -= (now - before) * speed
            run_seconds += (now - before) * runs
            if limit_s and now - began >= limit_s:
                return timed_out_result(limit_s)
            if now - cleaned >= CLEAN_S:
                cleaned = now
                uses(place)
            before = now
        if self._chance.random() < work.failure_rate:
            return Result(Outcome.FAILED, Reason.EXIT, 1, "the simulated device failed")
        mean = round(run_seconds / (before - began), 3) if before > began else 1.0
        return Result(Outcome.SUCCEEDED, exit_code=0, figures={"device_runs": mean})

    def close(self) -> None:
        """Stop to serve metrics."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
