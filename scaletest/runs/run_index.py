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


# So long a page waits while another one reads.
PATIENCE_S = 0.5


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
        # who comes while somebody reads long gets what is read so far: probes need threads too
        if self._lock.acquire(timeout=PATIENCE_S):
            try:
                self._read()
            finally:
                self._lock.release()
        runs = [run for _, run in tuple(self._indexed.values())]
        return sorted(runs, key=lambda run: (run.began or "", run.run))

    def _read(self) -> None:
        """Read what has changed, and forget what is gone."""
        try:
            # hidden folders are not complete yet
            folders = list(filter(None, map(open_run, self._root.glob("[!.]*"))))
        except OSError:  # the archive cannot be read, and the pages say so
            folders = []
        for folder in folders:
            stamps = stamps_of(folder)
            known = self._indexed.get(folder.name)
            if known is None or known[0] != stamps:
                self._indexed[folder.name] = stamps, read_listed_run(folder)
        for name in self._indexed.keys() - {folder.name for folder in folders}:
            del self._indexed[name]
