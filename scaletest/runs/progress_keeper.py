"""Keeps the progress of a run where others find it: in its folder, and in its Redis.

A thread writes, at most once a second, so that whoever measures never waits. What cannot be written
is left out: progress is no part of a run, and nothing of a run rests on it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from scaletest.broker.connection import prepare
from scaletest.broker.run_progress import TIMEOUT_S, RunPublisher
from scaletest.model.errors import ScaletestError
from scaletest.model.run_progress import RunProgress
from scaletest.render import encoding
from scaletest.runs import registry
from scaletest.runs.folder import PROGRESS, RunFolder

logger = logging.getLogger("scaletest.runs")

EVERY_S = 1.0
# Redis is told at least this often, so that it does not forget the run.
RENEW_S = 5.0
# A report is made again when so many times the seconds that it took are over.
REPORT_PAUSE = 20.0


class ProgressKeeper:
    """Keeps the state of one run until it is closed. state: gives it, from any thread."""

    def __init__(
        self,
        folder: RunFolder,
        state: Callable[[], RunProgress],
        redis_url: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._state, self._clock = folder, state, clock
        self._publisher: RunPublisher | None = None
        if redis_url:
            redis = prepare(redis_url, socket_timeout_s=TIMEOUT_S)
            self._publisher = RunPublisher(redis, folder.name)
        self._report, self._next_report_s = "", 0.0
        self._kept: RunProgress | None = None
        self._published_s = 0.0
        self._closed = threading.Event()
        self._keep()
        self._thread = threading.Thread(target=self._work, name="progress", daemon=True)
        self._thread.start()

    def publish_report(self, *, is_final: bool = False) -> None:
        """Make the report so far, for Redis; not where there is none, or too soon after the last.

        is_final: the run is over, whoever still holds it.
        """
        began = self._clock()
        if self._publisher is None or (began < self._next_report_s and not is_final):
            return
        try:
            report = registry.report(self._folder, is_final=is_final)
            self._report = encoding.encode(encoding.outline(report))
        except Exception as error:
            # a fault of reports must not end a run
            logger.debug("no report is published: %s", error)
        self._next_report_s = self._clock() + REPORT_PAUSE * (self._clock() - began)

    def close(self) -> None:
        """Write the last state."""
        self._closed.set()
        self._thread.join()
        self.publish_report(is_final=True)
        self._keep()
        if self._publisher is not None:
            self._publisher.close()

    def _work(self) -> None:
        while not self._closed.wait(EVERY_S):
            self._keep()

    def _keep(self) -> None:
        state = self._state()
        is_new = state != self._kept
        if is_new:
            self._kept = state
            self._write(state)
        if self._publisher and (is_new or self._clock() - self._published_s >= RENEW_S):
            self._published_s = self._clock()
            self._publisher.publish(state.to_json(), self._report)

    def _write(self, state: RunProgress) -> None:
        try:
            self._folder.replace(PROGRESS, [state.to_json()], durable=False)
        except (ScaletestError, OSError) as error:
            logger.debug("the progress of run %s is not written: %s", self._folder.name, error)
