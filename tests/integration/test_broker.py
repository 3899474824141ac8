"""The broker against a real server: declared queues, books, and scripts that may be repeated."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rq.job import Job
from rq.results import Result
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues, keys
from scaletest.broker.fast_lane import NothingTaken, Taken
from scaletest.broker.jobs import stored
from scaletest.broker.scripts import script
from scaletest.model import Outcome, Reason, Request
from tests.conftest import wait_for
from tests.integration.lanes import done, lane_of

real = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def test_a_kept_result_that_cannot_be_read_is_a_failed_one(client: Client, redis: Any) -> None:
    request = Request(client.new_id(), "q")
    client.submit_one(request, reply=False)
    job: Any = Job.fetch(request.id, connection=redis, serializer=JSONSerializer)
    value = {"id": request.id, "outcome": "postponed"}
    Result.create(job, Result.Type.SUCCESSFUL, ttl=500, return_value=value)
    answer = stored(redis, request.id)
    assert (answer.outcome, answer.reason) == (Outcome.FAILED, Reason.LOST)
    assert "postponed" in answer.error


@pytest.mark.parametrize("after", [False, True])
def test_a_connection_cut_before_or_after_the_script_changes_nothing(
    client: Client, redis: Any, queues: Queues, after: bool
) -> None:
    client.submit([Request(client.new_id(), "q") for _ in range(3)])
    lane = lane_of(redis)
    taken = lane.cycle(None)
    connection = lane._connection
    send = connection.send_packed_command

    def cut(packets: Any, check_health: bool = True) -> None:
        connection.send_packed_command = send
        if after:
            send(packets, check_health=check_health)
            connection.read_response()
        connection.disconnect()
        raise ConnectionError("cut")

    connection.send_packed_command = cut
    following = lane.cycle(done(taken))
    assert following.id != taken.id  # type: ignore[union-attr]
    state = queues.state("q")
    assert (state.waiting, state.running, state.counters["succeeded"], state.balance) == (
        1,
        1,
        1,
        0,
    )
    assert len(wait_for(client, 1)) == 1
    lane.close()


def test_many_skipped_entries_do_not_look_like_an_empty_queue(client: Client, redis: Any) -> None:
    redis.rpush("rq:queue:q", *[f"gone-{number}" for number in range(2500)])
    client.submit_one(Request(client.new_id(), "q"))
    lane = lane_of(redis)
    assert isinstance(lane.cycle(None), Taken)
    lane.close()


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
    if isinstance(taken, Taken):
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


def test_a_client_submits_again_what_redis_forgot(client: Client, redis: Any) -> None:
    # given two requests, one of them answered but not read, the other forgotten
    requests = [Request(client.new_id(), "q") for _ in range(2)]
    pending = {request.id: request for request in requests}
    client.submit(requests)
    lane = lane_of(redis)
    lane.cycle(done(lane.cycle(None)))
    redis.delete(f"rq:job:{requests[1].id}", "scaletest:leases:q")
    # when it looks, expect only the forgotten one to be submitted again, and only after the reply
    # was read
    assert client.recover(pending, force=True) == 0
    for _, reply in client.replies(1.0):
        del pending[reply.id]
    assert client.recover(pending) == 1
    assert list(pending) == [requests[1].id]
    assert redis.lrange("rq:queue:q", 0, -1) == [requests[1].id.encode()]
    assert client.recover(pending) == 0
    lane.close()


def test_a_client_whose_replies_were_dropped_notices(client: Client, redis: Any) -> None:
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.delete(keys.replies(client.name), f"rq:job:{request.id}", "rq:queue:q")
    client._beat()
    client.replies(0.01)
    assert client.recover({request.id: request}) == 1


def test_a_paused_queue_hands_out_no_request_and_keeps_its_order(
    client: Client, redis: Any, queues: Queues
) -> None:
    ids = [client.new_id() for _ in range(2)]
    client.submit([Request(name, "q") for name in ids])
    queues.pause("q")
    lane = lane_of(redis)
    assert lane.cycle(None) is NothingTaken.PAUSED
    redis.lmove("rq:queue:q", keys.taking("q"), "LEFT", "RIGHT")
    assert lane._blocking_take(0.01) is NothingTaken.PAUSED
    assert [name.decode() for name in redis.lrange("rq:queue:q", 0, -1)] == ids
    assert queues.resume("q")
    assert isinstance(lane.cycle(None), Taken)
    lane.close()


def test_a_purge_sends_a_reply_for_every_request(
    client: Client, queues: Queues, redis: Any
) -> None:
    client.submit([Request(client.new_id(), "q") for _ in range(1500)])
    assert queues.purge("q") == 1500
    assert {reply.outcome for reply in wait_for(client, 1500).values()} == {Outcome.PURGED}
    assert queues.state("q").balance == 0
    assert not redis.keys("rq:job:*")


def test_removing_a_queue_removes_all_its_keys(client: Client, queues: Queues, redis: Any) -> None:
    client.submit_one(Request(client.new_id(), "q"))
    queues.remove("q")
    client.close()
    left = {key.decode() for key in redis.keys("*")}
    assert left <= {"scaletest:pulse", "scaletest:standstill", "scaletest:intervals"}


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
