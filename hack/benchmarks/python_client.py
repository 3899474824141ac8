"""The bar of the Python client: on one worker `map` keeps 80 % of the load loop's rate, and with
10,000 in flight the whole process needs less than 100 MB. Prints a line of JSON.

Loop and `map` take turns, so that both meet the same machine; the processor time of this process
for a request depends less on what else runs there. Beside it: how long `run` takes with
an idle worker, and how long `import scaletest` takes in a fresh interpreter.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from typing import NamedTuple

import scaletest
from hack.benchmarks.saturation import report
from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.load import ClosedLoop
from scaletest.model import Record

REQUESTS, IN_FLIGHT, MANY, RUNS, IMPORTS = 8_000, 64, 10_000, 500, 15
LEAST_RATIO, MOST_MB, MOST_IMPORT_S = 0.8, 100.0, 0.03
IMPORT = "import time; t = time.perf_counter(); import scaletest; print(time.perf_counter() - t)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--flight", metavar="URL", help="measure memory only, of this process")
    options = parser.parse_args()
    if options.flight:
        print(json.dumps(flight_mb(options.flight)))
        return 0
    with EmbeddedServer(tcp=True) as server, worker(server.url):
        loops, maps = zip(
            *[(loop(server.url), mapping(server.url)) for _ in range(options.rounds)], strict=True
        )
        ratios = sorted(
            mapped.per_s / looped.per_s for looped, mapped in zip(loops, maps, strict=True)
        )
        round_trips_ms = run_times_ms(server.url)
        line = [sys.executable, "-m", "hack.benchmarks.python_client", "--flight", server.url]
        memory_mb = float(subprocess.check_output(line))
    import_s = statistics.median(
        float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(IMPORTS)
    )
    ratio = statistics.median(ratios)
    return report(
        "python-client",
        ratio >= LEAST_RATIO and memory_mb < MOST_MB and import_s < MOST_IMPORT_S,
        rounds=options.rounds,
        loop_per_s=round(statistics.median(each.per_s for each in loops)),
        map_per_s=round(statistics.median(each.per_s for each in maps)),
        ratio=round(ratio, 3),
        least_ratio=round(ratios[0], 3),
        most_ratio=round(ratios[-1], 3),
        loop_cpu_us=round(statistics.median(each.cpu_us for each in loops)),
        map_cpu_us=round(statistics.median(each.cpu_us for each in maps)),
        in_flight=MANY,
        memory_mb=round(memory_mb, 1),
        run_median_ms=round(statistics.median(round_trips_ms), 3),
        run_p99_ms=round(statistics.quantiles(round_trips_ms, n=100)[98], 3),
        import_ms=round(1e3 * import_s, 2),
    )


@contextmanager
def worker(url: str) -> Iterator[None]:
    """Serve the queue `bench` with one worker that sleeps as long as a request says."""
    queues = Queues(connect(url))
    queues.add("bench")
    line = [sys.executable, "-m", "scaletest", "worker", "--queue", "bench", "--redis-url", url]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(line, stdout=log, stderr=log)
        while not queues.worker_names("bench"):
            time.sleep(0.05)
        yield
        process.terminate()
        process.wait(20)


class FeedCost(NamedTuple):
    """Requests a second, and microseconds of this process's processor time for each."""

    per_s: float
    cpu_us: float


def turn(feed: Callable[[], int]) -> FeedCost:
    """Time what submits requests and counts their replies."""
    began, cpu_began = time.perf_counter(), time.process_time()
    count = feed()
    cpu_s = time.process_time() - cpu_began
    return FeedCost(count / (time.perf_counter() - began), 1e6 * cpu_s / count)


def loop(url: str) -> FeedCost:
    """Let the load loop submit."""
    with Client(connect(url)) as client:
        return turn(partial(looped, client))


def looped(client: Client) -> int:
    """Count the replies of the load loop, which all must be good."""
    records: list[Record] = []
    load = ClosedLoop(client, "bench", records.append, arguments=("0",), total=REQUESTS)
    load.set_parallel(IN_FLIGHT)
    while not load.wait_idle(5.0):
        load.check()
    load.close()
    assert all(record.ok for record in records)
    return len(records)


def mapping(url: str) -> FeedCost:
    """Let `map` submit."""
    with scaletest.Client(url) as client:
        return turn(partial(mapped, client, REQUESTS, IN_FLIGHT))


def mapped(client: scaletest.Client, total: int, in_flight: int) -> int:
    """Count the replies of `map`, which all must be good."""
    count = 0
    for reply in client.map("bench", repeat("0", total), in_flight=in_flight):
        assert reply.ok
        count += 1
    assert count == total
    return count


def run_times_ms(url: str) -> Sequence[float]:
    """Milliseconds that `run` takes, one request at a time."""
    times_ms = []
    with scaletest.Client(url) as client:
        for _ in range(RUNS):
            began = time.perf_counter()
            assert client.run("bench", 0).ok
            times_ms.append(1e3 * (time.perf_counter() - began))
    return times_ms


def flight_mb(url: str) -> float:
    """Most megabytes of memory of this process, with MANY in flight."""
    with scaletest.Client(url) as client:
        mapped(client, 4 * MANY, MANY)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
