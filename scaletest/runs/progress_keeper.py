"""Keeps the progress of a run where others find it: in its folder, and in its Redis.

A thread writes once a second, so that whoever measures never waits. What cannot be written is left
out: progress is no part of a run, and nothing of a run rests on it.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from scaletest.broker.connection import prepare
from scaletest.broker.redis_errors import REDIS_ERRORS
from scaletest.broker.run_progress import publish
from scaletest.model.errors import ScaletestError
from scaletest.model.run_progress import RunProgress
from scaletest.processes.periodic import Periodic
from scaletest.runs.folder import PROGRESS, RunFolder

logger = logging.getLogger("scaletest.runs")

EVERY_S = 1.0
# A Redis that hangs must not hold the end of a run up for long.
TIMEOUT_S = 2.0


class ProgressKeeper:
    """Keeps the state of one run until it is closed. state: gives it, from any thread."""

    def __init__(
        self, folder: RunFolder, state: Callable[[], RunProgress], redis_url: str = ""
    ) -> None:
        self._folder, self._state = folder, state
        self._redis = prepare(redis_url, socket_timeout_s=TIMEOUT_S) if redis_url else None
        self._keep()
        self._thread = Periodic("progress", self._keep, EVERY_S)
        self._thread.start()

    def close(self) -> None:
        """Write the last state."""
        self._thread.close()
        self._keep()
        if self._redis is not None:
            with suppress(*REDIS_ERRORS, OSError):
                self._redis.close()

    def _keep(self) -> None:
        state = self._state()
        try:
            self._folder.replace(PROGRESS, [state.to_json()], durable=False)
        except (ScaletestError, OSError) as error:
            logger.debug("the progress of run %s is not written: %s", state.run, error)
        if self._redis is not None:
            try:
                publish(self._redis, state)
            except (*REDIS_ERRORS, OSError) as error:
                logger.debug("the progress of run %s is not published: %s", state.run, error)
