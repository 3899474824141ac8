"""An index of the runs of a folder, which reads only what has changed."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scaletest.runs.folder import FILES, RunFolder
from scaletest.runs.listing import ListedRun, read_listed_run
from scaletest.runs.places import open_run

# Of a file: its modification time, size and number; zeros where there is none.
Stamp = tuple[int, int, int]
Signature = tuple[Stamp, ...]
# The index reads so long before others may look, and leaves them the lock so long: it would take
# it again at once.
FILL_S, REST_S = 0.05, 0.01


def folder_signature(path: Path, names: Sequence[str]) -> Signature:
    """Return the stamps of these files of a folder, which change when a file does."""
    return tuple(_stamp_of(f"{path}/{name}") for name in names)


def _stamp_of(path: str) -> Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of them: a Path costs more than the call
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


@dataclass(frozen=True, slots=True)
class _IndexedRun:
    """A run as it was read last."""

    folder: RunFolder
    signature: Signature  # of its files, before they were read
    run: ListedRun


class RunIndex:
    """The runs below `root`, as they were read last.

    Every look compares the stamps of their files, and reads what has changed, the newest first. It
    keeps nothing on disk. Any thread may look.
    """

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._root, self._clock = root, clock
        self._indexed: dict[str, _IndexedRun] = {}  # by path
        # what lies there and is no run, by path, with its stamp
        self._strangers: dict[str, Stamp] = {}
        # the number of the last look, and what it gave
        self._looks, self._listing = 0, (list[ListedRun](), 0)
        self._lock = threading.Lock()

    def look(self, patience_s: float) -> tuple[list[ListedRun], int]:
        """Return all runs, the oldest first, and how many are still to be read after that time."""
        # all who wait while somebody looks share the next look, which begins after they came
        needed = self._looks + 1
        with self._lock:
            if self._looks < needed:
                self._looks += 1
                self._listing = self._read_changes(patience_s)
            return self._listing

    def fill(self) -> None:
        """Read all of them, a few at a time, so that nobody who looks meanwhile waits for long."""
        while self.look(FILL_S)[1]:
            time.sleep(REST_S)

    def _read_changes(self, patience_s: float) -> tuple[list[ListedRun], int]:
        """Read what has changed, the newest first, and list all runs; see `look`."""
        try:
            with os.scandir(self._root) as entries:
                paths = [entry.path for entry in entries if not entry.name.startswith(".")]
        except OSError:  # the folder cannot be read
            paths = []
        # find what has changed
        unchanged: dict[str, _IndexedRun] = {}
        unread = []
        for path in paths:
            indexed = self._indexed.get(path)
            if indexed and indexed.signature == folder_signature(indexed.folder.path, FILES):
                unchanged[path] = indexed
            elif self._strangers.get(path) != _stamp_of(path):
                unread.append(path)
        self._indexed = unchanged
        # read it as long as patience lasts, but one at least
        unread.sort(key=os.path.basename)
        deadline = self._clock() + patience_s
        while unread:
            path = unread.pop()
            # stamps are taken before the files are read: what changes meanwhile is read again
            stamp, folder = _stamp_of(path), open_run(Path(path))
            if folder is None:
                self._strangers[path] = stamp
            else:
                signature = folder_signature(folder.path, FILES)
                self._indexed[path] = _IndexedRun(folder, signature, read_listed_run(folder))
            if self._clock() >= deadline:
                break
        runs = []
        for indexed in self._indexed.values():
            # whether somebody measures it now is not told by its files
            is_current = indexed.folder.in_use == indexed.run.in_use
            runs.append(indexed.run if is_current else read_listed_run(indexed.folder))
        return sorted(runs, key=lambda run: (run.began or "", run.run)), len(unread)
