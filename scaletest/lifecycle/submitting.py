"""Exactly N workloads, in bursts: closed (each burst waits for the one before and a delay) or open
(one every T s).

Names follow from the plan, so an interrupted submit goes on: what is on record as accepted or
refused for good is left alone, everything else is sent. What an earlier process sent without noting
the answer is there already, and gets no time of submission: nobody knows it.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model.errors import ScaletestError
from scaletest.model.lifecycle import Submission

# Open load keeps at most so many under way: what is beyond is submitted late, and its stamp says
# when.
MOST_IN_FLIGHT = 256
# So many refusals in a row from the start, and nothing accepted: the rest would be refused as well.
HOPELESS = 20
KEEP_EVERY_S = 2.0
# Writing submitted.json anew may take this part of the time at most.
KEEP_SHARE = 0.05
# Answers that will be the same the next time: the object itself is wrong.
FINAL = (400, 404, 405, 409, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class SubmissionOutcome:
    """What became of one submission. created: False when the object was there already."""

    accepted: bool
    created: bool
    status: int
    reason: str
    tries: int = 1
    throttled: int = 0


class Tool(Protocol):
    """Submits one workload; called by many threads."""

    def submit(self, name: str) -> SubmissionOutcome:
        """What became of it."""


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
        stop: threading.Event | None = None,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._plan, self._store, self._tool, self._clock, self._fresh = (
            plan,
            store,
            tool,
            clock,
            fresh,
        )
        self._stop = stop or threading.Event()
        self._pause = pause or self._stop.wait
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

            in_flight = MOST_IN_FLIGHT if self._plan.interval_s else self._plan.processes
            with ThreadPoolExecutor(min(in_flight, max(1, len(names)))) as pool:
                self._bursts(pool, names, note)
        self._store.keep_submitted()

    def _bursts(
        self, pool: ThreadPoolExecutor, names: Sequence[str], note: Callable[[Submission], None]
    ) -> None:
        began = kept = time.monotonic()
        every = KEEP_EVERY_S
        under_way: set[Future[Submission]] = set()
        for number, burst in enumerate(_batches(names, self._plan.processes)):
            if self._plan.interval_s:
                left = began + number * self._plan.interval_s - time.monotonic()
                if left > 0:
                    self._pause(left)
            if self._stop.is_set():
                break
            under_way |= {pool.submit(self._one, name, note) for name in burst}
            if self._plan.interval_s:
                under_way = self._reap(under_way, wait_all=False)
            else:
                under_way = self._reap(under_way, wait_all=True)
                if self._plan.delay_s:
                    self._pause(self._plan.delay_s)
            if time.monotonic() - kept > every:
                started = time.monotonic()
                self._store.keep_submitted()
                kept = time.monotonic()
                every = max(KEEP_EVERY_S, (kept - started) / KEEP_SHARE)
        self._reap(under_way, wait_all=True)

    def _reap(
        self, under_way: set[Future[Submission]], *, wait_all: bool
    ) -> set[Future[Submission]]:
        """Take in answers; an exception ends the submitting. Returns those under way."""
        if not wait_all and len(under_way) < MOST_IN_FLIGHT:
            done = {one for one in under_way if one.done()}
        else:
            done, _ = (
                wait(under_way, return_when=FIRST_COMPLETED) if not wait_all else wait(under_way)
            )
        last = ""
        for one in done:
            row = one.result()
            last = last if row.accepted else f"{row.status} {row.reason}"
        if last and not self.done[True] and self.done[False] >= min(HOPELESS, self._plan.count):
            raise AllRefused(f"none of {self.done[False]} workloads was accepted: {last}")
        return under_way - done

    def _one(self, name: str, note: Callable[[Submission], None]) -> Submission:
        plan = self._plan
        submitted_s = self._clock()
        answer = self._tool.submit(name)
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


def _batches(names: Sequence[str], size: int) -> Iterator[list[str]]:
    """Whole bursts, and what is left over as the last one."""
    rest = iter(names)
    while batch := list(itertools.islice(rest, size)):
        yield batch
