"""Progress of a lifecycle run on standard error: a line that changes, or one every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from scaletest.analysis.lifecycle.books import Fate, LifecycleProgress
from scaletest.analysis.lifecycle.judge import ENDLESS
from scaletest.render.numbers import plural

PLAIN_EVERY_S, LIVE_EVERY_S = 10.0, 0.5
# When nothing changes for so long and all that is pending runs, it is said once what that may mean.
ENDLESS_S = 120.0


class ProgressPrinter:
    """Prints the progress of a run. clock: seconds. hinted: whether pods may have no end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._console = Console(file=sys.stderr, highlight=False)
        self._live = (
            self._console.status("starting", spinner="dots") if self._console.is_terminal else None
        )
        if self._live:
            self._live.start()
        self._told = self._changed = clock()
        self._last: LifecycleProgress | None = None
        self.hinted = False
        self._every = LIVE_EVERY_S if self._live else PLAIN_EVERY_S

    def tell(self, far: LifecycleProgress) -> None:
        """Take in where the run is; it is shown when it is time."""
        if far != self._last:
            self._last, self._changed = far, self._clock()
        if self._clock() - self._told < self._every:
            return
        self._told = self._clock()
        line = Text(words(far))
        if self._live:
            self._live.update(line)
        else:
            self._console.print(line, soft_wrap=True)
        idle_s = self._told - self._changed
        if (
            idle_s >= ENDLESS_S
            and not self.hinted
            and 0 < far.running == far.fates.get(Fate.PENDING)
        ):
            self.hinted = True
            said = (
                f"for {idle_s:.0f} s nothing changed, and the pods of all {far.running} pending"
                " workloads run: "
            )
            self._console.print(
                Text(f"{said}if they do not end by themselves, {ENDLESS}"), soft_wrap=True
            )

    def close(self) -> None:
        """Take the live line away."""
        if self._live:
            self._live.stop()


def words(far: LifecycleProgress) -> str:
    """The line."""
    planned = f" of {far.planned}" if far.planned else ""
    parts = [f"{far.submitted}{planned} submitted"]
    parts += [f"{far.fates[fate]} {fate}" for fate in Fate if far.fates.get(fate)]
    if far.rejected:
        parts.append(f"{far.rejected} rejected")
    return ", ".join([*parts, f"{plural(far.pods, 'pod')} seen"])
