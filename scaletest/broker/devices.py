"""Leases of devices: a device has slots, a worker holds one, and no slot has two holders.

The lease is a member of the device's own key, with a deadline on the Redis clock that the worker's
heartbeat extends. The holder also keeps the deadline on its own monotonic clock, counted from
before the call was sent, so that the lease always ends there first: a worker that was frozen or cut
off knows without a round trip that it must claim again before it uses the device.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import NamedTuple

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.heartbeat import LEASE_INTERVALS
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import script
from scaletest.model import checks

# How much earlier than Redis the holder treats its lease as expired: clocks of two machines may run
# 1 % apart.
CLOCK_MARGIN = 0.02


class Slot(NamedTuple):
    """A leased slot: its device, and its number from 0."""

    device: str
    number: int


class DeviceLeases:
    """The lease of the one slot that a worker of a node holds. Any thread may call it."""

    def __init__(
        self,
        client: Redis,
        node: str,
        worker: str,
        *,
        interval_s: float,
        nonce: str,
        retrying: Retrying | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to lease for this worker.

        nonce: tells this process from an earlier, perhaps only frozen one of the same name.
        """
        self._client = client
        self._node = node
        self._owner = f"{checks.worker_name(worker)}:{nonce}"
        self._interval_us = int(interval_s * 1e6)
        self._lease_s = LEASE_INTERVALS * interval_s
        self._retrying = retrying or Retrying(f"worker {worker}")
        self._clock = clock
        self._lock = threading.Lock()
        # the leased slot, and until when it is surely ours, on our clock
        self._slot: Slot | None = None
        self._until = 0.0

    @property
    def slot(self) -> Slot | None:
        """The slot that this worker holds now; None when it holds none or cannot be sure."""
        return self._slot if self._clock() < self._until else None

    def claim(self, devices: Sequence[str], per_device: int) -> Slot | None:
        """Lease a free slot of the least used of these devices, or keep the one held.

        None when none is free. Waits while Redis is away.
        """
        return self._retrying.run(lambda: self._claim(devices, per_device)) if devices else None

    def _claim(self, devices: Sequence[str], per_device: int) -> Slot | None:
        with self._lock:
            sent_at = self._clock()
            row = script("claim")(
                self._client,
                [keys.device(self._node, device) for device in devices],
                [self._owner, int(self._lease_s * 1e6), per_device, self._interval_us],
            )
            # row: which of these devices, and which of its slots
            self._slot = None if row is None else Slot(devices[int(row[0])], int(row[1]))
            self._until = sent_at + self._lease_s * (1 - CLOCK_MARGIN)
            return self._slot

    def renew(self) -> bool:
        """Extend the lease; return False when it was lost."""
        with self._lock:
            slot = self._slot
            sent_at = self._clock()
            if slot is None:
                return True
            if script("renew")(
                self._client,
                [keys.device(self._node, slot.device)],
                [f"{slot.number}:{self._owner}", int(self._lease_s * 1e6), self._interval_us],
            ):
                self._until = sent_at + self._lease_s * (1 - CLOCK_MARGIN)
                return True
            self._slot = None
            return False

    def close(self) -> None:
        """Give the slot back, and close the connection.

        So the next worker need not wait for the lease to end.
        """
        with closing(self._client), self._lock:
            slot, self._slot = self._slot, None
            if slot is not None:
                self._client.zrem(
                    keys.device(self._node, slot.device), f"{slot.number}:{self._owner}"
                )
