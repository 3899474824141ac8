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
from scaletest_workers.devices import DeviceChooser

logger = logging.getLogger("scaletest.worker")

# How long a worker waits for a free slot: a dead worker's lease ends within two intervals, and the
# rest is for an outage of Redis, during which it does not run. And how often it looks.
WAIT_INTERVALS = 4.5
LOOK_S = 0.5


class Leasing:
    """Keeps one slot for one worker."""

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
        """pause: waits so many seconds; whether to stop waiting for good."""
        self._worker = worker
        self._devices = devices
        self._wait_s = WAIT_INTERVALS * interval_s
        self._look_s = min(LOOK_S, interval_s / 4)
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
        chosen = self._devices.attach(self._leases, self._waiting())
        logger.info("worker %s: device %s, slot %s", self._worker, chosen.device.path, chosen.slot)

    def claim_again(self) -> None:
        """Get a slot, where the former one was lost. NoDevice when none becomes free in time."""
        self._devices.wait_for_slot(self._waiting())

    def renew(self) -> None:
        """Extend the lease; called with every heartbeat."""
        if not self._leases.renew():
            logger.warning("worker %s lost its device's slot and waits for another", self._worker)

    def close(self) -> None:
        """Give the slot back."""
        self._leases.close()

    def _waiting(self) -> Callable[[], bool]:
        began, logged = time.monotonic(), False

        def wait() -> bool:
            nonlocal logged
            left = began + self._wait_s - time.monotonic()
            if left > 0 and not logged:
                logger.warning(
                    "worker %s: no device is free, waiting %.0f s for one", self._worker, left
                )
                logged = True
            return left > 0 and not self._pause(min(self._look_s, left))

        return wait
