"""A worker that serves a queue, as its user sees it on standard error.

It says what it serves, draws a live row on a terminal, and sums up at its end.
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
from scaletest.model.visibility import visibility_gaps
from scaletest.observe.visibility import read_visibility
from scaletest_workers import before_run
from scaletest_workers.settings import Serving, Settings
from scaletest_workers.worker import Worker, run_worker


def serve_and_report(serving: Serving, settings: Settings) -> None:
    """Serve a queue until a signal ends it, and print how it goes.

    UsageError where its program or device cannot be used.
    """
    before_run.check_program(settings.command, settings.program)
    if settings.devices.device_index is not None:
        # who leases a slot looks at its device then
        before_run.check_devices(settings.devices, None)
    if "KUBERNETES_SERVICE_HOST" in os.environ and not settings.no_causes:
        for gap in visibility_gaps(read_visibility()):
            echo("causes: no {missing}: {effect}; {remedy}".format_map(gap), err=True)
    queue = ServedQueue(serving, settings)
    level = "INFO" if is_verbose() else "WARNING"
    try:
        with live_rows(queue.live_row, per_s=4):
            run_worker(serving, settings, level, queue.announce)
    finally:
        queue.sum_up()


class ServedQueue:
    """A worker as its user sees it: the first line, the live row and the summary."""

    def __init__(self, serving: Serving, settings: Settings) -> None:
        self.serving, self.settings = serving, settings
        self._worker: Worker | None = None
        self._began_s = time.monotonic()
        # (time, requests that had ended then) of the last ten seconds
        self._counts: deque[tuple[float, int]] = deque()
        # the request that runs, and since when it was seen to
        self._current, self._since_s = "", 0.0

    def announce(self, worker: Worker) -> None:
        """Print what is served, and by what."""
        self._worker, self._began_s = worker, time.monotonic()
        _print_line(
            f"worker {worker.name}: serving queue {self.serving.queue} of"
            f" {mask_passwords(self.serving.redis_url)}, running"
            f" {shlex.join(self.settings.command) or 'sleep'}"
            + (f" on device {worker.device}" if worker.device else "")
        )

    def live_row(self) -> Sequence[str]:
        """Return the live row."""
        if self._worker is None:
            return [f"connecting to {mask_passwords(self.serving.redis_url)}"]
        now, tally = time.monotonic(), self._worker.tally
        parts = [f"queue {self.serving.queue}", f"{tally.ended} done"]
        if tally.failed:
            parts.append(f"{tally.failed} failed")
        # requests that ended per second, in the last ten seconds
        self._counts.append((now, tally.ended))
        while now - self._counts[0][0] > 10.0:
            self._counts.popleft()
        oldest_s, count = self._counts[0]
        rate = (tally.ended - count) / (now - oldest_s) if now > oldest_s else 0.0
        parts.append(f"{short_number(rate)}/s")
        running = self._worker.running
        current = running.id if running else ""
        if current != self._current:
            self._current, self._since_s = current, now
        doing = f"running {current} for {now - self._since_s:.0f} s"
        return ["  ".join([*parts, doing if current else "waiting for requests"])]

    def sum_up(self) -> None:
        """Print what was done, if the worker came to serve."""
        if self._worker is None:
            return
        served_s = time.monotonic() - self._began_s
        tally = self._worker.tally
        times = DurationHistogram(tally.run_times, tally.ended, low=0.0, high=math.inf)
        summary = summarize_requests(tally.outcomes, times.summary(), served_s)
        _print_line(f"worker {self._worker.name} ended: {summary}")


def _print_line(line: str) -> None:
    # a worker goes on when nobody reads what it says any more
    with suppress(OSError):
        echo(line, err=True)
