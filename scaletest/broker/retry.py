"""Retry calls while Redis is away: jittered exponential back-off; its begin and end are logged."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from scaletest.broker import memory
from scaletest.broker.connection import transient
from scaletest.model.checks import cut
from scaletest.model.errors import Unreachable

T = TypeVar("T")
logger = logging.getLogger("scaletest.broker")

FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 2.0


class Retrying:
    """Runs calls until Redis answers; ends with the last error when `sleep` returns true."""

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
        """Whether to wait and try again."""
        return transient(error)

    def run(self, call: Callable[[], T]) -> T:
        """The call's result. Raises at once unless transient; Unreachable when patience ends."""
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
        logger.warning("%s: %s, trying again", self._who, _trouble(error))
        while True:
            if self._patience_s is not None and self._clock() - began >= self._patience_s:
                raise _given_up(error, self._clock() - began) from error
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


def _trouble(error: Exception) -> str:
    """Why the call failed, for the log."""
    return memory.FULL if memory.is_full(error) else f"Redis is away ({cut(str(error), 200)})"


def _given_up(error: Exception, waited_s: float) -> Unreachable:
    if memory.is_full(error):
        return Unreachable(f"{memory.FULL}; we waited {waited_s:.0f} s", hint=memory.REMEDY)
    return Unreachable(
        f"Redis was away for {waited_s:.0f} s: {error}", hint="start it again, then run again"
    )
