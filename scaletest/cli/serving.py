"""What a worker that serves a queue says of itself, on standard error: what it listens to, a live
row on a terminal, and a summary at its end.
"""

import math
import os
import shlex
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from scaletest.cli.output import echo, is_verbose, live_rows, summarize_requests
from scaletest.model.histogram import DurationHistogram
from scaletest.model.masking import mask_passwords
from scaletest.model.texts import short_number
from scaletest.observe.visibility import read_visibility
from scaletest_workers import before_run
from scaletest_workers.settings import Serving, Settings
from scaletest_workers.tally import WorkTally
from scaletest_workers.worker import Worker, run_worker


def serve_shown(serving: Serving, settings: Settings) -> None:
    """Serve a queue until a signal ends it, and say so. UsageError where its program or device
    cannot be used.
    """
    before_run.check_program(settings.command, settings.program)
    if settings.devices.device_index is not None:
        # who leases a slot looks at its device then
        before_run.check_devices(settings.devices, None)
    if "KUBERNETES_SERVICE_HOST" in os.environ and not settings.no_causes:
        # `scaletest cluster check` reads it there
        echo(read_visibility().to_line(), err=True)
    queue = ServedQueue(serving, settings)
    level = "INFO" if is_verbose() else "WARNING"
    try:
        with live_rows(queue.rows, per_s=4):
            run_worker(serving, settings, level, queue.tally, queue.begun)
    finally:
        queue.sum_up()


class ServedQueue:
    """A worker as its user sees it."""

    def __init__(self, serving: Serving, settings: Settings) -> None:
        self.serving, self.settings, self.tally = serving, settings, WorkTally()
        self._worker: Worker | None = None
        self._began_s = time.monotonic()
        self._counts: deque[tuple[float, int]] = deque()
        self._current, self._since_s = "", 0.0

    def begun(self, worker: Worker) -> None:
        """Say what is served, and by what."""
        self._worker, self._began_s = worker, time.monotonic()
        device = f" on device {worker.device}" if worker.device else ""
        _say(
            f"worker {worker.name}: serving queue {self.serving.queue} of"
            f" {mask_passwords(self.serving.redis_url)}, running"
            f" {shlex.join(self.settings.command) or 'sleep'}{device}"
        )

    def rows(self) -> Sequence[str]:
        """Return the live row."""
        if self._worker is None:
            return [f"connecting to {mask_passwords(self.serving.redis_url)}"]
        now, ended, failed = time.monotonic(), self.tally.ended, self.tally.failed
        # requests that ended per second, in the last ten seconds
        self._counts.append((now, ended))
        while now - self._counts[0][0] > 10.0:
            self._counts.popleft()
        then, count = self._counts[0]
        rate = (ended - count) / (now - then) if now > then else 0.0
        # the request that runs, and for how long it has been seen to
        running = self._worker.running
        if running is None:
            self._current, doing = "", "waiting for requests"
        else:
            if running.id != self._current:
                self._current, self._since_s = running.id, now
            doing = f"running {running.id} for {now - self._since_s:.0f} s"
        failures = [f"{failed} failed"] if failed else []
        parts = [f"queue {self.serving.queue}", f"{ended} done", *failures]
        return ["  ".join([*parts, f"{short_number(rate)}/s", doing])]

    def sum_up(self) -> None:
        """Say what was done, where the worker came to serve."""
        if self._worker is None:
            return
        served_s = time.monotonic() - self._began_s
        times = DurationHistogram(self.tally.run_times, self.tally.ended, low=0.0, high=math.inf)
        summary = summarize_requests(self.tally.outcomes, times.summary(), served_s)
        _say(f"worker {self._worker.name} ended: {summary}")


def _say(line: str) -> None:
    # whether somebody reads it makes no difference to the worker
    with suppress(OSError):
        echo(line, err=True)
