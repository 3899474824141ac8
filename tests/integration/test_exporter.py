"""The exporter as a process: load on, worker killed, Redis stopped and started again, several
scrapers at once.
"""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scaletest.broker import Client, Queues, connect, embedded
from scaletest.model import Request
from tests.conftest import call, call_here, eventually, wait_for
from tests.integration.conftest import Export


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
    assert get(base + "/readyz")[0] == get(base + "/")[0] == 200


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


@pytest.mark.parametrize("wrong", [("no name", "0", ""), ("q", "-1", ""), ("q", "many", "")])
def test_a_wrong_declaration_is_an_error_at_once(url: str, wrong: tuple[str, ...]) -> None:
    done = call_here("exporter", "--redis-url", url, "--declare", *wrong)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr


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


def test_wrong_options_end_the_exporter_with_exit_code_2(url: str, export: Export) -> None:
    bad_urls = (("--redis-url", "redis://h/x"), ("--redis-url", "redis://h/0?nonsense=1"))
    for arguments in (("--listen", "x"), ("--window", "9999"), ("--utilisation", "0"), *bad_urls):
        result = call_here("exporter", *arguments)
        assert result.returncode == 2, arguments
        assert "Traceback" not in result.stderr
    taken = export(url).removeprefix("http://")
    result = call("exporter", "--redis-url", url, "--listen", taken)
    assert result.returncode == 2
    assert "cannot listen" in result.stderr
