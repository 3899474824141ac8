"""The books balance whatever happens, in any order: submitted = waiting + running + the five
outcomes.

A random history of clients, workers, operators, deaths, outages and steps of the clock, on a Redis
in this process.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from scaletest.broker import Client, Queues, keys
from scaletest.broker.accounting import Accounting
from scaletest.broker.fast_lane import Answer, FastLane, FinishedRequest, TakenRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.reaping import Watcher, reap
from scaletest.broker.retrying import Retrying
from scaletest.model import Outcome, Request
from scaletest.model.record import AT_ONCE, Schedule
from tests.integration.lanes import done, lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis

INTERVAL_S = 10.0
# When requests run: at once, with retries at once or later, or delayed.
SCHEDULES = (AT_ONCE, Schedule(0.0, 1), Schedule(0.0, 2, (5, 0)), Schedule(5.0, 1, (5,)))


@dataclass
class Worker:
    """A worker as the history knows it. late: it was frozen once, so what it holds may be another
    one's by now.
    """

    line: Heartbeat
    lane: FastLane
    name: str
    holds: TakenRequest | None = None
    sent: FinishedRequest | None = None
    late: bool = False

    def take(self, answer: Answer) -> None:
        """What its last call brought."""
        self.holds = answer if isinstance(answer, TakenRequest) else None
        if self.holds is None:
            self.line.note_end()
        else:
            self.line.note_start(self.holds.id, self.holds.attempt)


@dataclass
class Submitter:
    """A client as the history knows it."""

    client: Client
    ids: list[str] = field(default_factory=list)
    cancelled: int = 0


class Books(RuleBasedStateMachine):
    """One queue, and everybody who does something to it."""

    def __init__(self, redis: VirtualRedis, clock: Clock) -> None:
        super().__init__()
        redis.flushall()
        self.redis = redis
        self.clock = clock
        self.queues = Queues(redis)
        self.watcher = Watcher(redis, INTERVAL_S, 3)
        self.clients: list[Submitter] = []
        self.workers: list[Worker] = []
        self.frozen: list[Worker] = []
        self.names = 0

    @initialize(maximum=st.sampled_from([0, 0, 4]))
    def declare(self, maximum: int) -> None:
        """A queue, two clients and a worker."""
        self.queues.add("q", maximum=maximum)
        for _ in range(2):
            self.client_comes()
        self.worker_comes()

    def _name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    @rule()
    @precondition(lambda self: len(self.clients) < 3)
    def client_comes(self) -> None:
        """One more client."""
        self.clients.append(Submitter(Client(self.redis, patience_s=0.0, name=self._name())))

    @rule()
    @precondition(lambda self: len(self.workers) < 3)
    def worker_comes(self) -> None:
        """One more worker."""
        name = self._name()
        line = Heartbeat(self.redis, name, "q", interval_s=INTERVAL_S)
        line._beat()
        self.workers.append(
            Worker(line, FastLane(self.redis, name, "q", INTERVAL_S, Retrying("test")), name)
        )

    @rule(
        who=st.integers(0, 9),
        count=st.integers(1, 4),
        reply=st.booleans(),
        schedule=st.sampled_from([AT_ONCE, *SCHEDULES]),
    )
    @precondition(lambda self: self.clients)
    def submit(self, who: int, count: int, reply: bool, schedule: Schedule) -> None:
        """A client submits, with replies or kept results, some to be retried or delayed."""
        submitter = self._chosen(self.clients, who)
        ids = [submitter.client.new_id() for _ in range(count)]
        schedule = schedule if reply else AT_ONCE  # RQ's own code retries what is kept
        requests = [Request(name, "q", schedule=schedule) for name in ids]
        accepted = submitter.client.submit(requests, reply=reply)
        if reply:
            submitter.ids += ids[:accepted]

    @rule(poison=st.booleans())
    def a_stranger_submits(self, poison: bool) -> None:
        """A job of stock RQ, or one that must not be executed."""
        name = self._name()
        fields = {"data": "x", "origin": "q", "status": "queued"} | (
            {"reply_to": "a b"} if poison else {}
        )
        self.redis.hset(keys.rq_job(name), mapping=fields)
        self.redis.rpush(keys.rq_queue("q"), name)

    @rule(
        who=st.integers(0, 9),
        outcome=st.sampled_from([Outcome.SUCCEEDED, Outcome.FAILED, Outcome.TIMED_OUT]),
        take=st.booleans(),
    )
    @precondition(lambda self: self.workers)
    def work(self, who: int, outcome: Outcome, take: bool) -> None:
        """A worker finishes what it holds, and takes the next."""
        self._work(self._chosen(self.workers, who), outcome, take)

    def _accounting(self, worker: Worker) -> Accounting:
        return Accounting(self.redis, Retrying("test"), "q", worker.name)

    def _work(
        self, worker: Worker, outcome: Outcome = Outcome.SUCCEEDED, take: bool = True
    ) -> None:
        before = self._count("stale")
        if worker.holds is not None and not worker.holds.client:
            # RQ's own code ran it
            self._accounting(worker).settle(worker.holds, outcome, 0.1, 0.1)
            worker.sent = None
        else:
            worker.sent = None if worker.holds is None else done(worker.holds, outcome)
        worker.take(worker.lane.cycle(worker.sent, take=take))
        # who beats keeps what it holds
        assert worker.late or self._count("stale") == before

    @rule(who=st.integers(0, 9))
    @precondition(lambda self: self.workers)
    def repeat(self, who: int) -> None:
        """A worker's connection broke after its call was carried out: it sends the same again."""
        worker = self._chosen(self.workers, who)
        if worker.lane._number and not worker.late and worker.holds is not None:
            counters = self.queues.state("q").counters
            worker.lane._number -= 1
            assert worker.lane.cycle(worker.sent) == worker.holds
            assert self.queues.state("q").counters == counters

    @rule(who=st.integers(0, 9))
    @precondition(lambda self: self.workers)
    def give_back(self, who: int) -> None:
        """A worker that stops puts its request back, and leaves."""
        worker = self._chosen(self.workers, who)
        self.workers.remove(worker)
        if worker.holds is not None:
            self._accounting(worker).release(worker.holds)
        worker.line.forget()

    @rule(who=st.integers(0, 9))
    @precondition(lambda self: self.workers)
    def worker_dies(self, who: int) -> None:
        """A worker is killed, or frozen for now: it beats no more."""
        worker = self._chosen(self.workers, who)
        self.workers.remove(worker)
        worker.late = True
        self.frozen.append(worker)

    @rule(who=st.integers(0, 9))
    @precondition(lambda self: self.frozen)
    def worker_thaws(self, who: int) -> None:
        """One that was only frozen goes on where it was."""
        worker = self._chosen(self.frozen, who)
        self.frozen.remove(worker)
        self._work(worker)
        worker.line._beat()
        self.workers.append(worker)

    @rule(who=st.integers(0, 9))
    @precondition(lambda self: self.clients)
    def client_dies(self, who: int) -> None:
        """A client beats and reads no more."""
        self.clients.remove(self._chosen(self.clients, who))

    @rule(who=st.integers(0, 9), every=st.integers(1, 3))
    @precondition(lambda self: self.clients)
    def cancel(self, who: int, every: int) -> None:
        """A client cancels some of all that it ever submitted."""
        submitter = self._chosen(self.clients, who)
        submitter.cancelled += submitter.client.cancel("q", submitter.ids[::every])

    @rule()
    def purge(self) -> None:
        """Somebody purges the queue."""
        self.queues.purge("q")

    @rule()
    def schedule(self) -> None:
        """RQ's scheduler enqueues what is scheduled."""
        for name in self.redis.zrange(keys.rq_scheduled("q"), 0, -1):
            self.redis.zrem(keys.rq_scheduled("q"), name)
            self.redis.hset(keys.rq_job(name.decode()), "status", "queued")
            self.redis.rpush(keys.rq_queue("q"), name)

    @rule(pause=st.booleans())
    def pause(self, pause: bool) -> None:
        """Somebody pauses the queue, or resumes it."""
        if pause:
            self.queues.pause("q")
        else:
            self.queues.resume("q")

    @rule()
    def requeue(self) -> None:
        """Somebody puts all of RQ's failed registry back, as `rq requeue --all` does."""
        for name in self.redis.zrange(keys.rq_failed("q"), 0, -1):
            self.redis.zrem(keys.rq_failed("q"), name)
            self.redis.rpush(keys.rq_queue("q"), name)

    @rule(rounds=st.sampled_from([1, 2, 6]))
    def time_passes(self, rounds: int) -> None:
        """Who lives beats. Six rounds end the leases of those who do not."""
        for _ in range(rounds):
            self.clock.step(4.0)
            self._everybody_beats()

    @rule(seconds=st.sampled_from([30.0, 3600.0, -30.0, -3600.0]))
    def redis_is_away(self, seconds: float) -> None:
        """Redis is away for so long, or its clock is set; then everybody comes back."""
        self.clock.step(seconds)
        self._everybody_beats()

    def _everybody_beats(self) -> None:
        for worker in self.workers:
            worker.line._beat()
            worker.line._reap()
        for submitter in self.clients:
            submitter.client._beat()
        self.watcher.tick()

    @invariant()
    def books_balance(self) -> None:
        """Also where stock RQ's jobs are counted later, and failed ones again."""
        assert self.queues.check("q") == []

    @invariant()
    def nobody_who_lives_is_given_up(self) -> None:
        """No request has two replies, and no living client is taken for dead."""
        for submitter in self.clients:
            replies = self._replies(submitter)
            ids = [reply["id"] for reply in replies]
            assert len(ids) == len(set(ids))
            assert set(ids) <= set(submitter.ids)
            assert "client_gone" not in {reply["outcome"] for reply in replies}

    def teardown(self) -> None:
        """At the end everything is worked off: each request has one reply, or was cancelled."""
        if not self.names:
            return
        self.queues.resume("q")
        self.schedule()
        # the leases of the dead end
        self.time_passes(6)
        self.worker_comes()
        for worker in self.workers:
            self._work(worker)
            while worker.holds is not None:
                self._work(worker)
        state = self.queues.state("q")
        assert (state.waiting, state.running, state.balance) == (0, 0, 0)
        for submitter in self.clients:
            assert len(self._replies(submitter)) + submitter.cancelled == len(submitter.ids)

    def _count(self, name: str) -> int:
        return self.queues.state("q").counters.get(name, 0)

    def _replies(self, submitter: Submitter) -> list[dict[str, Any]]:
        rows: Any = self.redis.xrange(keys.replies(submitter.client.name))
        return [json.loads(fields[b"r"]) for _, fields in rows]

    def _chosen(self, among: Sequence[Any], number: int) -> Any:
        return among[number % len(among)]


