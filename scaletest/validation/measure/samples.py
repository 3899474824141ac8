"""Samples of nodes during a run: read in a thread, thinned where there are too many, stored."""

import logging
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from scaletest.model import NodeSample
from scaletest.model.checks import cut_text
from scaletest.processes.periodic import Periodic
from scaletest.validation.folder import ValidationFolder

logger = logging.getLogger("scaletest.validation")

INTERVAL_S = 1.5
# Some 10 MB: the run is judged with all of them after every step.
MOST_SAMPLES = 10_000

# Returns the samples since the last call, without waiting for more.
ReadSamples = Callable[[], Sequence[NodeSample]]


class SampleStore:
    """The samples of a run, in memory and in its folder; of too many every other one is dropped.

    Rates and levels stay correct without their neighbours, and energy is a counter. stored: samples
    that an earlier process of the run stored.
    """

    def __init__(self, folder: ValidationFolder, stored: Sequence[NodeSample] = ()) -> None:
        self._folder = folder
        self._rows = list(stored)
        self._stride = 1  # of each node every so many-th sample is kept
        self._came: Counter[str] = Counter()  # samples by their node

    @property
    def rows(self) -> list[NodeSample]:
        """All samples, in the order in which they came."""
        return list(self._rows)

    def add(self, samples: Sequence[NodeSample]) -> None:
        """Store these, or every other, fourth or eighth of each node when there are too many."""
        new = []
        for sample in samples:
            self._came[sample.node] += 1
            if self._came[sample.node] % self._stride == 0:
                new.append(sample)
        if not new:
            return
        self._rows += new
        if len(self._rows) <= MOST_SAMPLES:
            self._folder.add_samples(new)
            return
        while len(self._rows) > MOST_SAMPLES:
            numbers: defaultdict[str, Iterator[int]] = defaultdict(count)
            self._rows = [sample for sample in self._rows if next(numbers[sample.node]) % 2]
            self._stride *= 2
        self._folder.replace_samples(self._rows)


class Collector:
    """A thread that reads the samples of a queue during a run. Its errors never end the run."""

    def __init__(self, read: ReadSamples, keep: Callable[[Sequence[NodeSample]], None]) -> None:
        self._read, self._keep = read, keep
        self._lock = threading.Lock()
        self._has_ended = self._has_warned = False
        self._thread = Periodic("samples", self.collect, INTERVAL_S)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def collect(self) -> None:
        """Read the samples that have come. The first error is a warning, further ones are not."""
        with self._lock:
            if self._has_ended:
                return
            try:
                self._keep(self._read())
            except Exception as error:
                if not self._has_warned:
                    name, text = type(error).__name__, cut_text(str(error), 300)
                    logger.warning("samples of the nodes are missing: %s: %s", name, text)
                self._has_warned = True

    def close(self) -> None:
        """Read the samples that have come, and end the thread."""
        self._thread.close()
        self.collect()
        self._has_ended = True
