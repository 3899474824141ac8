"""Leases of devices on a real server: spread, sharing, expiry, and that no slot ever has two
holders.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.devices import DeviceLeases, Slot
from scaletest.broker.heartbeat import LEASE_INTERVALS
from scaletest.model import Request
from tests.conftest import Gate, eventually, program, wait_for
from tests.unit.fakes import Clock

EIGHT = [f"0000:0{n}:00.0" for n in range(8)]


def leases(
    redis: Any, worker: str, clock: Any = time.monotonic, interval_s: float = 60.0
) -> DeviceLeases:
    """They live longer than any step of a test takes; `expire` ends them."""
    return DeviceLeases(redis, "node", worker, interval_s=interval_s, nonce=worker, clock=clock)


def expire(redis: Any, device: str) -> None:
    """Let every lease of the device end now, on the Redis clock."""
    name = keys.device("node", device)
    redis.set(keys.PULSE, int(time.time() * 1e6))
    for member in redis.zrange(name, 0, -1):
        redis.zadd(name, {member: 1})


def test_workers_spread_over_devices(redis: Any) -> None:
    slots = [leases(redis, f"w{n}").claim(EIGHT[:3], 4) for n in range(6)]
    counts = Counter(slot.device for slot in slots if slot)
    assert [counts[device] for device in EIGHT[:3]] == [2, 2, 2]
    assert len(set(slots)) == 6


def test_a_repeated_claim_returns_the_same_slot(redis: Any) -> None:
    holder = leases(redis, "a")
    assert holder.claim(EIGHT, 1) == holder.claim(EIGHT, 1) == leases(redis, "a").claim(EIGHT, 1)
    assert redis.zcard(keys.device("node", EIGHT[0])) == 1


def test_a_released_slot_is_free_at_once(redis: Any) -> None:
    holder = leases(redis, "a")
    holder.claim(EIGHT[:1], 1)
    assert leases(redis, "b").claim(EIGHT[:1], 1) is None
    holder.close()
    assert holder.slot is None
    assert leases(redis, "b").claim(EIGHT[:1], 1) == Slot(EIGHT[0], 0)


def test_other_nodes_have_devices_of_their_own(redis: Any) -> None:
    leases(redis, "a").claim(EIGHT[:1], 1)
    assert DeviceLeases(redis, "other", "b", interval_s=60.0, nonce="b").claim(
        EIGHT[:1], 1
    ) == Slot(EIGHT[0], 0)


def test_a_lease_ends_on_the_clock_of_its_holder_when_it_is_not_renewed(redis: Any) -> None:
    # given a holder
    clock = Clock(100.0)
    holder = leases(redis, "a", clock)
    holder.claim(EIGHT[:1], 1)
    # when nine tenths of it, and then all pass on its own clock
    clock.now += 0.9 * LEASE_INTERVALS * 60
    assert holder.slot == Slot(EIGHT[0], 0)
    clock.now += 0.1 * LEASE_INTERVALS * 60
    # expect it to hold nothing, until it renews what nobody took
    assert holder.slot is None
    assert holder.renew()
    assert holder.slot == Slot(EIGHT[0], 0)


@pytest.mark.parametrize(
    ("worker", "nonce"), [("b", "b"), ("a", "2")], ids=["another", "a successor of its name"]
)
def test_a_lease_that_ended_goes_to_another_worker_and_cannot_be_renewed(
    redis: Any, worker: str, nonce: str
) -> None:
    holder = leases(redis, "a")
    holder.claim(EIGHT[:1], 1)
    expire(redis, EIGHT[0])
    assert DeviceLeases(redis, "node", worker, interval_s=60.0, nonce=nonce).claim(
        EIGHT[:1], 1
    ) == Slot(EIGHT[0], 0)
    assert not holder.renew()
    assert holder.slot is None
    (member,) = redis.zrange(keys.device("node", EIGHT[0]), 0, -1)
    assert member == f"0:{worker}:{nonce}".encode()


# -- workers
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def devices(tmp_path: Path) -> str:
    """Eight device nodes in a private folder."""
    for number in range(8):
        (tmp_path / f"renderD{128 + number}").touch()
    return str(tmp_path / "renderD*")


def test_workers_spread_reply_with_their_slot_and_give_it_back(
    start: Callable[..., Any], redis: Any, client: Client, devices: str, gate: Gate
) -> None:
    # given four workers of a queue on eight devices, and work that ends when all four are at it
    workers = [start("--device-glob", devices, "--", *gate.command) for _ in range(4)]
    client.submit([Request(f"r{number}", "q") for number in range(4)])
    eventually(lambda: Queues(redis).state("q").running == 4)
    gate.open()
    replies = wait_for(client, 4).values()
    # expect as many devices as workers, with their identity
    assert len({(reply.worker, reply.device) for reply in replies}) == 4
    assert len({reply.device for reply in replies}) == 4
    assert all(reply.device_info == {"id": reply.device, "slot": "0"} for reply in replies)
    # and nothing left when they end in order
    for worker in workers:
        worker.terminate()
        worker.wait(60)
    assert not list(redis.scan_iter("scaletest:device:*"))


def test_a_worker_without_a_free_device_says_which_option_shares_one(
    start: Callable[..., Any], url: str, devices: str
) -> None:
    device = devices.replace("renderD*", "renderD128")
    start("--device-glob", device)
    line = program(
        "worker",
        "--queue",
        "q",
        "--redis-url",
        url,
        "--device-glob",
        device,
        "--heartbeat",
        "0.2",
    )
    second = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert second.returncode == 2
    assert "no device is free: 1 of 1 slots are leased" in second.stderr
    assert "--per-device 2" in second.stderr
    start("--device-glob", device, "--per-device", "2")


def test_a_killed_workers_device_comes_back(
    start: Callable[..., Any], queues: Queues, devices: str
) -> None:
    device = devices.replace("renderD*", "renderD128")
    first = start("--device-glob", device, "--heartbeat", "0.5")
    first.kill()
    first.wait()
    second = start("--device-glob", device, "--heartbeat", "0.5", wait=False)
    eventually(
        lambda: any(name.split("-")[-2] == str(second.pid) for name in queues.worker_names("q"))
    )


def test_a_worker_that_lost_its_slot_puts_the_request_back_and_waits(
    start: Callable[..., Any], redis: Any, client: Client, devices: str, tmp_path: Path
) -> None:
    # given a worker whose only slot was taken by somebody else, and who noticed it
    device = devices.replace("renderD*", "renderD128")
    options = (
        "--device-glob",
        device,
        "--heartbeat",
        "0.5",
        "--node-env",
        "NODE",
    )
    start(*options, env={**os.environ, "NODE": "node"})
    expire(redis, device)
    thief = leases(redis, "thief")
    eventually(lambda: thief.claim([device], 1) or expire(redis, device))
    eventually(lambda: "lost its device's slot" in (tmp_path / "workers.log").read_text())
    # when a request comes, and the slot is free again later
    name = client.new_id()
    client.submit([Request(name, "q", ("0",))])
    eventually(lambda: "no device is free, waiting" in (tmp_path / "workers.log").read_text())
    assert redis.lrange(keys.rq_queue("q"), 0, -1) == [name.encode()]
    thief.close()
    # expect it to be run, as if it had never been taken
    reply = wait_for(client, 1)[name]
    assert (reply.ok, reply.attempts, reply.device) == (True, 1, device)


def test_a_device_index_leases_nothing(start: Callable[..., Any], redis: Any, devices: str) -> None:
    start("--device-glob", devices, "--device-index", "3")
    assert not list(redis.scan_iter("scaletest:device:*"))


# -- many holders, killed and frozen
# --------------------------------------------------------------------------------------------------

# A holder: claims, beats in a thread as a worker does, and writes down each moment at which it is
# sure of its slot.
HOLDER = """
import sys, threading, time
from scaletest.broker import connect
from scaletest.broker.devices import DeviceLeases
url, name, per_device, interval_s = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
devices = sys.argv[6:]
redis = connect(url)
leases = DeviceLeases(redis, "node", name, interval_s=interval_s, nonce=name)
def beat():
    while True:
        time.sleep(interval_s / 2)
        leases.renew()
