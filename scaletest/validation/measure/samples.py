"""Samples of nodes during a run: read in a thread, thinned where there are too many, stored."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from scaletest.model import NodeSample
from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError
from scaletest.processes.periodic import Periodic
from scaletest.validation.folder import ValidationFolder

logger = logging.getLogger("scaletest.validation")

LOOK_S = 1.5
MOST_SAMPLES, MOST_BYTES = 20_000, 10_000_000

# Returns the samples since the last call, without waiting for more.
ReadSamples = Callable[[], Sequence[NodeSample]]


class SampleStore:
    """The samples of a run, in memory and in its folder; every second is dropped of too many.

    Rates and levels stay correct without their neighbours, and energy is a counter. stored: samples
    that an earlier process of the run stored.
    """

    def __init__(self, folder: ValidationFolder, stored: Sequence[NodeSample] = ()) -> None:
        self._folder = folder
        self._rows = list(stored)
        self._bytes = sum(map(_size, stored))
        self._every = 1
        self._seen: Counter[str] = Counter()

    @property
    def rows(self) -> list[NodeSample]:
        """All samples, in the order in which they came."""
        return list(self._rows)

    def add(self, samples: Sequence[NodeSample]) -> None:
        """Store these, or every second, fourth or eighth of each node when there are too many."""
        new = []
        for sample in samples:
            self._seen[sample.node] += 1
            if self._seen[sample.node] % self._every == 0:
                new.append(sample)
        if not new:
            return
        self._rows += new
        self._bytes += sum(map(_size, new))
        if not self._are_too_many():
            self._folder.add_samples(new)
            return
        while self._are_too_many():
            numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
            self._rows = [sample for sample in self._rows if next(numbers[sample.node]) % 2]
            self._bytes = sum(map(_size, self._rows))
            self._every *= 2
        self._folder.replace_samples(self._rows)

    def _are_too_many(self) -> bool:
        return len(self._rows) > MOST_SAMPLES or self._bytes > MOST_BYTES


class Collector:
    """A thread that reads the samples of a queue during a run. Its errors never end the run.

    read: UsageError without samples to read; another error if that may change.
    """

    def __init__(self, read: ReadSamples, keep: Callable[[Sequence[NodeSample]], None]) -> None:
        self._read, self._keep = read, keep
        self._lock = threading.Lock()
        self._ended = self._told = False
        self._thread = Periodic("samples", self.collect, LOOK_S)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def collect(self) -> None:
        """Read the samples that have come."""
        with self._lock:
            if self._ended:
                return
            try:
                self._keep(self._read())
            except UsageError as error:
                self._ended = True
                self._tell(error)
            except Exception as error:
                self._tell(error)

    def close(self) -> None:
        """Read the samples that have come, and end the thread."""
        self._thread.close()
        self.collect()
        self._ended = True

    def _tell(self, error: Exception) -> None:
        if not self._told:
            self._told = True
            logger.warning(
                "samples of the nodes are missing: %s: %s",
                type(error).__name__,
                cut_text(str(error), 300),
            )


def _size(sample: NodeSample) -> int:
    return len(sample.to_json()) + 1
