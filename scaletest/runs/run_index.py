"""An index of the runs of a folder that reads only what has changed."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scaletest.runs.folder import FILES, RunFolder
from scaletest.runs.listing import ListedRun, read_listed_run
from scaletest.runs.places import open_run

Signature = tuple[tuple[int, int, int], ...]
# How long the index reads before others may look, and how long it leaves them the lock, which it
# would take again at once.
FILL_S, REST_S = 0.05, 0.01


def folder_signature(path: Path, names: Sequence[str]) -> Signature:
    """Return the modification times, sizes and numbers of these files of a folder."""
    return tuple(_stamp(f"{path}/{name}") for name in names)


def _stamp(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of them: a Path costs more than the call
    except OSError:
        return 0, 0, 0  # there is no such file
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
        """Return all runs, the oldest first, and how many are still to be read after that time."""
        # all who wait while somebody looks share the next look, which begins after they came
        needed = self._number + 1
        with self._lock:
            if self._number < needed:
                self._number += 1
                self._found = self._look(patience_s)
            return self._found

    def fill(self) -> None:
        """Read all of them, a few at a time, so that nobody who looks meanwhile waits for long."""
        while self.look(FILL_S)[1]:
            time.sleep(REST_S)

    def _look(self, patience_s: float) -> tuple[list[ListedRun], int]:
        try:
            with os.scandir(self._root) as entries:
                paths = [entry.path for entry in entries if not entry.name.startswith(".")]
        except OSError:  # the folder cannot be read
            paths = []
        unchanged: dict[str, _Known] = {}
        unread = []
        for path in paths:
            known = self._known.get(path)
            if known and known.signature == folder_signature(known.folder.path, FILES):
                unchanged[path] = known
            elif self._strangers.get(path) != _stamp(path):
                unread.append(path)
        self._known = unchanged
        # the newest is read first
        unread.sort(key=os.path.basename)
        until = self._clock() + patience_s
        while unread:
            path = unread.pop()
            # before it is read: what changes meanwhile is read again
            stamp, folder = _stamp(path), open_run(Path(path))
            if folder is None:
                self._strangers[path] = stamp
            else:
                before = folder_signature(folder.path, FILES)
                self._known[path] = _Known(folder, before, read_listed_run(folder))
            if self._clock() >= until:
                break
        runs = []
        for known in self._known.values():
            # whether somebody measures it now is not told by its files
            is_current = known.folder.in_use == known.run.in_use
            runs.append(known.run if is_current else read_listed_run(known.folder))
        return sorted(runs, key=lambda run: (run.began or "", run.run)), len(unread)
