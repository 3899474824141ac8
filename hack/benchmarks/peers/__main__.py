"""Measures our worker and the task queues that people would use instead, on one embedded server.

TCP loopback, no persistence, empty jobs, results stored, one worker process, each peer at its best
documented setting (its adapter says which). The order is shuffled anew in every round, by a fixed
seed. A table, then one line of JSON.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from hack.benchmarks.peers import report
from hack.benchmarks.peers.catalogue import NAMES, OURS, STOCK, Peer, load
from hack.benchmarks.peers.drain import Bench, Failed
from hack.benchmarks.peers.environment import NotInstalled, programs
from hack.benchmarks.peers.machine import LOUD_CORES, wait_for_quiet
from scaletest.broker import EmbeddedServer, connect
from scaletest.processes.guard import Guard

SEED = 20_240_229
LEAST_JOBS = 150
FLEETS = (OURS, STOCK)
# Seconds that a run spends on waiting for busy neighbours and on repeating what they disturbed.
PATIENCE_S = 120.0
LONGEST_WAIT_S = 5.0


class PeerComparison:
    """All rounds; keeps what was measured, and why a peer was not."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.peers = {name: load(name) for name in NAMES if name in options.only}
        self.rounds: report.Rounds = {name: {} for name in self.peers}
        self.fleets: dict[str, dict[int, list[dict[str, float]]]] = {}
        self.failed: dict[str, str] = {}
        self._patience_s = PATIENCE_S
        self._rates = {name: peer.rate for name, peer in self.peers.items()}
        self._benches: dict[str, Bench] = {}

    def run(self) -> None:
        """Install what is missing, then measure."""
        guard = Guard()
        try:
            with EmbeddedServer(tcp=True) as server:
                redis = connect(server.url)
                for peer in self.peers.values():
                    self._prepare(redis, server, peer, guard)
                self._measure()
        finally:
            guard.close()

    def _measure(self) -> None:
        chance = random.Random(SEED)
        for number in range(1, self._options.rounds + 1):
            order = [name for name in self.peers if name not in self.failed]
            chance.shuffle(order)
            for name in order:
                self._attempt(name, lambda name=name, number=number: self._single(number, name))
            if number <= self._options.fleet_rounds:
                for size in self._options.fleet:
                    for name in FLEETS if number % 2 else reversed(FLEETS):
                        self._attempt(name, lambda name=name, size=size: self._fleet(name, size))

    def _prepare(self, redis: Any, server: EmbeddedServer, peer: Peer, guard: Guard) -> None:
        try:
            self._benches[peer.name] = Bench(redis, server, peer, programs(peer), guard)
        except NotInstalled as error:
            self._fail(peer.name, str(error))

    def _attempt(self, name: str, measure: Any) -> None:
        """Take one measurement of a peer; one that fails is left out from then on."""
        if name not in self._benches or name in self.failed:
            return
        try:
            measure()
        except Failed as error:
            self._fail(name, str(error))

    def _quieter(self, measure: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Measure when the machine is quiet, repeat once if not, keep the quieter; in patience."""
        self._patience_s -= wait_for_quiet(min(LONGEST_WAIT_S, self._patience_s))
        row = measure()
        if row["foreign_cores"] > LOUD_CORES and self._patience_s > 0:
            start = time.monotonic()
            row = min(row, measure(), key=lambda attempt: attempt["foreign_cores"])
            self._patience_s -= time.monotonic() - start
        return row

    def _single(self, number: int, name: str) -> None:
        count = max(
            LEAST_JOBS, int(self._rates[name] * self._options.seconds) + self.peers[name].ahead
        )
        row = self._quieter(lambda: self._benches[name].single(count, self._options.trips))
        self.rounds[name][number] = row
        self._rates[name] = row["per_s"]
        print(
            f"round {number}  {self.peers[name].title:34} {row['per_s']:8,.0f} jobs/s in"
            f" {row['seconds']:4.1f} s  Redis {row['redis_us']:5.0f} us  {row['commands']:5.1f}"
            f" commands  {row['bytes']:7,.0f} bytes  others {row['foreign_cores']:.1f} cores"
            + (f"  round trip {row['p50_s'] * 1000:6.2f} ms" if "p50_s" in row else ""),
            flush=True,
        )

    def _fleet(self, name: str, size: int) -> None:
        """Twice the work of one worker at most: no machine with few cores does more."""
        count = max(LEAST_JOBS, int(self._rates[name] * self._options.seconds * min(size, 2)))
        row = self._quieter(lambda: self._benches[name].fleet(size, count))
        self.fleets.setdefault(name, {}).setdefault(size, []).append(row)
        print(
            f"{size} workers  {self.peers[name].title:32} {row['per_s']:8,.0f} jobs/s in"
            f" {row['seconds']:4.1f} s  others {row['foreign_cores']:.1f} cores",
            flush=True,
        )

    def _fail(self, name: str, reason: str) -> None:
        self.failed[name] = reason
        print(f"error: {reason}", file=sys.stderr, flush=True)

    def to_dict(self) -> dict[str, Any]:
        """One line for machines."""
        return {
            "schema_version": 1,
            "kind": "bench.peers",
            "rounds": self._options.rounds,
            "seed": SEED,
            "ratio": report.ratios(self.rounds, self.peers),
            "peers": report.measures_by_peer(self.rounds),
            "versions": {name: list(peer.dependencies) for name, peer in self.peers.items()},
            "workers": {name: fleet_spreads(sizes) for name, sizes in self.fleets.items()},
            "failed": self.failed,
        }


def fleet_spreads(sizes: dict[int, list[dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """Rates and foreign work by number of workers."""
    spreads: dict[str, dict[str, Any]] = {}
    for size, rows in sizes.items():
        best = report.quiet_rows(rows)
        rates = [row["per_s"] for row in best]
        foreign = [row["foreign_cores"] for row in best]
        spreads[str(size)] = {
            "per_s": report.median_and_range(rates),
            "foreign_cores": report.median_and_range(foreign),
        }
    return spreads


def parse() -> argparse.Namespace:
    """Read the options; ours is always measured, since the ratios are about it."""
    parser = argparse.ArgumentParser(prog="./hack/bench --peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--only", default=",".join(NAMES), metavar="NAME,...", help="of: " + ", ".join(NAMES)
    )
    parser.add_argument(
        "--quick", action="store_true", help="one short round: does everything run?"
    )
    options = parser.parse_args()
    options.only = {OURS, *options.only.split(",")}
    unknown = options.only - set(NAMES)
    if unknown or options.rounds < 1:
        parser.error(
            f"no such peer: {', '.join(sorted(unknown))}" if unknown else "--rounds needs 1 or more"
        )
    options.seconds, options.trips, options.fleet, options.fleet_rounds = (
        3.0,
        500,
        (1, 2, 4, 8),
        min(2, options.rounds),
    )
    if options.quick:
        options.rounds, options.seconds, options.trips, options.fleet, options.fleet_rounds = (
            1,
            1.0,
            100,
            (1, 2),
            1,
        )
    return options


def main() -> int:
    """0, or 1 when a peer could not be measured."""
    run = PeerComparison(parse())
    run.run()
    print(f"\n{report.table(run.rounds, run.peers)}")
    if run.fleets:
        print(
            f"\nseveral workers on one queue, jobs/s\n{report.fleet_table(run.fleets, run.peers)}"
        )
    print()
    for key, row in report.ratios(run.rounds, run.peers).items():
        label = f"{key.replace('_', ' ')} ({row['to']})"
        print(
            f"{label:48} {row['median']:7.3f} ({row['min']:.3f} to {row['max']:.3f}),"
            f" {row['quiet']} quiet rounds"
        )
    print(json.dumps(run.to_dict()))
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
