"""A thread that reads the resources and devices of its node while the worker holds the lease.

One worker per node and queue samples. The thread sleeps for good in the others, and in this one
between two readings. It takes samples while the queue has work, a little before, and a little
afterwards. Its errors never reach the worker.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable

from scaletest.broker.samples import SamplerLease
from scaletest.model import NodeSample
from scaletest.model.checks import cut_text
from scaletest.model.node_sample import MAX_RESOURCES
from scaletest.observe.node.reader import NodeReader

logger = logging.getLogger("scaletest.worker")

# How long a stopping worker waits for a reader; one that hangs ends with the process.
STOP_LIMIT_S = 1.0

# A reader returns figures by resource.
Resources = dict[str, dict[str, float]]
Reader = Callable[[], Resources]


class NodeSampler:
    """Samples one node for one worker, from `start` to `stop`."""

    def __init__(
        self,
        lease: SamplerLease,
        *,
        requests_begun: Callable[[], int] = int,
        read_devices: Reader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to sample. requests_begun: returns how many requests this worker has begun.

        A reader that fails is logged once and not called again.
        """
        self._lease = lease
        self._count_begun = requests_begun
        self._clock = clock
        self._node: NodeReader | None = None
        self._readers: list[Reader] = [self._read_node]
        if read_devices is not None:
            self._readers.append(read_devices)
        self._closing = threading.Event()
        # When the last reading was. Counters of the next one are compared with it, so that it is
        # None after a pause.
        self._read_at: float | None = None
        self._begun_before = 0
        self._thread = threading.Thread(
            target=self._run, name="scaletest-node-sampler", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End it. Does nothing before `start`, and the second time."""
        self._closing.set()
        self._lease.end()
        if self._thread.is_alive():
            self._thread.join(STOP_LIMIT_S)

    def _run(self) -> None:
        """Sample once an interval while this worker holds the lease, until sampling ends."""
        while self._lease.wait() and not self._closing.is_set():
            began = self._clock()
            try:
                self._sample_once()
            except Exception as error:
                logger.error(
                    "this worker stops sampling its node: %s: %s",
                    type(error).__name__,
                    cut_text(str(error), 200),
                )
                self._lease.end()
            self._closing.wait(max(0.0, began + self._lease.interval_s - self._clock()))

    def _sample_once(self) -> None:
        """Read the node, and offer a sample, while there is work.

        The first reading after a pause has none before it to compare with, so it gives no sample.
        """
        # a worker that takes requests knows sooner than the next heartbeat that there is work
        requests_begun = self._count_begun()
        if requests_begun != self._begun_before:
            self._begun_before = requests_begun
            self._lease.note_work()
        if not self._lease.has_work:
            self._read_at = None
            return
        read_before, self._read_at = self._read_at, self._clock()
        resources: Resources = {}
        for reader in list(self._readers):
            try:
                resources.update(reader())
            except Exception as error:
                self._readers.remove(reader)
                logger.warning(
                    "one reader of this node's resources failed and is not used again: %s: %s",
                    type(error).__name__,
                    cut_text(str(error), 200),
                )
        if read_before is not None:
            # of too many resources the first ones: those of the node come before its devices
            lease = self._lease
            lease.offer(
                NodeSample(
                    node=lease.node,
                    worker=lease.worker,
                    at_s=0.0,  # Redis says when it receives the sample
                    interval_s=self._read_at - read_before,
                    resources=dict(itertools.islice(resources.items(), MAX_RESOURCES)),
                )
            )

    def _read_node(self) -> Resources:
        if self._node is None:  # made late, since most workers never read their node
            self._node = NodeReader(self._clock)
        return self._node.read()
