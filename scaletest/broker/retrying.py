"""Retry calls while Redis is away.

Nothing in this package retries by itself: the caller decides (a command line gives up at once, a
worker never does). Pauses grow exponentially, and the begin and the end of an outage are logged.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from scaletest.broker.redis_errors import FULL, REMEDY, is_full, is_transient
from scaletest.model.checks import cut_text
from scaletest.model.errors import Unreachable

T = TypeVar("T")

logger = logging.getLogger("scaletest.broker")

# Seconds between two tries.
FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 2.0


def longer_delay(delay_s: float) -> float:
    """Return the pause before the next try, after a pause of `delay_s`; the first after 0."""
    return min(LONGEST_DELAY_S, max(FIRST_DELAY_S, 2 * delay_s))


class Retrying:
    """Runs calls until Redis answers, or until it is time to give up."""

    def __init__(
        self,
        who: str,
        *,
        patience_s: float | None = None,
        sleep: Callable[[float], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to retry. who: as the log calls the caller; patience_s: None for ever.

        sleep: waits so many seconds; returns whether to give up.
        """
        self._who = who
        self._patience_s = patience_s
        self._sleep = sleep or threading.Event().wait
        self._clock = clock

    def run(self, call: Callable[[], T]) -> T:
        """Return the call's result.

        An error that does not pass is raised at once, and Unreachable when patience ends.
        """
        try:
            return call()
        except Exception as error:
            if not is_transient(error):
                raise
            return self.run_after(error, call)

    def run_after(self, error: Exception, call: Callable[[], T]) -> T:
        """Return the call's result, after a first try that failed with an `error` that passes."""
        began = self._clock()
        delay_s = longer_delay(0.0)
        logger.warning(
            "%s: %s, trying again",
            self._who,
            FULL if is_full(error) else f"Redis is away ({cut_text(str(error), 200)})",
        )
        while True:
            waited_s = self._clock() - began
            if self._patience_s is not None and waited_s >= self._patience_s:
                cause = FULL if is_full(error) else f"Redis is away ({error})"
                raise Unreachable(
                    f"{cause}; we waited {waited_s:.0f} s",
                    hint=REMEDY if is_full(error) else "start it again, then run again",
                ) from error
            # full jitter, as many clients come back at once
            if self._sleep(delay_s * (0.5 + 0.5 * random.random())):
                raise error
            delay_s = longer_delay(delay_s)
            try:
                result = call()
            except Exception as next_error:
                if not is_transient(next_error):
                    raise
                error = next_error
            else:
                logger.warning("%s: Redis is back after %.1f s", self._who, self._clock() - began)
                return result
