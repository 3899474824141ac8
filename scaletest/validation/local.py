"""Workers as processes of this machine. They end with us, even when we are killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scaletest.archive.private import open_private
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.system.guard import Guard

GRACE_S = 5.0
# longer than a worker's grace period and its workload's together
STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How every worker is started.

    shares: how many workers share a device, by the number of workers; without one worker N uses the N-th device and
    leases nothing. no_causes: whether they leave out where requests spend their time.
    device_metrics_url: of an exporter that tells them of devices.
    """

    redis_url: str
    queue: str
    command: tuple[str, ...] = ()
    device_glob: str = ""
    time_limit_s: float = 0.0
    preset: str = ""
    device_policy: str = ""
    shares: Mapping[int, int] = field(default_factory=dict)
    no_causes: bool = False
    device_metrics_url: str = ""


class LocalBackend:
    """Worker processes; `alive` tells which of them serve the queue by now."""

    def __init__(
        self, options: WorkerOptions, log: Path, alive: Callable[[], int], check: Callable[[], None] = lambda: None
    ) -> None:
        """check: raises when workers cannot be started any more as the plan wants."""
        self._options = options
        self._log = log
        self._alive = alive
        self._check = check
        self._guard = Guard("KILL")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._share = 0

    def scale(self, workers: int) -> None:
        """Start what is missing. A validation only ever grows; fewer are reached by ending the last ones.

        Workers that share a device with more or fewer than the last ones did are all started anew.
        """
        self._check()
        share = self._options.shares.get(workers, self._share)
        if share != self._share:
            self._end(self._processes)
            self._processes = []
            self._share = share
        while len(self._processes) < workers:
            self._processes.append(self._start(len(self._processes)))
        while len(self._processes) > workers:
            self._end([self._processes.pop()])

    def ready(self) -> int:
        """Workers that serve the queue."""
        for process in self._processes:
            code = process.poll()
            if code is not None:
                raise ScaletestError(
                    f"a worker ended by itself with exit code {code}: {self._log_end()}",
                    hint=f"read {self._log}, or start one by hand: scaletest worker --queue {self._options.queue}",
                )
        return self._alive()

    def close(self) -> None:
        """End all workers: they finish what they run, for a while, and are killed then."""
        self._end(self._processes)
        self._processes = []
        self._guard.close()

    def kill(self) -> None:
        """End all workers at once."""
        for process in self._processes:
            process.kill()

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        try:
            log = open_private(self._log, "ab")
        except OSError as error:
            raise UsageError(f"the workers' log {self._log} cannot be written: {error.strerror}") from error
        with log:
            return subprocess.Popen(
                self._arguments(index),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C at the terminal is ours to handle
                # a URL may hold a password, and everybody can read a command line
                env=self._guard.environment({**os.environ, "SCALETEST_REDIS_URL": self._options.redis_url}),
            )

    def _arguments(self, index: int) -> list[str]:
        options = self._options
        line = [sys.executable, "-m", "scaletest", "worker", "--queue", options.queue, "--grace", f"{GRACE_S:g}"]
        if options.no_causes:
            line += ["--no-causes"]
        if options.device_metrics_url:
            line += ["--device-metrics-url", options.device_metrics_url]
        if options.time_limit_s:
            line += ["--time-limit", repr(options.time_limit_s)]
        for name, value in (("--preset", options.preset), ("--device-glob", options.device_glob)):
            line += [name, value] if value else []
        if self._share:
            line += ["--per-device", str(self._share), "--device-policy", options.device_policy]
        elif options.device_glob or options.preset:
            line += ["--device-index", str(index)]
        if options.command:
            line += ["--null-input", "--", *options.command]
        return line

    def _end(self, processes: list[subprocess.Popen[bytes]]) -> None:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _log_end(self) -> str:
        try:
            return cut(self._log.read_text(errors="replace").strip()[-400:]) or "its log is empty"
        except OSError:
            return "it left no log"
