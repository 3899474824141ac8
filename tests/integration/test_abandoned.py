"""Requests of dead clients on queues that no worker serves: the exporter's watcher drops them, and
nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import Any

import rq

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.heartbeat import MOST_PIECES, PIECE, Watcher
from scaletest.model import Request
from tests.conftest import eventually
from tests.integration.conftest import Export
from tests.integration.lanes import abandon, waiting

# A client that submits five requests and then only lives, with a shorter deadline than clients
# have.
CLIENT = """
import sys, time
from scaletest.broker import Client, client, connect
from scaletest.model import Request
client.HEARTBEAT_S, client.CLIENT_TTL_S = 0.2, 2.0
mine = Client(connect(sys.argv[1]), name="dead")
mine.submit([Request(mine.new_id(), "q") for _ in range(5)])
print("submitted", flush=True)
time.sleep(3600)
"""


def desired_workers(exporter: str) -> int:
    with urllib.request.urlopen(f"{exporter}/api/v1/queues/q", timeout=60) as answer:
        return int(json.loads(answer.read())["desired_workers"])


def ended_as_client_gone(queues: Queues) -> int:
    return queues.state("q").counters.get("client_gone", 0)


def test_requests_of_a_killed_client_are_dropped_without_any_worker(
    url: str, redis: Any, client: Client, queues: Queues, export: Export
) -> None:
    # given no worker, an exporter that looks often and wants what is wanted now, requests of a
    # client that lives, a job of stock RQ, and requests of a client that is killed
    exporter = export(url, "--heartbeat", "0.2", "--window", "1")
    living = [client.new_id() for _ in range(2)]
    client.submit([Request(name, "q") for name in living])
    foreign = rq.Queue("q", connection=redis).enqueue("os.getcwd").id
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, url], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "submitted\n"
        process.kill()
    # expect its requests to end in the books, and workers to be wanted for the others alone
    eventually(lambda: ended_as_client_gone(queues) == 5)
    assert waiting(redis) == [*living, foreign]
    # the job of stock RQ counts as submitted when it is taken
    assert queues.state("q").balance == -1
    assert not redis.keys("rq:job:dead-*")
    eventually(lambda: desired_workers(exporter) == 3)


def test_each_tick_checks_a_bounded_part_and_continues_after_the_last(
    redis: Any, queues: Queues, url: str
) -> None:
    # given a request of a dead client behind more than a tick looks at
    redis.rpush(keys.rq_queue("q"), *(f"job-{number}" for number in range(PIECE * MOST_PIECES)))
    abandon(redis, "dead-1")
    watcher = Watcher(connect(url), 60.0, 3)
    watcher.tick()
    assert ended_as_client_gone(queues) == 0
    watcher.tick()
    assert ended_as_client_gone(queues) == 1
    assert len(waiting(redis)) == PIECE * MOST_PIECES
    # and then from the front again
    abandon(redis, "dead-2")
    redis.lmove(keys.rq_queue("q"), keys.rq_queue("q"), "RIGHT", "LEFT")
    watcher.tick()
    assert ended_as_client_gone(queues) == 2


def test_a_queue_with_only_abandoned_requests_is_emptied_in_one_tick(
    redis: Any, queues: Queues, url: str
) -> None:
    abandon(redis, *(f"dead-{number}" for number in range(10 * PIECE)))
    Watcher(connect(url), 60.0, 3).tick()
    assert (queues.state("q").waiting, ended_as_client_gone(queues)) == (0, 10 * PIECE)


def test_abandoned_requests_in_the_middle_are_replaced_by_the_last_request(
    redis: Any, queues: Queues, url: str
) -> None:
    # given requests of a dead client in the middle of a queue in which counting to them would take
    # long
    front, back = ([f"{side}-{number}" for number in range(30_000)] for side in ("front", "back"))
    redis.rpush(keys.rq_queue("q"), *front)
    abandon(redis, *(f"dead-{number}" for number in range(100)))
    redis.rpush(keys.rq_queue("q"), *back)
    watcher = Watcher(connect(url), 60.0, 3)

    def dropped() -> bool:
        watcher.tick()
        return ended_as_client_gone(queues) == 100

    eventually(dropped)
    # expect that nothing else is lost, and that only the last hundred changed their places
    left = waiting(redis)
    assert left[: len(front)] == front
    assert sorted(left[len(front) : len(front) + 100]) == sorted(back[-100:])
    assert left[len(front) + 100 :] == back[:-100]
