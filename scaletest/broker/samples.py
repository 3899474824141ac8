"""Samples of nodes in Redis: a bounded stream for each queue, and the lease to add to it.

One worker of a node samples it for its queue. Heartbeats request and renew that lease, and bring
back whether the queue has work; so workers that do not sample make no call for it. Samples use the
heartbeat's connection, too.
"""

import logging
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.redis_errors import is_transient
from scaletest.broker.reply_reader import BEGIN
from scaletest.broker.scripts import script
from scaletest.model import NodeSample, wire
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue

logger = logging.getLogger("scaletest.broker")

SAMPLE_EVERY_S = 1.0
# With many nodes the interval grows, so that a queue gets no more than this.
MOST_SAMPLES_PER_S = 100
# Samples that a queue's stream holds, about: a reader that comes every few seconds misses none.
STREAM_LENGTH = 2000
# How long one sample may be when it is unpacked.
MOST_JSON_BYTES = 65_536
# How long an idle node is sampled, from the sampler's begin and after the queue's last request.
AT_FIRST_S = 10.0
AFTERWARDS_S = 5.0
# A sample that waited longer for Redis is dropped: Redis would stamp it with too late a time.
LONGEST_WAIT_S = 2.0
# Samples that one call reads.
READ_AT_ONCE = 1000
# What `latest_samples` shows: samples at most so old, of so many nodes.
SHOWN_S = 10.0
MOST_NODES = 200
# Six digits are more than any sensor has; energy is a counter, of which differences are taken.
_DIGITS = {"energy_j": 12}


def encode(sample: NodeSample) -> bytes:
    """Pack a sample for Redis. It has a bounded number of resources, and these of figures."""
    row = sample.to_dict()
    resources = {}
    for name, figures in row["resources"].items():
        resources[name] = {
            figure: float(f"{value:.{_DIGITS.get(figure, 6)}g}")
            for figure, value in figures.items()
            if value is not None  # was infinite, or not a number
        }
    row["resources"] = resources
    return zlib.compress(wire.dump(row).encode(), 1)


def decode(packed: bytes, at_s: float) -> NodeSample:
    """Unpack a sample that Redis received at `at_s`; InvalidValue when it is not a sample."""
    return NodeSample.from_dict({**_unpack(packed), "at_s": at_s})


def _unpack(packed: bytes) -> dict[str, Any]:
    return wire.load(wire.decompress(packed, MOST_JSON_BYTES, "a sample"), "a sample")


def _received_s(entry: bytes) -> float:
    """Return when Redis received an entry of the stream, by its name."""
    return int(entry.partition(b"-")[0]) / 1000


class SamplerLease:
    """A worker's right to sample its node for its queue.

    The heartbeat renews it, and a sampling thread uses it.
    """

    def __init__(
        self,
        queue: str,
        node: str,
        worker: str,
        clock: Callable[[], float] = time.monotonic,
        *,
        interval_s: float = SAMPLE_EVERY_S,
    ) -> None:
        self.queue = queue
        self.node = node
        self.worker = worker
        # seconds between samples, and the least of them
        self.interval_s = interval_s
        self._shortest_s = interval_s
        # makes the heartbeat's thread look for a sample at once
        self.wake: Callable[[], None] = lambda: None
        self._clock = clock
        # set while this worker holds the lease, and for good when sampling has ended
        self._holds_lease = threading.Event()
        self._has_ended = False
        # until when the queue counts as one that has work
        self._work_until = 0.0
        # requests that the queue had got at the last answer
        self._submitted_before: int | None = None
        # a sample that the heartbeat shall send, and when it was offered
        self._waiting: tuple[float, bytes] | None = None

    # -- for the heartbeat
    # ----------------------------------------------------------------------------------------------

    @property
    def requested_node(self) -> str:
        """The node that this worker could sample; "" when it does not sample any more."""
        return "" if self._has_ended else self.node

    def take_answer(self, row: Sequence[int]) -> None:
        """Take a heartbeat's answer: empty when another samples, else nodes, running, submitted."""
        if not row or self._has_ended:
            self._note_loss()
            return
        nodes, running, submitted = row
        self.interval_s = max(self._shortest_s, nodes / MOST_SAMPLES_PER_S)
        if not self._holds_lease.is_set():
            self._submitted_before = None
            self._work_until = self._clock() + AT_FIRST_S
        self._note_queue(running, submitted)
        self._holds_lease.set()

    def send(self, client: Redis) -> None:
        """Send the sample that waits. A sample that does not arrive is lost, and nothing else."""
        queue = self.queue
        try:
            if self._has_ended:
                return
            waiting = self._waiting
            self._waiting = None
            if waiting is None:
                return
            offered_at, packed = waiting
            if self._clock() - offered_at > LONGEST_WAIT_S:
                return
            row = script("sample")(
                client,
                [
                    keys.QUEUES,
                    keys.samples(queue),
                    keys.samplers(queue),
                    keys.leases(queue),
                    keys.counters(queue),
                ],
                [queue, self.node, self.worker, STREAM_LENGTH, packed],
            )
            if row is None:
                self._note_loss()
            else:
                self._note_queue(*row)
        except Exception as error:  # an outage is logged elsewhere
            if not is_transient(error):
                self.end()
                logger.warning(
                    "worker %s: samples of its node are lost: %s",
                    self.worker,
                    cut_text(str(error), 200),
                )

    def end(self) -> None:
        """End sampling. A thread that waits for the lease continues."""
        if not self._has_ended:
            self._has_ended = True
            self._holds_lease.set()
            self.wake()

    # -- for the sampling thread
    # ----------------------------------------------------------------------------------------------

    def wait(self) -> bool:
        """Wait until this worker holds the lease; False when sampling has ended."""
        self._holds_lease.wait()
        return not self._has_ended

    @property
    def has_work(self) -> bool:
        """Whether the queue has work, or had some just now."""
        return self._clock() < self._work_until

    def note_work(self) -> None:
        """Note that the worker itself has work."""
        self._work_until = max(self._work_until, self._clock() + AFTERWARDS_S)

    def offer(self, sample: NodeSample) -> None:
        """Give the heartbeat a sample to send; it replaces one that still waits."""
        self._waiting = (self._clock(), encode(sample))
        if not self._has_ended:  # otherwise the heartbeat may be closed already
            self.wake()

    def _note_loss(self) -> None:
        """Note that the lease is lost. A waiting thread must notice an `end` at this instant."""
        self._holds_lease.clear()
        if self._has_ended:
            self._holds_lease.set()

    def _note_queue(self, running: int, submitted: int) -> None:
        """Note whether the queue has work: requests that run, or that it got since last time."""
        if running or self._submitted_before not in (None, submitted):
            self.note_work()
        self._submitted_before = submitted


