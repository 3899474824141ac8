"""The pages of runs that are open in browsers: a command ends when they show how its run ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition

# An open page asks every two seconds, and at once after the answer that tells of the end. One that
# did not for so long is closed, or hidden.
SILENT_S = 6.0
# A page that was just loaded has not asked again yet, and no script may be there to do so.
LOADED_S = 3.0
# So long pages are served after the run of their command at most.
LONGEST_S = 20.0
LONGEST_NAME = 40


class OpenPages:
    """When which page was answered last. Each open page has a name of its own; "" is one that is
    just loaded.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._answered = Condition()
        self._silent_s: dict[str, float] = {}
        self._ends: dict[str, int] = {}

    def asked(self, page: str) -> None:
        """A page waits for its answer, which may take long on a busy machine."""
        if page:
            with self._answered:
                self._ends.setdefault(page[:LONGEST_NAME], 0)
                self._silent_s[page[:LONGEST_NAME]] = self._clock() + LONGEST_S

    def answered(self, page: str, *, shows_end: bool) -> None:
        """A page is answered. One that asks again after it was told of the end shows that."""
        if shows_end and not page:
            return
        page = page[:LONGEST_NAME]
        with self._answered:
            now_s = self._clock()
            for other in [name for name, until_s in self._silent_s.items() if until_s < now_s]:
                del self._silent_s[other], self._ends[other]
            self._ends[page] = self._ends.get(page, 0) + 1 if shows_end else 0
            self._silent_s[page] = now_s + (SILENT_S if page else LOADED_S)
            self._answered.notify_all()

    def wait(self) -> None:
        """Wait until all open pages show the end of their run, or are silent, LONGEST_S at most."""
        until_s = self._clock() + LONGEST_S
        with self._answered:
            while (left_s := min(until_s, self._unaware_until_s()) - self._clock()) > 0:
                self._answered.wait(left_s)

    def _unaware_until_s(self) -> float:
        """When the last page that does not show the end is silent."""
        unaware = (until_s for page, until_s in self._silent_s.items() if self._ends[page] < 2)
        return max(unaware, default=0.0)