def test_books_balance_after_any_history(redis: VirtualRedis, clock: Clock) -> None:
    # a history that fails is short enough to be read: looking for a shorter one would take minutes
    phases = [hypothesis.Phase.reuse, hypothesis.Phase.generate]
    few = hypothesis.settings(max_examples=25, stateful_step_count=25, phases=phases)
    run_state_machine_as_test(lambda: Books(redis, clock), settings=few)


@pytest.fixture
def requeued(redis: VirtualRedis, queues: Queues) -> str:
    """A request whose worker and client are gone: it failed as lost, and somebody put it back from
    RQ's failed registry.
    """
    with Client(redis) as gone:
        request = Request(gone.new_id(), "q")
        gone.submit_one(request)
        assert isinstance(lane_of(redis).cycle(None), TakenRequest)
    redis.zadd(keys.leases("q"), {f"{request.id}:1:w": 1})
    reap(redis, "q", 1, 600_000_000)
    assert queues.state("q").counters["lost"] == 1
    assert redis.zrem(keys.rq_failed("q"), request.id) == 1
    redis.rpush(keys.rq_queue("q"), request.id)
    return request.id


def counted_again(queues: Queues) -> list[str]:
    """How a request ended that was submitted twice and lost once, in books that balance."""
    state = queues.state("q")
    assert (state.counters["submitted"], state.balance) == (2, 0)
    ends = ("succeeded", "purged", "poison", "client_gone")
    return [name for name in ends if state.counters.get(name)]


def test_books_balance_where_a_requeued_request_is_purged(queues: Queues, requeued: str) -> None:
    # expect it to count as submitted again, and whoever checks the books before to know that
    assert queues.check("q") == []
    queues.purge("q")
    assert counted_again(queues) == ["purged"]


def test_books_balance_where_a_requeued_request_ends_late(
    redis: VirtualRedis, queues: Queues, requeued: str
) -> None:
    # when the worker that lost it finishes it all the same
    assert lane_of(redis).cycle(done(TakenRequest(requeued, 1, 1, 1, "gone", b""))) is None
    assert counted_again(queues) == ["succeeded"]
