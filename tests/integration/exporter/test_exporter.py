"""The exporter as a process: load on, worker killed, Redis stopped and started again, several
scrapers at once. Its watcher drops the requests of dead clients that no worker serves, and nothing
else.
"""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import rq
from prometheus_client.parser import text_string_to_metric_families

from scaletest.broker import Client, Queues, connect, embedded, keys
from scaletest.broker.reaping import CALLS_A_TICK, CHECK_BATCH, Watcher
from scaletest.model import Request
from tests.conftest import call_here, eventually, wait_for
from tests.integration.conftest import Export
from tests.integration.lanes import abandon, waiting
from tests.unit.cli.test_hostile_texts import NAME, obeyed


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def scrape(base: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(get(base + "/metrics")[1])
    rows = [sample for family in families for sample in family.samples]
    return {
        (row.name, *(f"{k}={v}" for k, v in sorted(row.labels.items()))): row.value for row in rows
    }


def test_metrics_agree_with_a_queue_under_load(
    client: Client, url: str, start: Any, export: Export
) -> None:
    # given a worker, fifty requests done, and ten that wait
    base = export(url, "--intel-names")
    start("--name", "w")
    ids = [Request(client.new_id(), "q", ("0.01",)) for _ in range(50)]
    client.submit(ids)
    wait_for(client, 50)
    Queues(connect(url)).pause("q")
    client.submit([Request(client.new_id(), "q", ("0.01",)) for _ in range(10)])
    # expect its numbers, the same for scrapers at once
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: scrape(base), range(8)))
    for metrics in answers:
        assert metrics["scaletest_up",] == 1
        assert metrics["scaletest_requests_total", "outcome=succeeded", "queue=q"] == 50
        assert (
            metrics["scaletest_queue_waiting", "queue=q"]
            == metrics["hpa_queue_waiting", "name=q"]
            == 10
        )
        assert metrics["scaletest_request_run_seconds_count", "queue=q"] == 50
        assert metrics["scaletest_queue_run_max_seconds", "queue=q"] >= 0.0099
        assert metrics["scaletest_queue_desired_workers", "queue=q"] >= 1
        assert metrics["scaletest_queue_paused", "queue=q"] == 1
    assert get(base + "/readyz")[0] == 200


def test_foreign_entries_are_left_out_and_reach_no_terminal(
    url: str, redis: Any, queues: Queues, export: Export
) -> None:
    redis.hset(keys.QUEUES, NAME, '{"maximum": 0}')
    redis.zadd(keys.workers("q"), {NAME: 9e18})
    text = get(export(url) + "/metrics")[1]
    assert 'queue="q"' in text
    assert "scaletest_queues_unreadable 1.0" in text
    done = call_here("worker", "--queue", "nope", "--redis-url", url)
    assert "WORD" in done.stderr and "Traceback" not in done.stderr
    assert obeyed(text, done.stderr) == []


def test_the_exporter_puts_back_the_request_of_the_last_killed_worker(
    client: Client, url: str, start: Any, export: Export
) -> None:
    export(url, "--heartbeat", "0.2")
    worker = start("--heartbeat", "0.2", "--", "sleep", "60")
    client.submit_one(Request(client.new_id(), "q"))
    queues = Queues(connect(url))
    eventually(lambda: queues.state("q").running == 1)
    worker.kill()
    worker.wait()
    eventually(lambda: queues.state("q").waiting == 1)
    assert queues.state("q").balance == 0


def test_the_exporter_declares_a_queue_that_redis_forgot(url: str, export: Export) -> None:
    # given an exporter that answers for a queue without workers, of which there is nothing yet
    redis = connect(url)
    queues = Queues(redis)
    export(
        url,
        "--heartbeat",
        "0.2",
        "--declare",
        "empty",
        "7",
        "- sleeps",
        "--declare",
        "other",
        "0",
        "",
    )
    eventually(lambda: queues.names() == ["empty", "other"])
    # when somebody changes it, expect that it stays changed
    queues.add("empty", 9)
    queues.remove("other")
    eventually(lambda: "other" in queues.names())
    assert queues.state("empty").maximum == 9
    # when Redis loses all, as one without persistence does when it is started again
    redis.flushall()
    # expect that requests can be submitted again
    eventually(lambda: queues.names() == ["empty", "other"])
    assert (queues.state("empty").maximum, queues.state("empty").note) == (7, "- sleeps")


@pytest.mark.usefixtures("server")
def test_the_exporter_reports_a_missing_redis_and_counters_continue_afterwards(
    tmp_path: Path, export: Export
) -> None:
    # given an exporter that was started before Redis was there
    path = tmp_path / "data"
    path.mkdir()
    socket = tmp_path / "redis.sock"
    line = [
        embedded.find_server(),
        "--port",
        "0",
        "--unixsocket",
        str(socket),
        "--dir",
        str(path),
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--save",
        "",
    ]
    url = f"unix://{socket}"
    base = export(url)
    assert scrape(base) == {("scaletest_up",): 0.0}
    assert get(base + "/readyz")[0] == 503
    before: dict[tuple[str, ...], float] = {}
    for _ in range(3):
        # when it comes, works and is killed, and so several times
        server = subprocess.Popen(line, stdout=subprocess.DEVNULL)
        try:
            eventually(lambda: get(base + "/readyz")[0] == 200)
            redis = connect(url)
            Queues(redis).add("q")
            with Client(connect(url)) as client:
                client.submit([Request(client.new_id(), "q") for _ in range(5)])
            Queues(redis).purge("q")
            after = scrape(base)
            # expect that no counter went down
            for name, value in before.items():
                if name[0].endswith(("_total", "_count", "_bucket", "_sum")):
                    assert after[name] >= value, name
            assert after["scaletest_requests_total", "outcome=purged", "queue=q"] == 5 + before.get(
                ("scaletest_requests_total", "outcome=purged", "queue=q"), 0
            )
            before = after
        finally:
            server.kill()
            server.wait()
        assert scrape(base) == {("scaletest_up",): 0.0}
        assert get(base + "/api/v1/queues/q")[0] == 503
        assert get(base + "/healthz")[0] == 200
    # and another exporter, new, starts from the same numbers
    server = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    try:
        other = export(url)
        eventually(lambda: get(other + "/readyz")[0] == 200)
        metrics = scrape(other)
        assert metrics["scaletest_requests_submitted_total", "queue=q"] == 15
    finally:
        server.kill()
        server.wait()


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


def test_each_tick_checks_a_bounded_part_from_the_front(
    redis: Any, queues: Queues, url: str
) -> None:
    # given a request of a dead client behind more than a tick looks at
    redis.rpush(
        keys.rq_queue("q"), *(f"job-{number}" for number in range(CHECK_BATCH * CALLS_A_TICK))
    )
    abandon(redis, "dead-1")
    watcher = Watcher(connect(url), 60.0, 3)
    watcher.tick()
    assert ended_as_client_gone(queues) == 0
    # when one before it is taken, expect it to be in reach
    redis.lpop(keys.rq_queue("q"))
    watcher.tick()
    assert ended_as_client_gone(queues) == 1
    assert len(waiting(redis)) == CHECK_BATCH * CALLS_A_TICK - 1


def test_a_queue_with_only_abandoned_requests_is_emptied_in_one_tick(
    redis: Any, queues: Queues, url: str
) -> None:
    abandon(redis, *(f"dead-{number}" for number in range(10 * CHECK_BATCH)))
    Watcher(connect(url), 60.0, 3).tick()
    assert (queues.state("q").waiting, ended_as_client_gone(queues)) == (0, 10 * CHECK_BATCH)
