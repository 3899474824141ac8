"""The exporter's process: the HTTP server, and a thread that reaps dead workers, reads and logs."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from scaletest.exporter.app import HEADERS, READS, make_app
from scaletest.exporter.log_lines import LogLines
from scaletest.exporter.reader import ViewReader
from scaletest.exporter.view import ExporterView
from scaletest.http.hosts import checked_hosts
from scaletest.http.server import Server, bind

logger = logging.getLogger("scaletest.exporter")

# Some more than may wait for Redis at the same time, so that /healthz answers while Redis hangs.
THREADS = READS + 4


class BackgroundThread:
    """Reaps dead workers and reads all queues, every half interval and when log lines are due.

    So the needed workers are remembered without a scrape. It continues after every error, and logs
    an error once until all is well again. then: called with every view.
    """

    def __init__(
        self,
        reader: ViewReader,
        interval_s: float,
        then: list[Callable[[ExporterView], None]],
        lines: LogLines | None,
    ) -> None:
        self._reader = reader
        self._tick_s = interval_s / 2
        self._lines = lines
        # the lines first, because they are due at a time of their own
        self._then: list[Callable[[ExporterView], None]] = [lines, *then] if lines else then
        self._closing = threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._live, name="scaletest-exporter", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread after its current turn."""
        self._closing.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            troubles: list[str] = []
            self._attempt(self._reader.reap, troubles)
            self._attempt(partial(self._look, troubles), troubles)
            self._tell("; ".join(dict.fromkeys(troubles)))
            self._closing.wait(max(0.05, self._rest_s(began)))

    def _rest_s(self, began: float) -> float:
        tick_s = self._tick_s - (time.monotonic() - began)
        return min(tick_s, self._lines.due_in_s()) if self._lines else tick_s

    def _look(self, troubles: list[str]) -> None:
        view = self._reader.read()
        troubles += [
            f"queue {name} cannot be read and is left out: {why}" for name, why in view.unreadable
        ]
        for act in self._then:
            self._attempt(partial(act, view), troubles)

    @staticmethod
    def _attempt(act: Callable[[], None], troubles: list[str]) -> None:
        """Call an action; its error is noted, so that the other actions still run."""
        try:
            act()
        except Exception as error:
            troubles.append(str(error))

    def _tell(self, trouble: str) -> None:
        if trouble and not self._trouble:
            logger.warning("%s", trouble)
        elif self._trouble and not trouble:
            logger.warning("the exporter works again")
        self._trouble = trouble


def serve(
    reader: ViewReader,
    listen: str,
    *,
    interval_s: float,
    intel_names: bool,
    log_interval_s: int,
    then: list[Callable[[ExporterView], None]],
    hosts: Iterable[str],
    ready: Callable[[str], None],
) -> None:
    """Serve until SystemExit or KeyboardInterrupt is raised in the main thread.

    hosts: further host names that are allowed. ready: called with the URL.
    """
    names = checked_hosts(hosts)
    background = BackgroundThread(
        reader, interval_s, then, LogLines(log_interval_s) if log_interval_s else None
    )
    app = make_app(
        reader.read,
        background.alive,
        hosts=names,
        intel_names=intel_names,
        log_interval_s=log_interval_s,
    )
    server = Server(app, bind(listen), threads=THREADS, headers=HEADERS)
    # A scrape makes tens of thousands of objects: what was loaded by now is not looked through for
    # garbage each time.
    gc.freeze()
    background.start()
    try:
        ready(server.url)
        server.wait()
    finally:
        server.close()
        background.close()
