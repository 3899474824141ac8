"""Bar: no script keeps Redis for more than 10 ms, however much there is to do, and nobody else
notices.

In one Redis: 100,000 waiting requests of which 10,000 are cancelled, 2,000 queues with 200 buckets
in each histogram that are read, 10,000 leases that expire at once, 10,000 waiting ids whose jobs
are gone, a purge of 1,000,000 waiting requests whose client is dead and never reads the replies,
that client forgotten, a queue with 100,000 kept results removed, 90,000 requests dropped whose
client is dead, and 10,000 devices forgotten whose nodes are gone.

Redis CPU of a call is what its main thread used between two looks (INFO cpu) around the call: the
looks themselves and the pings in between are part of it, about 0.1 ms. Beside it the longest script
of SLOWLOG, whose clock also runs while somebody else has the processor. Another process pings every
millisecond, beside the work and, before it, beside
nothing: the processor's other users are in both figures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hack.benchmarks.ended_rows import fill_ended
from hack.benchmarks.saturation import report
from scaletest.broker import Client, EmbeddedServer, Queues, connect, keys
from scaletest.broker.connection import Retrying
from scaletest.broker.fast_lane import FastLane
from scaletest.broker.heartbeat import Heartbeat, Watcher, reap
from scaletest.broker.scripts import Script
from scaletest.broker.snapshot import snapshot
from scaletest.model import Request

MOST_SCRIPT_MS, MOST_PING_MS, MOST_LIST_S = 10.0, 50.0, 5.0
PING_EVERY_S = 0.001
# Long enough that nobody is given up for another reason than that this program says so.
INTERVAL_US = 3_600_000_000
# Requests that wait, of the client ARGV[3]: what submit.lua writes, written a thousand at a time.
FILL = """
for i = ARGV[4], ARGV[5] do
  local id = ARGV[1] .. '-' .. i
  redis.call('HSET', 'rq:job:' .. id, 'data', ARGV[2], 'origin', 'q', 'status', 'queued',
    'enqueued_us', '1', 'reply_to', ARGV[3], 'client_ttl_us', '60000000', 'result_ttl', '0',
    'timeout', '60')
  redis.call('RPUSH', KEYS[1], id)
end
redis.call('HINCRBY', KEYS[2], 'submitted', ARGV[5] - ARGV[4] + 1)
"""


class Cost:
    """Redis CPU of script calls in the context, longest and in all, in milliseconds by script."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis
        self.longest: dict[str, float] = {}
        self.total: dict[str, float] = {}

    def __enter__(self) -> Cost:
        self._call = Script.__call__
        Script.__call__ = self._measured  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Script.__call__ = self._call  # type: ignore[method-assign]

    @property
    def _measured(self) -> Callable[..., Any]:
        call = self._call

        def measured(script: Script, *arguments: Any) -> Any:
            before = cpu_ms(self._redis)
            answer = call(script, *arguments)
            spent = cpu_ms(self._redis) - before
            self.longest[script.name] = max(spent, self.longest.get(script.name, 0.0))
            self.total[script.name] = spent + self.total.get(script.name, 0.0)
            return answer

        return measured


def cpu_ms(redis: Any) -> float:
    """What Redis's main thread has used so far."""
    row = redis.info("cpu")
    return 1e3 * float(row["used_cpu_user_main_thread"] + row["used_cpu_sys_main_thread"])


