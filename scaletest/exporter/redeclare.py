"""Queues that are declared again when Redis forgot them. While a queue has no worker nobody else would, and nothing
could be submitted that makes an autoscaler start one. A queue that is there is left as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from scaletest.broker import Queues
from scaletest.broker.connection import explained, prepare
from scaletest.exporter.reader import SOCKET_TIMEOUT_S
from scaletest.exporter.view import ExporterView
from scaletest.model import checks

logger = logging.getLogger("scaletest.exporter")


class Redeclare:
    """For every view. rows: name, maximum (0: unlimited) and note; a wrong one is InvalidValue at once."""

    def __init__(self, url: str, queues: Sequence[tuple[str, int, str]]) -> None:
        for name, maximum, _ in queues:
            checks.queue_name(name)
            checks.count(maximum, "maximum")
        self._url, self._rows = url, queues
        self._queues = Queues(prepare(url, socket_timeout_s=SOCKET_TIMEOUT_S))

    def __call__(self, view: ExporterView) -> None:
        """Declare what is missing. Raises Unreachable."""
        known = {queue.queue.name for queue in view.queues} | {name for name, _ in view.unreadable}
        for name, maximum, note in self._rows:
            if name not in known:
                with explained(self._url):
                    self._queues.add(name, maximum, note)
                logger.warning("queue %s was not declared: done", name)
