"""Hold one slot of a device for one worker.

The slot is leased before the worker is registered, and claimed again when it was lost.
"""

import logging
import time
import uuid
from collections.abc import Callable

from scaletest.broker.connection import Redis
from scaletest.broker.devices import DeviceLeases
from scaletest.broker.retrying import Retrying
from scaletest_workers.devices import ChosenDevice, DeviceChooser, NoneFree, check_open

logger = logging.getLogger("scaletest.worker")

# How long a worker waits for a free slot, in heartbeat intervals: a dead worker's lease ends within
# two, and the others are for an outage of Redis, during which leases do not run out.
WAIT_INTERVALS = 4.5
# How often it tries again while it waits.
TRY_EVERY_S = 0.5


class DeviceSlot:
    """The slot of one worker."""

    def __init__(
        self,
        redis: Redis,
        worker: str,
        node: str,
        devices: DeviceChooser,
        *,
        interval_s: float,
        retrying: Retrying,
        pause: Callable[[float], bool],
    ) -> None:
        """Prepare to lease. pause: waits so many seconds; returns whether to give up waiting."""
        self._worker = worker
        self._devices = devices
        self._wait_s = WAIT_INTERVALS * interval_s
        self._try_every_s = min(TRY_EVERY_S, interval_s / 4)
        self._pause = pause
        self._leases = DeviceLeases(
            redis,
            node,
            worker,
            interval_s=interval_s,
            nonce=uuid.uuid4().hex[:12],
            retrying=retrying,
        )

    def claim_first(self) -> None:
        """Lease the first slot. Raises NoDevice when none becomes free in time."""
        self._devices.attach(self._leases)
        chosen = self.claim()
        check_open(chosen.device.path, self._devices.preset)
        logger.info("worker %s: device %s, slot %s", self._worker, chosen.device.path, chosen.slot)

    def claim(self) -> ChosenDevice:
        """Return the slot's device, as soon as a slot is free. NoDevice when none is in time."""
        deadline = time.monotonic() + self._wait_s
        is_logged = False
        while True:
            try:
                return self._devices.choose()
            except NoneFree:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise
                if not is_logged:
                    logger.warning(
                        "worker %s: no device is free, waiting %.0f s for one", self._worker, left_s
                    )
                    is_logged = True
                if self._pause(min(self._try_every_s, left_s)):
                    raise

    def renew(self) -> None:
        """Extend the lease; called with every heartbeat."""
        if not self._leases.renew():
            logger.warning("worker %s lost its device's slot and waits for another", self._worker)

    def close(self) -> None:
        """Give the slot back."""
        self._leases.close()
