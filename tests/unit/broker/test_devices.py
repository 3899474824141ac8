"""Leases of devices on a Redis in this process."""

from scaletest.broker.devices import DeviceLeases, Slot
from scaletest.broker.heartbeat import LEASE_INTERVALS
from scaletest.broker.queue_state import text_of
from scaletest.broker.reaping import Watcher
from tests.unit.virtual_redis import Clock, VirtualRedis, beats_for

INTERVAL_S = 5.0


def test_a_dead_workers_slot_of_a_device_is_free_when_its_lease_is_over(
    redis: VirtualRedis, clock: Clock
) -> None:
    # given two workers and a device with one slot, and that somebody beats
    def beat() -> None:
        Watcher(redis, INTERVAL_S, 3).tick()

    dead, other = (
        DeviceLeases(redis, "node", name, interval_s=INTERVAL_S, nonce=name)
        for name in ("dead", "other")
    )
    assert dead.claim(["device"], 1) == Slot("device", 0)
    # when less than a lease has passed, and then all of it
    beats_for(clock, LEASE_INTERVALS * INTERVAL_S - 1, beat, every_s=1.0)
    assert other.claim(["device"], 1) is None
    beats_for(clock, 2.0, beat, every_s=1.0)
    # expect the slot to be the other's, and who was only frozen to notice
    assert other.claim(["device"], 1) == Slot("device", 0)
    assert not dead.renew()


def test_a_text_of_redis_may_be_missing_bytes_or_text() -> None:
    assert [text_of(None), text_of("a"), text_of(b"\xff b")] == ["", "a", "\ufffd b"]
