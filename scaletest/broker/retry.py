"""Trying again while Redis is away: jittered exponential back-off, one log line when it begins, one when it ends."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from scaletest.broker.connection import transient
from scaletest.model.checks import cut
from scaletest.model.errors import Unreachable

T = TypeVar("T")
logger = logging.getLogger("scaletest.broker")

FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 2.0


class Retrying:
    """Runs calls until Redis answers. When `sleep` returns true the waiting ends, with the error of the last try."""

    def __init__(
        self,
        who: str,
        *,
        patience_s: float | None = None,
        sleep: Callable[[float], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._who = who
        self._patience_s = patience_s
        self._sleep = sleep or threading.Event().wait
        self._clock = clock
        self._chance = chance

    @staticmethod
    def transient(error: BaseException) -> bool:
        """Whether waiting and trying again is right."""
        return transient(error)

    def run(self, call: Callable[[], T]) -> T:
        """The call's result. Raises what is not transient at once, and Unreachable when patience ends."""
        try:
            return call()
        except Exception as error:
            if not transient(error):
                raise
            return self.after(error, call)

    def after(self, error: Exception, call: Callable[[], T]) -> T:
        """The call's result, where a first try has failed already with the transient `error`."""
        return self._again(call, error)

    def _again(self, call: Callable[[], T], error: Exception) -> T:
        began = self._clock()
        delay = FIRST_DELAY_S
        logger.warning("%s: Redis is away (%s), trying again", self._who, cut(str(error), 200))
        while True:
            if self._patience_s is not None and self._clock() - began >= self._patience_s:
                raise Unreachable(
                    f"Redis was away for {self._clock() - began:.0f} s: {error}",
                    hint="start it again, then run again",
                ) from error
            # full jitter, as many clients come back at once
            if self._sleep(delay * (0.5 + 0.5 * self._chance())):
                raise error
            delay = min(2 * delay, LONGEST_DELAY_S)
            try:
                result = call()
            except Exception as problem:
                if not transient(problem):
                    raise
                error = problem
                continue
            logger.warning("%s: Redis is back after %.1f s", self._who, self._clock() - began)
            return result
