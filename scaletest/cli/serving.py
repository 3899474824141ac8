"""A worker that serves a queue, as its user sees it on standard error.

It says what it serves, draws a live row on a terminal, and sums up at its end.
"""

import os
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress

from scaletest.cli.output import echo, is_verbose, live_rows
from scaletest.model.masking import mask_passwords
from scaletest.model.visibility import visibility_gaps
from scaletest.observe.visibility import read_visibility
from scaletest.render.numbers import format_duration, plural
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
        self.serving = serving
        self.settings = settings
        self._worker: Worker | None = None
        self._began_s = time.monotonic()

    def announce(self, worker: Worker) -> None:
        """Print which queue is served by what, when the worker begins."""
        self._worker = worker
        self._began_s = time.monotonic()
        _print_line(
            f"worker {worker.name}: serving queue {self.serving.queue} of"
            f" {mask_passwords(self.serving.redis_url)}, running"
            f" {shlex.join(self.settings.command) or 'sleep'}"
            + (f" on device {worker.device}" if worker.device else "")
        )

    def live_row(self) -> Sequence[str]:
        """Return the live row: how many requests ended, and what runs now."""
        if self._worker is None:
            return [f"connecting to {mask_passwords(self.serving.redis_url)}"]
        tally = self._worker.tally
        parts = [f"queue {self.serving.queue}", f"{tally.ended} done"]
        if tally.failed:
            parts.append(f"{tally.failed} failed")
        running = self._worker.running
        parts.append(f"running {running.id}" if running else "waiting for requests")
        return ["  ".join(parts)]

    def sum_up(self) -> None:
        """Print what was done, if the worker came to serve."""
        if self._worker is None:
            return
        served_s = time.monotonic() - self._began_s
        tally = self._worker.tally
        counts = [
            f"{count} {outcome.replace('_', ' ')}" for outcome, count in tally.outcomes.items()
        ]
        _print_line(
            f"worker {self._worker.name} ended: {plural(tally.ended, 'request')} in"
            f" {format_duration(served_s)} ({', '.join(counts) or 'none'})"
        )


def _print_line(line: str) -> None:
    # a worker goes on when nobody reads what it says any more
    with suppress(OSError):
        echo(line, err=True)