threading.Thread(target=beat, daemon=True).start()
with open(sys.argv[5], "a", buffering=1) as log:
    tenure = 0
    while True:
        slot = leases.slot
        if slot is None:
            tenure += 1
            slot = leases.claim(devices, per_device)
        now = time.monotonic()
        sure = leases.slot
        if slot and sure:
            log.write(f"{now!r} {sure.device} {sure.number} {name}/{tenure}\\n")
        time.sleep(interval_s / 10)
"""


@contextlib.contextmanager
def holders(
    url: str, log: Path, per_device: int, interval_s: float, devices: list[str]
) -> Iterator[Any]:
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> subprocess.Popen[bytes]:
        line = [
            sys.executable,
            "-c",
            HOLDER,
            url,
            name,
            str(per_device),
            str(interval_s),
            str(log),
            *devices,
        ]
        started.append(subprocess.Popen(line, stdin=subprocess.DEVNULL))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()


def moments(log: Path) -> list[tuple[float, str, str]]:
    """(when, slot, holder and number of its tenure), in order; a killed process may leave half a
    line.
    """
    rows = [line.split() for line in log.read_text().splitlines()]
    return sorted((float(row[0]), f"{row[1]}/{row[2]}", row[3]) for row in rows if len(row) == 4)


def overlaps(rows: list[tuple[float, str, str]]) -> list[str]:
    """Slots of which a holder was sure after another had been sure of it since."""
    wrong, present, former = [], {}, set()
    for _, slot, holder in rows:
        if present.get(slot) != holder:
            former.add((slot, present.get(slot)))
            present[slot] = holder
            if (slot, holder) in former:
                wrong.append(f"{slot} went back to {holder}")
    return wrong


def test_no_slot_has_two_holders_whatever_is_killed_and_frozen(
    url: str, redis: Any, tmp_path: Path
) -> None:
    # given twelve holders that want eight slots of two devices
    chance, log = random.Random(8), tmp_path / "log"
    log.touch()
    frozen: dict[str, subprocess.Popen[bytes]] = {}
    with holders(url, log, 4, 0.2, EIGHT[:2]) as start:
        living = {f"h{n}": start(f"h{n}") for n in range(12)}
        eventually(lambda: len({slot for _, slot, _ in moments(log)}) == 8)
        # when they are killed, frozen, woken and replaced at random a hundred times
        for number in range(100):
            action = chance.choice(["kill", "freeze", "wake"])
            if action == "wake" and frozen:
                name = chance.choice(sorted(frozen))
                living[name] = frozen.pop(name)
                living[name].send_signal(signal.SIGCONT)
            elif action == "freeze" and len(frozen) < 6:
                name = chance.choice(sorted(living))
                frozen[name] = living.pop(name)
                frozen[name].send_signal(signal.SIGSTOP)
            else:
                name = chance.choice(sorted(living))
                living.pop(name).kill()
                living[f"n{number}"] = start(f"n{number}")
            time.sleep(chance.uniform(0, 0.15))
        for process in frozen.values():
            process.send_signal(signal.SIGCONT)
        eventually(lambda: redis.zcard(keys.device("node", EIGHT[0])) == 4)
    # expect many changes of holders, and never two at a time
    rows = moments(log)
    assert len({(slot, holder) for _, slot, holder in rows}) > 12
    assert overlaps(rows) == []


@pytest.mark.parametrize(("per_device", "holding"), [(8, 64), (1, 8)])
def test_sixty_four_concurrent_claims_fill_every_slot_once(
    url: str, tmp_path: Path, per_device: int, holding: int
) -> None:
    # given eight devices and sixty-four threads of as many connections that start together
    claims: list[Slot | None] = []
    gate = threading.Barrier(64)

    def claim(number: int) -> None:
        client = connect(url)
        holder = leases(client, f"w{number}")
        gate.wait()
        claims.append(holder.claim(EIGHT, per_device))
        client.close()

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # expect every device to have exactly its slots taken
    slots = [slot for slot in claims if slot]
    assert (len(slots), len(set(slots))) == (holding, holding)
    assert set(Counter(slot.device for slot in slots).values()) == {per_device}