class SampleReader:
    """Reads a queue's samples that arrive from now on. position: the last entry that was read."""

    def __init__(self, client: Redis, queue: str, position: str = "") -> None:
        """Begin at the end of the stream, or at an earlier reader's position."""
        self._client = client
        self._key = keys.samples(queue)
        if not position:
            rows: Any = client.xrevrange(self._key, count=1)
            position = rows[0][0].decode() if rows else BEGIN
        self.position = position

    def read(self) -> list[NodeSample]:
        """Return samples since the last call, at most READ_AT_ONCE, without waiting.

        Entries that are not samples are left out: any client may write to Redis. Raises what
        redis-py raises.
        """
        rows: Any = self._client.xread({self._key: self.position}, count=READ_AT_ONCE)
        entries = rows[0][1] if rows else []
        if entries:
            self.position = entries[-1][0].decode()
        samples = []
        for name, fields in entries:
            with suppress(InvalidValue, KeyError, TypeError):
                samples.append(decode(fields[b"s"], _received_s(name)))
        return samples


def latest_samples(client: Redis, nodes: Mapping[str, int]) -> dict[str, list[NodeSample]]:
    """Return the last fresh sample of each node, by queue. nodes: how many each queue has.

    At most MOST_NODES samples in all. Queues without a fresh sample are left out.
    """
    # how many nodes to read of each queue
    nodes_to_read: dict[str, int] = {}
    left = MOST_NODES
    for queue, count in nodes.items():
        if count and left:
            nodes_to_read[queue] = min(count, left)
            left -= nodes_to_read[queue]
    if not nodes_to_read:
        return {}
    seconds, micros = client.time()
    since = f"{int((seconds + micros / 1e6 - SHOWN_S) * 1000)}-0"
    pipe = client.pipeline(transaction=False)
    for queue, count in nodes_to_read.items():
        # samples of a second come in any order
        pipe.xrevrange(keys.samples(queue), "+", since, count=2 * count)
    by_queue = {}
    for queue, row in zip(nodes_to_read, pipe.execute(raise_on_error=False), strict=True):
        if not isinstance(row, list):
            continue  # any client may write to Redis: that must not hide the other queues
        # The latest entries come first. Checking a sample takes longest, so it is left out for
        # older ones of a node.
        newest: dict[str, NodeSample] = {}
        for name, fields in row:
            with suppress(InvalidValue, KeyError, TypeError):
                document = _unpack(fields[b"s"])
                if document.get("node") not in newest:
                    sample = NodeSample.from_dict({**document, "at_s": _received_s(name)})
                    newest.setdefault(sample.node, sample)
        if newest:
            by_queue[queue] = list(newest.values())
    return by_queue
