"""The broker against a real server: declared queues, books, and scripts that may be repeated."""

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rq.job import Job
from rq.results import Result
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.fast_lane import FastLane, NothingTaken, TakenRequest
from scaletest.broker.jobs import read_stored_reply
from scaletest.broker.scripts import script
from scaletest.model import Outcome, Reason, Request
from tests.conftest import check_books, eventually, wait_for
from tests.integration.lanes import done, lane_of

real = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def test_a_kept_result_that_cannot_be_read_is_a_failed_one(client: Client, redis: Any) -> None:
    request = Request(client.new_id(), "q")
    client.submit_one(request, reply=False)
    job: Any = Job.fetch(request.id, connection=redis, serializer=JSONSerializer)
    value = {"id": request.id, "outcome": "postponed"}
    Result.create(job, Result.Type.SUCCESSFUL, ttl=500, return_value=value)
    answer = read_stored_reply(redis, request.id)
    assert (answer.outcome, answer.reason) == (Outcome.FAILED, Reason.LOST)
    assert "postponed" in answer.error


def test_many_skipped_entries_do_not_look_like_an_empty_queue(
    client: Client, redis: Any, lane: FastLane
) -> None:
    redis.rpush("rq:queue:q", *[f"gone-{number}" for number in range(2500)])
    client.submit_one(Request(client.new_id(), "q"))
    assert isinstance(lane.cycle(None), TakenRequest)


fields = st.binary(max_size=20) | st.sampled_from(
    [b"1", b"-1", b"1e300", b"9" * 40, b"nan", b"", b"0x10", b"a b"]
)


@real
@given(
    name=st.binary(min_size=1, max_size=20) | st.just(b"ok-1"),
    job=st.dictionaries(
        st.sampled_from(
            ["data", "reply_to", "enqueued_us", "attempts", "client_ttl_us", "counted", "status"]
        ),
        fields,
    ),
    kind=st.sampled_from(["hash", "string", "list"]),
)
def test_no_foreign_entry_stops_a_worker_or_unbalances_the_books(
    redis: Any, name: bytes, job: dict[str, bytes], kind: str
) -> None:
    # given something that anybody may have written
    redis.flushall()
    queues = Queues(redis)
    queues.add("q")
    key = b"rq:job:" + name
    if kind == "string":
        redis.set(key, "x")
    elif kind == "list":
        redis.rpush(key, "x")
    elif job:
        redis.hset(key, mapping=job)
    redis.rpush("rq:queue:q", name)
    # when a worker takes what there is
    lane = lane_of(redis)
    taken = lane.cycle(None)
    if isinstance(taken, TakenRequest):
        ended = (
            lane.cycle(done(taken))
            if taken.client
            else script("release")(
                redis,
                [keys.leases("q"), keys.rq_queue("q"), keys.rq_started("q")],
                [taken.id, taken.attempt, "w"],
            )
        )
        assert ended is not False
    # expect balanced books, counted or not at all
    state = queues.state("q")
    if "enqueued_us" not in job and "counted" not in job:
        assert state.balance == 0, state
    assert queues.purge("q") <= 1
    lane.close()


def test_a_client_submits_again_what_redis_forgot(
    client: Client, redis: Any, lane: FastLane
) -> None:
    # given two requests, one of them answered but not read, the other forgotten
    requests = [Request(client.new_id(), "q") for _ in range(2)]
    pending = {request.id: request for request in requests}
    client.submit(requests)
    lane.cycle(done(lane.cycle(None)))
    redis.delete(f"rq:job:{requests[1].id}", "scaletest:leases:q")
    # when it looks, expect only the forgotten one to be submitted again, and only after the reply
    # was read
    assert client.recover(pending, force=True) == 0
    for reply in client.replies(1.0):
        del pending[reply.id]
    assert client.recover(pending) == 1
    assert list(pending) == [requests[1].id]
    assert redis.lrange("rq:queue:q", 0, -1) == [requests[1].id.encode()]
    assert client.recover(pending) == 0


def test_a_client_whose_replies_were_dropped_notices(client: Client, redis: Any) -> None:
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.delete(keys.replies(client.name), f"rq:job:{request.id}", "rq:queue:q")
    client._beat()
    client.replies(0.01)
    assert client.recover({request.id: request}) == 1


def test_a_paused_queue_hands_out_no_request_and_keeps_its_order(
    client: Client, redis: Any, queues: Queues, lane: FastLane
) -> None:
    ids = [client.new_id() for _ in range(2)]
    client.submit([Request(name, "q") for name in ids])
    queues.pause("q")
    assert lane.cycle(None) is NothingTaken.PAUSED
    redis.lmove("rq:queue:q", keys.taking("q"), "LEFT", "RIGHT")
    assert lane._blocking_take(0.01) is NothingTaken.PAUSED
    assert [name.decode() for name in redis.lrange("rq:queue:q", 0, -1)] == ids
    assert queues.resume("q")
    assert isinstance(lane.cycle(None), TakenRequest)


def test_removing_a_queue_answers_what_was_being_taken(
    client: Client, queues: Queues, redis: Any
) -> None:
    # given a request that a blocking move took, of a worker that has gone since
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.lmove(keys.rq_queue("q"), keys.taking("q"), "LEFT", "RIGHT")
    # expect the removal to drop it as well
    assert queues.remove("q") == 1
    assert wait_for(client, 1)[request.id].outcome is Outcome.PURGED
    assert not redis.keys("rq:job:*")


@real
@given(st.integers(0, 4_102_444_800_000_000))
def test_timestamps_have_the_format_of_rq(redis: Any, micros: int) -> None:
    body = (
        script("submit")
        .text.split("local call")[0]
        .replace("local clock = redis.call('TIME')", "local clock={0,0}")
    )
    at = datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)
    stamp = redis.eval(body + "\nreturn stamp(tonumber(ARGV[1]))", 0, micros)
    assert stamp.decode() == at.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


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
    client.submit([Request(client.new_id(), "q", ("0",)) for _ in range(500)])
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
    check_books(queues, submitted=COUNT, client_gone=500, waiting=0, running=0)
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
