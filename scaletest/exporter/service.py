"""Run the exporter: the HTTP server, and a thread that reaps dead workers, reads and logs."""

import gc
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from scaletest.exporter.app import make_app
from scaletest.exporter.view import ExporterView, QueueView, ViewReader
from scaletest.model.checks import cut_text
from scaletest.model.texts import short_number
from scaletest.model.time_slots import SLOT_S, window_until
from scaletest.pages.security import HEADERS, check_hosts
from scaletest.pages.server import Server, bind_socket
from scaletest.pages.turns import THREADS
from scaletest.processes.periodic import Periodic
from scaletest.render import numbers

logger = logging.getLogger("scaletest.exporter")

# Lines of the log are at most so late.
LONGEST_PAUSE_S = 5.0


class LogLines:
    """Logs a line for every queue when an interval is over, for people without Prometheus.

    Call it with every view. Redis keeps the longest durations in ten-second slots, so intervals are
    whole slots of its clock, and each slot is in one line: a slow worker is named once.
    """

    def __init__(self, interval_s: float) -> None:
        """Log nothing before the second view. interval_s: a multiple of ten seconds."""
        self._interval_s = interval_s
        # on Redis' clock: when the next lines are due, None before the first view, and when the
        # last ones were logged
        self._due_s: float | None = None
        self._last_s = 0.0
        self._last_counts: dict[str, dict[str, int]] = {}  # at the last lines, by queue

    def __call__(self, view: ExporterView) -> None:
        """Log the lines if they are due. Counts begin with the first view."""
        if self._due_s is not None:
            # another server after a failover may be far behind, and lines continue there
            if self._due_s - self._interval_s <= view.at_s < self._due_s:
                return
            period_s = max(0.0, view.at_s - self._last_s)
            for queue in view.queues:
                # what was counted since the last line
                last_counts = self._last_counts.get(queue.queue.name, {})
                counts = []
                for name, count in _counts(queue).items():
                    grown = max(0, count - last_counts.get(name, 0))
                    counts.append(f"{grown} {name.replace('_', ' ')}")
                # the longest durations since then; the present slot is for the next line
                slots = [slot for slot in queue.queue.slots if slot.number < view.at_s // SLOT_S]
                window = window_until(slots, view.at_s, period_s)
                pod = cut_text(window.pod, limit=100) or "unknown"
                node = cut_text(window.node, limit=100) or "unknown"
                slow_worker = f" (pod {pod} on {node})" if window.pod or window.node else ""
                logger.info(
                    "queue %s: %s in %s; %s waiting, %s running, workers %s, wanted %s; longest:"
                    " wait %s s, run %s s%s, total %s s",
                    queue.queue.name,
                    ", ".join(counts),
                    numbers.format_seconds(period_s),
                    queue.queue.waiting,
                    queue.queue.running,
                    len(queue.queue.workers),
                    queue.desired,
                    short_number(window.max_wait_s),
                    short_number(window.max_run_s),
                    slow_worker,
                    short_number(window.max_total_s),
                )
        self._last_s = view.at_s
        self._due_s = view.at_s + self._interval_s - view.at_s % self._interval_s
        self._last_counts = {queue.queue.name: _counts(queue) for queue in view.queues}


def _counts(view: QueueView) -> dict[str, int]:
    """Return the counters in a line of the log."""
    names = ("succeeded", "failed", "timed_out", "rejected", "requeued")
    return {**{name: view.queue.counter(name) for name in names}, "abandoned": view.queue.abandoned}


class BackgroundThread:
    """Reaps dead workers and reads all queues, every half interval, and every 5 s at least.

    So the needed workers are remembered without a scrape. It continues after every error, and logs
    an error once until all is well again. then: called with every view.
    """

    def __init__(
        self, reader: ViewReader, interval_s: float, then: list[Callable[[ExporterView], None]]
    ) -> None:
        self._reader = reader
        self._actions = then
        self._last_error = ""
        self.thread = Periodic("exporter", self._turn, min(interval_s / 2, LONGEST_PAUSE_S))

    def _turn(self) -> None:
        errors: list[str] = []
        with _noting(errors):
            self._reader.reap()
        with _noting(errors):
            view = self._reader.read()
            for name, reason in view.unreadable:
                errors.append(f"queue {name} cannot be read and is left out: {reason}")
            for act in self._actions:
                with _noting(errors):
                    act(view)
        error = "; ".join(dict.fromkeys(errors))
        if error and not self._last_error:
            logger.warning("%s", error)
        elif self._last_error and not error:
            logger.warning("the exporter works again")
        self._last_error = error


@contextmanager
def _noting(errors: list[str]) -> Iterator[None]:
    """Note an error and continue, so that the other actions still run."""
    try:
        yield
    except Exception as error:
        errors.append(str(error))


def serve_exporter(
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
    allowed_hosts = check_hosts(hosts)
    lines = [LogLines(log_interval_s)] if log_interval_s else []
    background = BackgroundThread(reader, interval_s, [*lines, *then])
    app = make_app(
        reader.read,
        lambda: background.thread.alive,
        hosts=allowed_hosts,
        intel_names=intel_names,
        log_interval_s=log_interval_s,
    )
    server = Server(app, bind_socket(listen), threads=THREADS, headers=HEADERS)
    # A scrape makes tens of thousands of objects, and so starts the garbage collector, which need
    # not look through what was loaded by now.
    gc.freeze()
    background.thread.start()
    try:
        ready(server.url)
        server.wait()
    finally:
        server.close()
        background.thread.close()