class Soak:
    """Much to do in one Redis, and doing it. Sizes are divided by `divisor`."""

    def __init__(self, url: str, divisor: int) -> None:
        self.redis: Any = connect(url)
        self._queues = Queues(self.redis)
        self._divisor = divisor
        self._client = Client(connect(url))
        self._own: list[str] = []

    def size(self, number: int) -> int:
        """So many, or fewer in a short trial."""
        return max(1, number // self._divisor)

    def prepare(self) -> None:
        """Write everything that there is to do. `none` is a client that does not exist."""
        self._fill("q", "none", self.size(90_000))
        requests = [Request(self._client.new_id(), "q") for _ in range(self.size(10_000))]
        self._client.submit(requests)
        self._own = [request.id for request in requests]
        self._spread(keys.rq_queue("q"))
        queues = [f"many-{number:05}" for number in range(self.size(2000))]
        self.redis.hset(keys.QUEUES, mapping=dict.fromkeys(queues, "{}"))
        fill_ended(self.redis, queues, dict.fromkeys(range(300, 500), 5))
        self._fill("leased", "none", self.size(10_000))
        self._lease("leased")
        self._queues.add("gone")
        self._write(
            lambda pipe, n: pipe.rpush(keys.rq_queue("gone"), f"gone-{n}"), self.size(10_000)
        )
        self._fill("purged", "dead", self.size(1_000_000))
        self.redis.xadd(keys.replies("dead"), {"w": ""})
        self._queues.add("removed")
        self._write(_keep_result, self.size(100_000))

    def cancel(self) -> dict[str, Any]:
        """Cancel a tenth of what waits, spread over the list; how long the list was wrong."""
        before, began = cpu_ms(self.redis), time.monotonic()
        cancelled = self._client.cancel("q", self._own)
        elapsed_s, spent_ms = time.monotonic() - began, cpu_ms(self.redis) - before
        self._client.close()  # its heartbeats would be part of other calls
        state = self._queues.state("q")
        right = (cancelled, state.waiting, state.balance) == (len(self._own), self.size(90_000), 0)
        return {"cancel_s": elapsed_s, "cancel_cpu_ms": spent_ms, "llen_right": right}

    def read(self) -> dict[str, Any]:
        """Read all queues, as a scrape does."""
        return {"pages": snapshot(self.redis).pages}

    def expire(self) -> dict[str, Any]:
        """Take back what 10,000 dead workers held."""
        self._beat()
        return {"requeued": reap(self.redis, "leased", 3, INTERVAL_US)[0]}

    def skip(self) -> dict[str, Any]:
        """A worker meets ids whose jobs are gone; over the bare connection, so this is a mean."""
        worker = Heartbeat(self.redis, "w", "gone", interval_s=3600.0)
        worker.start()
        lane = FastLane(self.redis, "w", "gone", 3600.0, Retrying("bench"))
        before, calls = cpu_ms(self.redis), self._scripts()
        lane.cycle(None)
        spent_ms, calls = cpu_ms(self.redis) - before, self._scripts() - calls
        lane.close()
        worker.stop()
        return {"cycle_mean_ms": spent_ms / calls}

    def purge(self) -> dict[str, Any]:
        """Purge a million requests of a client that never reads."""
        return {
            "purged": self._queues.purge("purged"),
            "unread_replies": self.redis.xlen(keys.replies("dead")),
        }

    def forget(self) -> dict[str, Any]:
        """Forget that client."""
        self.redis.zadd(keys.CLIENTS, {"dead": 1})
        self._beat()
        reap(self.redis, "purged", 3, INTERVAL_US)
        return {"forgotten": not self.redis.exists(keys.replies("dead"))}

    def remove(self) -> dict[str, Any]:
        """Remove a queue with kept results."""
        self._queues.remove("removed")
        return {"results_removed": self.size(100_000)}

    def watch(self) -> dict[str, Any]:
        """Drop a dead client's requests in a queue without workers; forget unused devices."""
        self.redis.delete(keys.QUEUES)
        self._queues.add("q")
        self._write(_lease_device, self.size(10_000))
        watcher, ticks = Watcher(self.redis, INTERVAL_US / 1e6, 3), 0
        while self.redis.llen(keys.rq_queue("q")) or self.redis.exists(keys.DEVICES):
            watcher.tick()
            ticks += 1
        return {"abandoned": self._queues.state("q").counters["client_gone"], "ticks": ticks}

    def _fill(self, queue: str, client: str, count: int) -> None:
        """So many requests of the client wait."""
        self._queues.add(queue)
        write = self.redis.register_script(FILL)
        for start in range(0, count, 1000):
            names = [keys.rq_queue(queue), keys.counters(queue)]
            write(
                keys=names,
                args=[f"{client}-{queue}", "x" * 80, client, start, min(start + 1000, count) - 1],
            )

    def _spread(self, key: str) -> None:
        """Mix the list, so that what is to be cancelled lies everywhere."""
        ids = self.redis.lrange(key, 0, -1)
        # a prime that divides no size of ours: neighbours come from all over the list
        mixed = [ids[number * 7919 % len(ids)] for number in range(len(ids))]
        self.redis.delete(key)
        self._write(lambda pipe, n: pipe.rpush(key, mixed[n]), len(mixed))

    def _lease(self, queue: str) -> None:
        """Each waiting request is held by a worker of its own, which is dead."""
        ids = [name.decode() for name in self.redis.lrange(keys.rq_queue(queue), 0, -1)]
        self.redis.delete(keys.rq_queue(queue))
        self._write(
            lambda pipe, n: pipe.zadd(keys.leases(queue), {f"{ids[n]}:1:dead-{n}": 1}), len(ids)
        )
        self._write(lambda pipe, n: pipe.zadd(keys.workers(queue), {f"dead-{n}": 1}), len(ids))

    def _write(self, write_entry: Callable[[Any, int], object], count: int) -> None:
        for start in range(0, count, 1000):
            pipe = self.redis.pipeline(transaction=False)
            for number in range(start, min(start + 1000, count)):
                write_entry(pipe, number)
            pipe.execute()

    def _beat(self) -> None:
        self.redis.set(keys.PULSE, self.redis.time()[0] * 1_000_000)

    def _scripts(self) -> int:
        return int(self.redis.info("commandstats")["cmdstat_evalsha"]["calls"])


def _lease_device(pipe: Any, number: int) -> None:
    device = keys.device(f"gone-{number}", "0")
    pipe.zadd(device, {"0:w:n": 1})
    pipe.sadd(keys.DEVICES, device)


def _keep_result(pipe: Any, number: int) -> None:
    pipe.zadd(keys.rq_finished("removed"), {f"kept-{number}": 9e9})
    pipe.hset(keys.rq_job(f"kept-{number}"), "data", "x" * 80)
    pipe.xadd(f"rq:results:kept-{number}", {"a": "b"})


@contextmanager
def pinged(url: str, into: dict[str, float]) -> Iterator[None]:
    """Ping meanwhile from another process; median, 99.9 % and longest in milliseconds."""
    line = [sys.executable, "-m", "hack.benchmarks.scripts", "--ping", url]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            into |= json.loads(process.communicate("")[0])


def ping(url: str) -> None:
    """Ping until standard input ends, then print how long it took."""
    import threading

    redis = connect(url)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print("ready", flush=True)
    times: list[float] = []
    while not ended.wait(PING_EVERY_S) or len(times) < 2:
        began = time.perf_counter()
        redis.ping()
        times.append(1e3 * (time.perf_counter() - began))
    last = statistics.quantiles(times, n=1000)[-1]
    row = {
        "pings": len(times),
        "p50_ms": statistics.median(times),
        "p999_ms": last,
        "max_ms": max(times),
    }
    print(json.dumps(row), flush=True)


def soak(work: Soak) -> dict[str, Any]:
    """Do all of it; what each part showed, and what the scripts cost."""
    work.redis.config_set("slowlog-log-slower-than", 1000)
    work.redis.config_set("slowlog-max-len", 10_000)
    work.redis.slowlog_reset()
    row: dict[str, Any] = {}
    with Cost(work.redis) as cost:
        for part in (
            work.cancel,
            work.read,
            work.expire,
            work.skip,
            work.purge,
            work.forget,
            work.remove,
            work.watch,
        ):
            began = time.monotonic()
            row |= part()
            print(
                f"{part.__name__:8} {time.monotonic() - began:6.1f} s", file=sys.stderr, flush=True
            )
    slow = [
        entry["duration"] / 1e3
        for entry in work.redis.slowlog_get(10_000)
        if b"EVAL" in entry["command"]
    ]
    return {
        "longest_ms": max(cost.longest.values()),
        "longest_by_script_ms": cost.longest,
        "total_by_script_ms": cost.total,
        "slowlog_ms": max(slow, default=1.0),
        **row,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--idle-seconds", type=float, default=20.0, help="how long to ping beside nothing"
    )
    parser.add_argument(
        "--divisor", type=int, default=1, help="a short trial: everything so many times smaller"
    )
    parser.add_argument("--ping", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ping:
        ping(options.ping)
        return 0
    idle: dict[str, float] = {}
    beside: dict[str, float] = {}
    with EmbeddedServer(tcp=True) as server:
        with pinged(server.url, idle):
            time.sleep(options.idle_seconds)
        work = Soak(server.url, options.divisor)
        work.prepare()
        with pinged(server.url, beside):
            row = soak(work)
    short = row["longest_ms"] <= MOST_SCRIPT_MS and beside["p999_ms"] < MOST_PING_MS
    right = row["llen_right"] and row["cancel_s"] < MOST_LIST_S
    return report(
        "no script keeps Redis for more than 10 ms",
        short and right,
        **row,
        ping=beside,
        ping_idle=idle,
    )


if __name__ == "__main__":
    sys.exit(main())
