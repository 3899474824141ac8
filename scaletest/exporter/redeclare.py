"""Declare queues again when Redis lost them.

While a queue has no workers nobody else declares it, and without it nothing can be submitted that
makes an autoscaler start a worker. Existing queues are not changed.
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
    """Declares missing queues; called with every view.

    queues: name, maximum (0: unlimited) and note of each; raises InvalidValue for a wrong one.
    """

    def __init__(self, url: str, queues: Sequence[tuple[str, int, str]]) -> None:
        for name, maximum, _ in queues:
            checks.queue_name(name)
            checks.count(maximum, "maximum")
        self._url, self._rows = url, queues
        self._queues = Queues(prepare(url, socket_timeout_s=SOCKET_TIMEOUT_S))

    def __call__(self, view: ExporterView) -> None:
        """Declare missing queues. Raises Unreachable."""
        known = {queue.queue.name for queue in view.queues} | {name for name, _ in view.unreadable}
        for name, maximum, note in self._rows:
            if name not in known:
                with explained(self._url):
                    self._queues.add(name, maximum, note)
                logger.warning("queue %s was missing and is declared again", name)
