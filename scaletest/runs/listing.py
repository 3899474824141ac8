"""Lists of stored runs: which ones are wanted, in which order, and an index that reads only what
has changed.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from scaletest.model.verdict import VerdictKind
from scaletest.runs.folder import FILES, RunFolder
from scaletest.runs.places import opened
from scaletest.runs.registry import ListedRun, listed

# The worst stands last, where a terminal leaves the eye.
VERDICTS = ("none", *map(str, (VerdictKind.RUNNING, VerdictKind.PASS)), "INVALID", "FAIL")
SORTS: dict[str, Callable[[ListedRun], str | float]] = {
    "began": lambda run: run.began or "",
    "name": lambda run: run.name or run.run,
    "verdict": lambda run: VERDICTS.index(run.verdict) if run.verdict in VERDICTS else -1,
    "elapsed": lambda run: -1.0 if run.elapsed_s is None else run.elapsed_s,
}


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are wanted; what is empty wants all.

    verdicts: any of them. name: a part of a name, or a pattern of a whole one.
    """

    run_type: str = ""
    verdicts: tuple[str, ...] = ()
    name: str = ""


def chosen(runs: Iterable[ListedRun], wanted: RunFilter, order: str) -> list[ListedRun]:
    """The wanted runs, sorted by one of SORTS; the newest, the worst or the longest stands last."""
    # fnmatch itself would keep 32,768 patterns, and anybody may ask a page for another one
    fits = re.compile(translate(wanted.name)).match
    shown = [
        run
        for run in runs
        if wanted.run_type in ("", run.kind)
        and (not wanted.verdicts or (run.verdict or "none") in wanted.verdicts)
        and any(wanted.name in name or fits(name) for name in (run.run, run.name))
    ]
    return sorted(shown, key=SORTS[order])


Signature = tuple[tuple[int, int, int], ...]
NO_FILE = (0, 0, 0)


def signature(path: Path, names: Sequence[str]) -> Signature:
    """What changes when one of these files of a folder does: modification time, size and number."""
    return tuple(_stamp(f"{path}/{name}") for name in names)


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of them: a Path costs more than the call
    except OSError:
        return NO_FILE
    return status.st_mtime_ns, status.st_size, status.st_ino


@dataclass(frozen=True, slots=True)
class _Known:
    folder: RunFolder
    signature: Signature
    run: ListedRun


class RunIndex:
    """The runs below `root`, as they were read last.

    Every look compares the stamps of their files, and reads what has changed, the newest first. It
    keeps nothing on disk. Any thread may look.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._known: dict[str, _Known] = {}
        # what lies there and is no run, as it was then
        self._strangers: dict[str, tuple[int, int, int]] = {}
        # of the last look: its number, and what it found
        self._number, self._found = 0, (list[ListedRun](), 0)
        self._lock = threading.Lock()

    def look(self, patience_s: float) -> tuple[list[ListedRun], int]:
        """All runs, the oldest first, and how many are still to be read: reading ends after that
        time.
        """
        # all who wait while somebody looks share the next look, which begins after they came
        needed = self._number + 1
        with self._lock:
            if self._number < needed:
                self._number += 1
                self._found = self._look(patience_s)
            return self._found

    def _look(self, patience_s: float) -> tuple[list[ListedRun], int]:
        self._known, unread = self._compared()
        until = self._clock() + patience_s
        while unread:
            self._read(unread.pop())
            if self._clock() >= until:
                break
        runs = map(_now, self._known.values())
        return sorted(runs, key=lambda run: (run.began or "", run.run)), len(unread)

    def fill(self) -> None:
        """Read all of them, a few at a time, so that nobody who looks meanwhile waits for long."""
        while self.look(FILL_S)[1]:
            time.sleep(REST_S)

    def _compared(self) -> tuple[dict[str, _Known], list[str]]:
        """The runs that have not changed, by path; and the paths of the others, the newest last."""
        unchanged: dict[str, _Known] = {}
        unread = []
        for path in _folders(self._root):
            known = self._known.get(path)
            if known and known.signature == signature(known.folder.path, FILES):
                unchanged[path] = known
            elif self._strangers.get(path) != _stamp(path):
                unread.append(path)
        return unchanged, sorted(unread, key=os.path.basename)

    def _read(self, path: str) -> None:
        """Take in what lies there, a run or not."""
        # before it is read: what changes meanwhile is read again
        stamp, folder = _stamp(path), opened(Path(path))
        if folder is None:
            self._strangers[path] = stamp
        else:
            before = signature(folder.path, FILES)
            self._known[path] = _Known(folder, before, listed(folder))


# How long the index reads before others may look, and how long it leaves them the lock, which it
# would take again at once.
FILL_S, REST_S = 0.05, 0.01


def _folders(root: Path) -> list[str]:
    """The paths of what may be runs; none where the folder cannot be read."""
    try:
        with os.scandir(root) as entries:
            return [entry.path for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []


def _now(known: _Known) -> ListedRun:
    """The run with whether somebody measures it now, which its files do not tell."""
    return known.run if known.folder.in_use == known.run.in_use else listed(known.folder)
