"""Ten thousand requests of every outcome: the books balance, nothing is left behind, stock tools
see what is there.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from scaletest.broker import Client, Queues, connect
from scaletest.model import Outcome, Request
from tests.conftest import eventually, wait_for

COUNT = 10_000


def test_books_balance_after_ten_thousand_requests(
    client: Client, start: Any, queues: Queues, redis: Any, url: str, monkeypatch: Any
) -> None:
    # given every kind of request, mixed: good, refused by the workload, over its limit, of a client
    # that is gone
    kinds = [(("0",), 0.0), (("wrong",), 0.0), (("5",), 0.001), (("0",), 60.0)]
    with monkeypatch.context() as patch:
        patch.setattr("scaletest.broker.client.CLIENT_TTL_S", 0.000001)
        with Client(connect(url)) as gone:
            gone.submit([Request(gone.new_id(), "q", ("0",)) for _ in range(500)])
    requests = [Request(client.new_id(), "q", *kinds[number % 4]) for number in range(COUNT - 1000)]
    assert client.submit(requests) == len(requests)
    # when two workers drain them, more come, and some are purged
    start("--name", "one")
    start("--name", "two")
    replies = wait_for(client, len(requests), 300)
    queues.pause("q")
    purged = [Request(client.new_id(), "q", ("0",)) for _ in range(500)]
    client.submit(purged)
    assert queues.purge("q") == 500
    replies |= wait_for(client, 500)
    queues.resume("q")
    # expect every outcome in its number
    outcomes = Counter(reply.outcome for reply in replies.values())
    quarter = len(requests) // 4
    assert outcomes == {
        Outcome.SUCCEEDED: 2 * quarter,
        Outcome.FAILED: quarter,
        Outcome.TIMED_OUT: quarter,
        Outcome.PURGED: 500,
    }
    state = queues.state("q")
    assert state.counters["submitted"] == COUNT
    assert state.counters["client_gone"] == 500
    assert (state.waiting, state.running, state.balance) == (0, 0, 0)
    # and no key of any request
    assert not redis.keys("rq:job:*")
    assert not redis.keys("rq:execution*")
    assert not redis.keys("rq:results:*")
    assert (
        redis.zcard("rq:wip:q") == redis.zcard("rq:failed:q") == redis.zcard("rq:finished:q") == 0
    )
    # and what stock rq shows
    rq = str(Path(sys.executable).parent / "rq")
    shown = eventually(
        lambda: (
            subprocess.run(
                [rq, "info", "-u", url], capture_output=True, text=True, check=True
            ).stdout
        )
    )
    assert "1 queues, 0 jobs total" in shown
    assert "2 workers" in shown
    assert "one" in shown
    assert "two" in shown
