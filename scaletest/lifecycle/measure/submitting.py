"""Submit exactly N workloads, in bursts of which each waits for the one before and a delay.

Names follow from the plan, so an interrupted submit goes on: what is on record as accepted or
refused for good is left alone, everything else is sent.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import IO

from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure.submit_tools import Tool
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Submission
from scaletest.model.errors import ScaletestError

# After so many refusals from the start the rest would be refused as well.
HOPELESS = 20
KEEP_EVERY_S = 2.0
# Writing submitted.json anew may take this part of the time at most.
KEEP_SHARE = 0.05
# Statuses that will be the same the next time: the object itself is wrong.
FINAL = (400, 404, 405, 409, 413, 415, 422)


class AllRefused(ScaletestError):
    """Nothing that was submitted was accepted."""

    exit_code = 3


class Submitter:
    """Submits the workloads of a plan. clock: epoch seconds. fresh: none was submitted before."""

    def __init__(
        self,
        plan: LifecyclePlan,
        store: LifecycleFolder,
        tool: Tool,
        clock: Callable[[], float],
        *,
        fresh: bool = False,
        stopping: Callable[[], bool] = bool,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._plan, self._store, self._tool, self._clock = plan, store, tool, clock
        self._fresh, self._stopping, self._pause = fresh, stopping, pause
        self._lock = threading.Lock()
        self.done: Counter[bool] = Counter()  # how many were accepted, and how many refused

    def run(self) -> None:
        """Submit what is missing. Raises AllRefused when nothing at all is accepted."""
        settled = {
            row.name: row.accepted
            for row in self._store.submissions()
            if row.accepted or row.status in FINAL
        }
        self.done.update(settled.values())
        names = [name for name in self._plan.names() if name not in settled]
        with (
            self._store.open_submissions() as file,
            ThreadPoolExecutor(min(self._plan.processes, max(1, len(names)))) as pool,
        ):
            self._submit_bursts(pool, names, file)
        self._store.keep_submitted()

    def _submit_bursts(self, pool: ThreadPoolExecutor, names: Sequence[str], file: IO[str]) -> None:
        written_s, every_s = time.monotonic(), KEEP_EVERY_S
        size = self._plan.processes
        for first in range(0, len(names), size):
            if self._stopping():
                return
            rows = list(pool.map(self._submit, names[first : first + size], repeat(file)))
            refusals = [f"{row.status} {row.reason}" for row in rows if not row.accepted]
            fewest = min(HOPELESS, self._plan.count)
            if refusals and not self.done[True] and self.done[False] >= fewest:
                raise AllRefused(
                    f"none of {self.done[False]} workloads was accepted: {refusals[-1]}"
                )
            if self._plan.delay_s:
                self._pause(self._plan.delay_s)
            # write submitted.json for those who sample meanwhile, less often the longer it takes
            if time.monotonic() - written_s > every_s:
                writing_s = time.monotonic()
                self._store.keep_submitted()
                written_s = time.monotonic()
                every_s = max(KEEP_EVERY_S, (written_s - writing_s) / KEEP_SHARE)

    def _submit(self, name: str, file: IO[str]) -> Submission:
        """Submit a workload, and note the answer as soon as it comes."""
        submitted_s = self._clock()
        answer = self._tool(name)
        # what was there already was sent by an earlier process, which did not note when; unless we
        # sent it ourselves, and the answer was lost
        is_known = answer.created or not answer.accepted or (self._fresh and answer.tries > 1)
        row = Submission(
            name=name,
            namespace=self._plan.namespace,
            project=self._plan.project,
            accepted=answer.accepted,
            submitted_s=submitted_s if is_known else None,
            accepted_s=self._clock() if is_known else None,
            status=answer.status if not answer.accepted else 0,
            reason=answer.reason,
            tries=answer.tries,
            throttled=answer.throttled,
        )
        with self._lock:
            file.write(row.to_json() + "\n")
            self.done[row.accepted] += 1
        return row
