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

# Figures by resource.
Resources = dict[str, dict[str, float]]


class NodeSampler:
    """Samples one node for one worker, from `start` to `stop`."""

    def __init__(
        self,
        lease: SamplerLease,
        count_begun: Callable[[], int],
        read_devices: Callable[[], Resources],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to sample. count_begun: returns how many requests this worker has begun."""
        self._lease = lease
        self._count_begun = count_begun
        self._clock = clock
        self._node = NodeReader(clock)
        self._read_devices = read_devices
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
        read_before = self._read_at
        self._read_at = self._clock()
        # of too many resources the first ones are kept: those of the node come before its devices
        resources = dict(self._node.read())
        try:
            resources |= self._read_devices()
        except Exception as error:
            self._read_devices = dict
            logger.warning(
                "the devices of this node are not read any more: %s", cut_text(str(error), 200)
            )
        if read_before is not None:
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
