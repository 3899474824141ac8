"""Submit exactly N workloads, in bursts.

Each burst waits for the one before and a delay. Names follow from the plan, so an interrupted
submit goes on: what is on record as accepted or refused for good is left alone, everything else is
sent. What an earlier process sent without noting the answer is there already, and gets no time of
submission: nobody knows it.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure.submit_tools import Tool
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Submission
from scaletest.model.errors import ScaletestError

# So many refusals in a row from the start, and nothing accepted: the rest would be refused as well.
HOPELESS = 20
KEEP_EVERY_S = 2.0
# Writing submitted.json anew may take this part of the time at most.
KEEP_SHARE = 0.05
# Answers that will be the same the next time: the object itself is wrong.
FINAL = (400, 404, 405, 409, 413, 415, 422)


class Submitter:
    """Carries out a plan. clock: epoch seconds. fresh: nothing of it was submitted before."""

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
        self._plan, self._store, self._tool, self._clock, self._fresh = (
            plan,
            store,
            tool,
            clock,
            fresh,
        )
        self._stopping, self._pause = stopping, pause
        self._lock = threading.Lock()
        self.done: Counter[bool] = Counter()

    def run(self) -> None:
        """Submit what is missing. Raises Refused when nothing at all is accepted."""
        before = {row.name: row for row in self._store.submissions()}
        names = [name for name in self._plan.names() if not _settled(before.get(name))]
        for row in before.values():
            if _settled(row):
                self.done[row.accepted] += 1
        with self._store.submitting() as file:

            def note(row: Submission) -> None:
                with self._lock:
                    file.write(row.to_json() + "\n")
                    self.done[row.accepted] += 1

            with ThreadPoolExecutor(min(self._plan.processes, max(1, len(names)))) as pool:
                self._submit_bursts(pool, names, note)
        self._store.keep_submitted()

    def _submit_bursts(
        self, pool: ThreadPoolExecutor, names: Sequence[str], note: Callable[[Submission], None]
    ) -> None:
        written = time.monotonic()
        every = KEEP_EVERY_S
        size = self._plan.processes
        for first in range(0, len(names), size):
            if self._stopping():
                break
            burst = [pool.submit(self._submit, name, note) for name in names[first : first + size]]
            rows = [answer.result() for answer in burst]
            refused = [f"{row.status} {row.reason}" for row in rows if not row.accepted]
            fewest = min(HOPELESS, self._plan.count)
            if refused and not self.done[True] and self.done[False] >= fewest:
                raise AllRefused(
                    f"none of {self.done[False]} workloads was accepted: {refused[-1]}"
                )
            if self._plan.delay_s:
                self._pause(self._plan.delay_s)
            if time.monotonic() - written > every:
                started = time.monotonic()
                self._store.keep_submitted()
                written = time.monotonic()
                every = max(KEEP_EVERY_S, (written - started) / KEEP_SHARE)

    def _submit(self, name: str, note: Callable[[Submission], None]) -> Submission:
        plan = self._plan
        submitted_s = self._clock()
        answer = self._tool(name)
        # what was there already was sent before, at a time that is not on record; unless an answer
        # to us was lost
        known = answer.created or not answer.accepted or (self._fresh and answer.tries > 1)
        row = Submission(
            name,
            plan.namespace,
            plan.project,
            answer.accepted,
            submitted_s if known else None,
            self._clock() if known else None,
            answer.status if not answer.accepted else 0,
            answer.reason,
            answer.tries,
            answer.throttled,
        )
        note(row)
        return row


class AllRefused(ScaletestError):
    """Nothing that was submitted was accepted."""

    exit_code = 3


def _settled(row: Submission | None) -> bool:
    return row is not None and (row.accepted or row.status in FINAL)
