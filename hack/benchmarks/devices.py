"""Bars of devices: leases under failures, and the scaling of a transcode on two cores.

A line of JSON a bar.

full: 64 workers started at once on 8 fake devices with --per-device 8 lease exactly 8 slots of each
device. none-free: with --per-device 1, 56 of them end, report that no device is free, and name the
option that shares
    devices.
sequences: workers under load on 2 devices of 4 slots are killed, frozen, woken and restarted in
random
    sequences; a recorder in each writes down every moment at which it is sure of its slot. No slot
    may have two workers at a time.
transcode: one thread a worker on two cores, up to 8 workers, three repeats: 1 to 2 passes at
--scale 1.6, 2 to
    4 fails, and the interval of the capped law's ceiling contains the throughput of 8 workers.
    Needs a quiet machine with two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaletest.analysis.growth import SEED
from scaletest.analysis.law import fit, law_interval
from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.devices import device_leases
from scaletest.load import ClosedLoop

NODE = "bar"
# Short, so that many leases expire during sequences; other bars use the worker's default.
HEARTBEAT_S = 0.5
# A worker with an additional thread that records when it is sure of which slot. A tenure ends when
# it is not.
RECORDER = """
import sys, threading, time
from scaletest.broker.devices import DeviceLeases
from scaletest.cli.main import main
path, name = sys.argv.pop(1), sys.argv.pop(1)
claim, current = DeviceLeases.claim, []
def recorded(self, *arguments):
    before = self.slot
    slot = claim(self, *arguments)
    if slot is not None and slot != before:
        self.tenure = getattr(self, "tenure", 0) + 1
    current[:] = [self]
    return slot
DeviceLeases.claim = recorded
def record():
    with open(path, "a", buffering=1) as log:
        while True:
            time.sleep(0.004)
            for leases in current:
                tenure = leases.tenure if hasattr(leases, "tenure") else 0
                now = time.monotonic()
                slot = leases.slot_at(now)
                # a claim in between would attribute an old moment to a new tenure
                if slot and tenure == getattr(leases, "tenure", 0):
                    log.write(f"{now!r} {slot.device} {slot.number} {name}/{tenure}\\n")
