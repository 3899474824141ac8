"""An index of the runs of a folder, which reads only what has changed."""

import os
import threading
from pathlib import Path

from scaletest.runs.folder import FILES, RunFolder
from scaletest.runs.listing import ListedRun, read_listed_run
from scaletest.runs.places import open_run

# Of a file: its modification time, size and number; zeros where there is none.
Stamp = tuple[int, int, int]
Signature = tuple[Stamp, ...]


def stamps_of(folder: RunFolder) -> Signature:
    """Return what changes with any file of a run, and when its measuring begins or ends."""
    stamps = [(int(folder.in_use), 0, 0)]
    for name in FILES:
        try:
            # thousands of them: a Path costs more than the call
            status = os.stat(f"{folder.path}/{name}")  # noqa: PTH116
        except OSError:
            stamps.append((0, 0, 0))
        else:
            stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
    return tuple(stamps)


class RunIndex:
    """The runs below `root`, as they were read last. It keeps nothing on disk.

    Any thread may ask.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # by the name of the folder: its stamps before it was read, and what was read
        self._indexed: dict[str, tuple[Signature, ListedRun]] = {}
        self._lock = threading.Lock()

    def runs(self) -> list[ListedRun]:
        """Return all runs, the oldest first, after reading what has changed."""
        with self._lock:
            indexed = {}
            # hidden folders are not complete yet
            for folder in filter(None, map(open_run, self._root.glob("[!.]*"))):
                stamps = stamps_of(folder)
                known = self._indexed.get(folder.name)
                if known is None or known[0] != stamps:
                    known = stamps, read_listed_run(folder)
                indexed[folder.name] = known
            self._indexed = indexed
        runs = [run for _, run in indexed.values()]
        return sorted(runs, key=lambda run: (run.began or "", run.run))
