"""The exporter as a process: the HTTP server, and beside it a thread that reaps, looks and logs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import waitress

from scaletest.exporter.app import READS, make_app
from scaletest.exporter.lines import Lines
from scaletest.exporter.reader import Reader
from scaletest.exporter.view import View
from scaletest.model.errors import InvalidValue, UsageError

logger = logging.getLogger("scaletest.exporter")

# So many more than may wait for Redis at a time that /healthz is answered when Redis hangs and everybody asks.
THREADS = READS + 4


class Background:
    """Every half interval: reap, look (so that the wanted workers are remembered without a scrape), tell.

    then: what else is done with every view. It goes on whatever happens; what is wrong is logged once until it is over.
    """

    def __init__(self, reader: Reader, interval_s: float, then: list[Callable[[View], None]]) -> None:
        self._reader = reader
        self._tick_s = interval_s / 2
        self._then = then
        self._closing = threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._live, name="scaletest-exporter", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def alive(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End, after what is being done."""
        self._closing.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            troubles: list[str] = []
            self._attempt(self._reader.reap, troubles)
            self._attempt(partial(self._look, troubles), troubles)
            self._tell("; ".join(dict.fromkeys(troubles)))
            self._closing.wait(max(0.05, self._tick_s - (time.monotonic() - began)))

    def _look(self, troubles: list[str]) -> None:
        view = self._reader.read()
        troubles += [f"queue {name} cannot be read and is left out: {why}" for name, why in view.unreadable]
        for act in self._then:
            self._attempt(partial(act, view), troubles)

    @staticmethod
    def _attempt(act: Callable[[], None], troubles: list[str]) -> None:
        """Nothing that goes wrong with one of them may keep the others from being done."""
        try:
            act()
        except Exception as error:
            troubles.append(str(error))

    def _tell(self, trouble: str) -> None:
        if trouble and not self._trouble:
            logger.warning("%s", trouble)
        elif self._trouble and not trouble:
            logger.warning("all is well again")
        self._trouble = trouble


def parse_listen(text: str) -> tuple[str, int]:
    """ADDRESS:PORT, also :PORT for every address and [IPv6]:PORT."""
    host, colon, port = text.rpartition(":")
    if (
        not colon
        or not (port.isascii() and port.isdigit())
        or int(port) > 65535
        or (":" in host and not host.startswith("["))
    ):
        raise InvalidValue(f"{text!r} is no address to listen on", hint="give ADDRESS:PORT, as in 0.0.0.0:9998")
    return host.strip("[]") or "0.0.0.0", int(port)


def serve(
    reader: Reader,
    listen: str,
    *,
    interval_s: float,
    intel_names: bool,
    log_interval_s: int,
    then: list[Callable[[View], None]],
    ready: Callable[[str], None],
) -> None:
    """Serve until SystemExit or KeyboardInterrupt is raised in the main thread. ready: called with our URL."""
    # it warns of every request that waits for a thread, and while Redis hangs many do
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    if log_interval_s:
        then = [*then, Lines(log_interval_s)]
    background = Background(reader, interval_s, then)
    app = make_app(reader.read, background.alive, intel_names=intel_names, log_interval_s=log_interval_s)
    host, port = parse_listen(listen)
    try:
        server: Any = waitress.create_server(app, host=host, port=port, threads=THREADS, ident="scaletest")
    except (OSError, ValueError) as error:  # waitress says ValueError for a name that there is not
        raise UsageError(f"cannot listen on {listen}: {error}", hint="choose another --listen ADDRESS:PORT") from error
    name = f"[{host}]" if ":" in host else host
    ready(f"http://{name}:{getattr(server, 'effective_port', port)}")
    background.start()
    try:
        server.run()
    finally:
        server.close()
        background.close()