threading.Thread(target=record, daemon=True).start()
main()
"""


@dataclass(slots=True)
class Fleet:
    """Worker processes on fake devices."""

    url: str
    devices: list[Path]
    log: Path
    living: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    frozen: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ended: list[subprocess.Popen[bytes]] = field(default_factory=list)
    count: int = 0

    def start(self, *arguments: str, recorder: bool = False) -> None:
        """Start a worker.

        recorder: it records when it is sure of its slot, and its leases are short.
        """
        name = f"w{self.count}"
        self.count += 1
        begin = ["-m", "scaletest"]
        if recorder:
            begin = ["-c", RECORDER, str(self.log.parent / "moments"), name]
            arguments = ("--heartbeat", f"{HEARTBEAT_S:g}", *arguments)
        pattern = f"{self.devices[0].parent}/fake*"
        line = [
            sys.executable,
            *begin,
            "worker",
            "--queue",
            "q",
            "--name",
            name,
            "--node-env",
            "BAR_NODE",
        ]
        line += ["--device-glob", pattern, *arguments, "--", "sleep", "0.02"]
        environment = {**os.environ, "SCALETEST_REDIS_URL": self.url, "BAR_NODE": NODE}
        with (self.log.parent / f"{name}.log").open("wb") as log:
            self.living[name] = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    def output(self, name: str) -> str:
        """Read a worker's log."""
        return (self.log.parent / f"{name}.log").read_text(errors="replace")

    def kill(self, name: str) -> None:
        """Kill a worker, frozen or not."""
        process = self.living.pop(name, None) or self.frozen.pop(name)
        process.kill()
        process.wait()

    def freeze(self, name: str) -> None:
        """Stop a worker by SIGSTOP."""
        self.frozen[name] = self.living.pop(name)
        self.frozen[name].send_signal(signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """Continue a frozen worker."""
        self.living[name] = self.frozen.pop(name)
        self.living[name].send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill all workers."""
        for name in [*self.living, *self.frozen]:
            self.kill(name)


@contextmanager
def fleet(devices: int) -> Iterator[tuple[Fleet, Any]]:
    """Create fake devices and a Redis; yields a fleet without workers, and the Redis."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="scaletest-bar-")))
        (folder / "dev").mkdir()
        paths = [folder / "dev" / f"fake{number}" for number in range(devices)]
        for path in paths:
            path.touch()
        url = stack.enter_context(EmbeddedServer()).url
        redis = connect(url)
        stack.callback(redis.close)
        Queues(redis).add("q")
        workers = Fleet(url, paths, folder / "log")
        stack.callback(workers.close)
        yield workers, redis


def leased(here: Fleet, redis: Any) -> Counter[str]:
    """Count the leased slots by device."""
    leases = device_leases(redis, NODE, [str(path) for path in here.devices])
    return Counter(lease.device for lease in leases if lease.left_s > 0)


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; returns whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def full(_: argparse.Namespace) -> dict[str, Any]:
    """Start 64 workers at once, 8 for each device."""
    with fleet(8) as (here, redis):
        for _ in range(64):
            here.start("--per-device", "8", "--device-wait", "120")
        until(lambda: sum(leased(here, redis).values()) == 64, 240)
        alive = sum(process.poll() is None for process in here.living.values())
        counts = sorted(leased(here, redis).values())
    return {
        "workers": 64,
        "alive": alive,
        "held": counts,
        "pass": counts == [8] * 8 and alive == 64,
    }


def none_free(_: argparse.Namespace) -> dict[str, Any]:
    """Start 64 workers at once, of which 8 get a device."""
    with fleet(8) as (here, redis):
        for _ in range(64):
            here.start("--per-device", "1", "--device-wait", "20")
        until(
            lambda: sum(process.poll() is not None for process in here.living.values()) >= 56, 300
        )
        counts = sorted(leased(here, redis).values())
        codes = Counter(process.poll() for process in here.living.values())
        gone = [name for name, process in here.living.items() if process.poll() is not None]
        texts = [here.output(name) for name in gone]
    without_device = sum(
        "no device is free: 8 of 8 slots of 8 devices are leased" in text for text in texts
    )
    named = sum("--per-device 2" in text for text in texts)
    report = {
        "workers": 64,
        "held": counts,
        "ended": codes[2],
        "said_none_free": without_device,
        "named_option": named,
    }
    return {
        **report,
        "pass": (
            counts == [1] * 8 and (codes[None], codes[2], without_device, named) == (8, 56, 56, 56)
        ),
    }


def sequence(here: Fleet, chance: random.Random) -> Counter[str]:
    """Do three to six random actions to workers, some longer than a lease; counts them."""
    done: Counter[str] = Counter()
    for _ in range(chance.randint(3, 6)):
        action = chance.choice(["kill", "freeze", "wake", "restart"])
        if action == "freeze" and len(here.frozen) < 6:
            here.freeze(chance.choice(sorted(here.living)))
        elif action == "wake" and here.frozen:
            here.wake(chance.choice(sorted(here.frozen)))
        elif action in ("kill", "restart"):
            here.kill(chance.choice(sorted([*here.living, *here.frozen])))
            if action == "kill":
                time.sleep(chance.uniform(0, 3 * HEARTBEAT_S))
            here.start("--per-device", "4", "--device-wait", "600", recorder=True)
        else:
            continue
        done[action] += 1
        time.sleep(chance.uniform(0, 1.5 * HEARTBEAT_S))
    return done


def sequences(options: argparse.Namespace) -> dict[str, Any]:
    """Run random sequences against twelve workers that compete for eight slots, under load."""
    chance, done = random.Random(options.seed), Counter[str]()
    with fleet(2) as (here, redis), Client(connect(here.url)) as client:
        answered: Counter[str] = Counter()
        load = ClosedLoop(client, "q", lambda record: answered.update([record.reply.outcome.value]))
        for _ in range(12):
            here.start("--per-device", "4", "--device-wait", "600", recorder=True)
        began = until(lambda: sum(leased(here, redis).values()) == 8, 300)
        load.set_parallel(16, 1)
        for _ in range(options.sequences):
            done += sequence(here, chance)
        for name in list(here.frozen):
            here.wake(name)
        ended = until(lambda: sorted(leased(here, redis).values()) == [4, 4], 300)
        load.set_parallel(0)
        idle = load.wait_idle(300)
        load.close()
        tenures = moments(here.log.parent / "moments")
    wrong = overlaps(tenures)
    report = {
        "sequences": options.sequences,
        "seed": options.seed,
        "actions": dict(done),
        "requests": dict(answered),
    }
    report |= {
        "moments": sum(tenure.count for tenure in tenures),
        "tenures": len(tenures),
        "overlaps": len(wrong),
        "first": wrong[:3],
    }
    report |= {"all_held_in_the_end": ended, "all_answered": idle}
    return {
        **report,
        "pass": began and ended and idle and not wrong and len(tenures) > options.sequences // 2,
    }


@dataclass(slots=True)
class Tenure:
    """The time in which one worker was sure of one slot, in monotonic seconds."""

    slot: str
    holder: str
    first: float
    last: float
    count: int = 1


def moments(path: Path) -> list[Tenure]:
    """Read the recorded tenures; a killed worker may leave half a line, which is skipped."""
    tenures: dict[tuple[str, str], Tenure] = {}
    for line in path.read_text().splitlines():
        parts = line.split()
        if len(parts) != 4 or "/" not in parts[3]:
            continue
        at, slot, holder = float(parts[0]), f"{parts[1]}#{parts[2]}", parts[3]
        tenure = tenures.setdefault((slot, holder), Tenure(slot, holder, at, at, 0))
        tenure.first, tenure.last, tenure.count = (
            min(tenure.first, at),
            max(tenure.last, at),
            tenure.count + 1,
        )
    return list(tenures.values())


def overlaps(tenures: list[Tenure]) -> list[str]:
    """List the slots of which two workers were sure at the same time."""
    by: dict[str, list[Tenure]] = defaultdict(list)
    for tenure in tenures:
        by[tenure.slot].append(tenure)
    wrong = []
    for slot, of_slot in by.items():
        latest: Tenure | None = None
        for tenure in sorted(of_slot, key=lambda other: other.first):
            if latest and tenure.first <= latest.last:
                wrong.append(
                    f"{slot}: {latest.holder} and {tenure.holder} for"
                    f" {latest.last - tenure.first:.3f} s"
                )
            if latest is None or tenure.last > latest.last:
                latest = tenure
    return wrong


def transcode(options: argparse.Namespace) -> dict[str, Any]:
    """Validate transcodes on the CPU."""
    with tempfile.TemporaryDirectory(prefix="scaletest-bar-") as folder:
        make = [
            "media",
            "make",
            "--folder",
            folder,
            "--codec",
            "h264",
            "--size",
            "320x240",
            "--frames",
            "150",
        ]
        subprocess.run([sys.executable, "-m", "scaletest", *make], check=True, capture_output=True)
        stream = next(Path(folder).glob("*.h264"))
        workload = ["transcode", "--input", str(stream), "--output-codec", "h264", "--threads", "1"]
        line = [
            "validate",
            "--local",
            "--limit",
            "8",
            "--repeats",
            "3",
            "--scale",
            "1.6",
            "--seconds",
            "0.5",
        ]
        line += [
            "--max-step",
            f"{options.max_step:g}",
            "--run-dir",
            f"{folder}/run",
            "--format",
            "json",
            "--",
            *workload,
        ]
        done = subprocess.run(
            [sys.executable, "-m", "scaletest", *line], capture_output=True, text=True, check=False
        )
        report = json.loads(done.stdout) if done.stdout else {"steps": []}
        if len(report["steps"]) < 4:
            return {"pass": False, "error": report.get("verdict", done.stderr[-400:])}
        return _judged(report)


def _judged(report: dict[str, Any]) -> dict[str, Any]:
    steps = {step["workers"]: step for step in report["steps"]}
    kinds = {
        f"{workers // 2}-{workers}": steps[workers]["ratio"]["verdict"]
        for workers in (2, 4)
        if workers in steps
    }
    # the interval is that of the capped law, whichever law the run has chosen
    points: list[tuple[float, float]] = []
    for workers, step in steps.items():
        points += [(float(workers), repeat["throughput_per_s"]) for repeat in step["repeats"]]
    ceiling = law_interval(fit("capped", points), points, random.Random(SEED)).ceiling
    eight = steps.get(8, {}).get("throughput_per_s")
    inside = ceiling is not None and eight is not None and ceiling.low <= eight <= ceiling.high
    return {
        "verdicts": kinds,
        "ratios": {name: steps[int(name.split("-")[1])]["ratio"]["value"] for name in kinds},
        "law": (report["law"] or {}).get("name"),
        "ceiling_per_s": ceiling.to_dict() if ceiling else None,
        "rate_at_8_per_s": eight,
        "frames_per_s_at_8": steps.get(8, {}).get("work", {}).get("frames", {}).get("per_s"),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "pass": kinds == {"1-2": "PASS", "2-4": "FAIL"} and inside,
    }


BARS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "full": full,
    "none-free": none_free,
    "sequences": sequences,
    "transcode": transcode,
}


def main() -> int:
    """Run the named bars, by default all except transcode; 0 when all pass."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "bars", nargs="*", metavar="BAR", help=f"{', '.join(BARS)} [default: the first three]"
    )
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--max-step", type=float, default=60.0)
    options = parser.parse_args()
    unknown = set(options.bars) - set(BARS)
    if unknown:
        parser.error(f"unknown bar {', '.join(sorted(unknown))}; the bars are {', '.join(BARS)}")
    # ends the workers too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    holds = True
    for name in options.bars or list(BARS)[:3]:
        report = BARS[name](options)
        holds = holds and report["pass"]
        print(json.dumps({"bar": f"devices {name}", **report}), flush=True)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
