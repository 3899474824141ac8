"""Seconds by state from looks at the processes of requests: they sum to the time that passed."""

import itertools
import math
import random
from collections import defaultdict
from resource import struct_rusage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import Activity, State, Wait, wire
from scaletest.model.activity import MAX_BYTES
from scaletest.observe import sampler
from scaletest.observe.doing import RUNNABLE, UNKNOWN, Doing
from scaletest.observe.sampling import FORKS_SHARE
from scaletest.observe.time_by_state import (
    MOST_KEPT,
    MOST_KEPT_S,
    Balance,
    TimeByState,
    run_and_wait_s,
)
from scaletest.observe.tree import ThreadShare, TreeLook
from scaletest.processes import proc

seconds = st.floats(0, 100)
shares = st.lists(st.builds(ThreadShare, seconds, seconds), max_size=5)
doings = st.sampled_from(
    [RUNNABLE, UNKNOWN, *(Doing(state, name) for state in State for name in ("", "a"))]
)
looks = st.builds(
    TreeLook,
    doings,
    seconds,
    shares,
    st.just(frozenset({(1, 1), (2, 1)})),
)
steps = st.lists(st.tuples(seconds, st.none() | looks, seconds), max_size=6)


@given(steps, seconds, seconds, seconds, seconds)
def test_states_sum_to_the_time_that_passed(
    intervals: list[tuple[float, TreeLook | None, float]],
    rest: float,
    cpu_s: float,
    unchanged_s: float,
    throttled_s: float,
) -> None:
    spent = TimeByState()
    for interval_s, look, still_s in intervals:
        spent.add_interval(interval_s, look, min(still_s, interval_s))
    spent.add_end(rest, cpu_s, min(unchanged_s, rest))
    spent.count_throttled(throttled_s)
    total_s = sum(interval_s for interval_s, _, _ in intervals) + rest
    by_state = spent.seconds_by_state(total_s)
    assert math.isclose(sum(by_state.values()), total_s, rel_tol=1e-6, abs_tol=1e-6)
    assert all(value >= 0 for value in by_state.values())
    assert sum(wait.seconds for wait in spent.longest_waits()) <= total_s + 1e-6
    assert all(wait.object for wait in spent.longest_waits())


@given(seconds, shares)
def test_threads_run_no_longer_than_time_passes(interval_s: float, many: list[ThreadShare]) -> None:
    run_s, wait_s = run_and_wait_s(interval_s, many)
    assert 0 <= run_s <= interval_s and -1e-9 <= wait_s <= interval_s - run_s + 1e-6


def test_a_single_thread_gets_exactly_the_seconds_of_the_kernel() -> None:
    assert run_and_wait_s(1.0, [ThreadShare(0.25, 0.5)]) == pytest.approx((0.25, 0.5))


def look(state: State | None, *, age_s: float = 99.0, living: tuple[int, ...] = (1,)) -> TreeLook:
    return TreeLook(Doing(state), age_s, [], frozenset((pid, pid) for pid in living))


def test_each_look_gets_half_of_the_interval_between_looks() -> None:
    spent = TimeByState()
    spent.add_interval(0.1, look(State.FILE_LOCK))
    spent.add_interval(0.2, look(State.SLEEP))
    spent.add_end(0.3, 0.0)
    assert spent.seconds_by_state(0.6) == pytest.approx({State.FILE_LOCK: 0.2, State.SLEEP: 0.4})


def test_seconds_without_a_process_go_to_the_state_before_them() -> None:
    spent = TimeByState()
    spent.add_interval(0.0, look(State.FILE_LOCK))
    spent.add_interval(1.0, look(State.SLEEP), 0.8)
    spent.add_end(0.0, 0.0)
    assert spent.seconds_by_state(1.0) == pytest.approx({State.FILE_LOCK: 0.9, State.SLEEP: 0.1})


def test_in_a_script_each_command_gets_the_time_that_it_lived() -> None:
    spent = TimeByState()
    lock = look(State.FILE_LOCK, age_s=0.01, living=(1, 2))._replace(in_sequence=True)
    sleep = look(State.SLEEP, age_s=0.02, living=(1, 3))._replace(in_sequence=True)
    spent.add_interval(0.01, lock)
    spent.add_interval(0.1, sleep)
    spent.add_end(0.05, 0.0)
    by_state = spent.seconds_by_state(0.16)
    assert by_state == pytest.approx({State.FILE_LOCK: 0.01 + 0.08, State.SLEEP: 0.02 + 0.05})


def test_cpu_time_that_no_look_saw_is_not_counted_as_waiting() -> None:
    spent = TimeByState()
    spent.add_interval(0.1, look(State.SLEEP)._replace(in_sequence=True))
    spent.add_interval(0.1, look(State.SLEEP)._replace(in_sequence=True), 0.1)
    spent.add_end(0.1, 0.06)
    by_state = spent.seconds_by_state(0.3)
    assert by_state == pytest.approx({State.SLEEP: 0.24, State.ON_CPU: 0.06})


def test_throttled_seconds_are_taken_from_cpu_wait_only() -> None:
    spent = TimeByState()
    spent.add_interval(1.0, TreeLook(RUNNABLE, 99.0, [ThreadShare(0.25, 0.5)], frozenset({(1, 1)})))
    spent.add_end(0.0, 0.25)
    spent.count_throttled(2.0)
    by_state = spent.seconds_by_state(1.0)
    assert by_state[State.THROTTLED] == pytest.approx(0.5) and State.CPU_WAIT not in by_state


def test_an_object_has_the_same_name_in_all_requests_whatever_else_they_wait_for() -> None:
    path = "/data/" + "x" * 150
    others = tuple(Wait(State.NETWORK, f"{number}" * 160, 0.1) for number in range(3))
    for count in range(4):
        row = Activity(
            {State.FILE_LOCK: 1.0}, (Wait(State.FILE_LOCK, path, 1.0), *others[:count]), cpu_s=1 / 3
        ).to_dict()
        assert row["waits"][0]["object"] == path
        assert len(wire.dump(row).encode()) <= MAX_BYTES


# -- sums over many requests, whatever part of them looks meet
# -------------------------------------------------------

Phases = list[tuple[State, float]]


class Simulated:
    """One thread that goes through phases, by a clock of our own; it takes the place of time and of
    the tree.

    Phases on a CPU, and those that wait for one, are counted by the kernel.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost_s: float) -> None:
        self.now = self._cpu_s = self._began = 0.0
        self._cost_s = cost_s
        self._phases: Phases = []
        self._counted_s = self._counted_wait_s = 0.0
        self._counted = 0
        monkeypatch.setattr(sampler, "time", self)
        monkeypatch.setattr(sampler, "Tree", lambda *_, **__: self)
        self.sampler = sampler.RequestSampler(sampled_part=1.0)
        self.sampler.chance.seed(1)
        self.sampler.forks = False
        monkeypatch.setattr(self.sampler, "own_schedule", lambda: proc.Schedule(0.0, 0.0, 1))

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self._cpu_s

    processes = (1,)
    root = 1

    def is_unchanged(self) -> bool:
        return False

    def look_at_end(self) -> ThreadShare:
        return self._share()

    def close(self) -> None:
        pass

    def look(self) -> TreeLook:
        self._cpu_s += self._cost_s
        share = self._share()
        ends = itertools.accumulate(seconds for _, seconds in self._phases)
        state = next(
            own
            for (own, _), end in zip(self._phases, ends, strict=True)
            if self.now - self._began < end
        )
        doing = RUNNABLE if state in (State.ON_CPU, State.CPU_WAIT) else Doing(state)
        return TreeLook(doing, math.inf, [share], frozenset({(1, 1)}))

    def _share(self) -> ThreadShare:
        """What the kernel counted since the last time."""
        passed_s = self.now - self._began
        ran_s, waited_s = (self.spent(state, passed_s) for state in (State.ON_CPU, State.CPU_WAIT))
        slices = self.slices(passed_s)
        share = ThreadShare(
            ran_s - self._counted_s, waited_s - self._counted_wait_s, slices - self._counted
        )
        self._counted_s, self._counted_wait_s, self._counted = ran_s, waited_s, slices
        return share

    def spent(self, wanted: State, until_s: float) -> float:
        """Seconds of a state, up to some time of the request."""
        spent_s = 0.0
        for state, seconds in self._phases:
            spent_s += max(0.0, min(seconds, until_s)) if state is wanted else 0.0
            until_s -= seconds
        return spent_s

    def slices(self, until_s: float) -> int:
        """How often it was put on a CPU, up to some time of the request."""
        begins = itertools.accumulate((seconds for _, seconds in self._phases), initial=0.0)
        parts = zip(self._phases, begins, strict=False)
        return sum(state is State.ON_CPU and begin <= until_s for (state, _), begin in parts)

    def request(self, phases: Phases) -> dict[State, float]:
        """Seconds by state that a watch tells of a request."""
        self._phases, self._began = phases, self.now
        self._counted_s, self._counted_wait_s, self._counted = 0.0, 0.0, 0
        ends = self.now + sum(seconds for _, seconds in phases)
        watch = self.sampler.begin()
        watch.start(1)
        while watch.due < ends:
            self.now = watch.due
            watch.look()
        self.now = ends
        watch.ended()
        activity = watch.close(struct_rusage((self.spent(State.ON_CPU, math.inf), *[0] * 15)))
        assert activity is not None and sum(activity.seconds.values()) == pytest.approx(
            ends - self._began
        )
        return activity.seconds


@pytest.mark.parametrize("cost_s", [0.0001, 0.0004])
@pytest.mark.parametrize("run_s", [0.03, 0.1, 0.16, 0.3, 0.7, 3.0])
def test_sums_over_many_requests_have_no_bias(
    run_s: float, cost_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance, simulated = random.Random(2), Simulated(monkeypatch, cost_s)
    true: dict[State, float] = defaultdict(float)
    sampled: dict[State, float] = defaultdict(float)
    for _ in range(1500):
        # a start, with a wait for a CPU, a lock that is waited for now and then, work that computes
        # and reads by turns, a pause
        phases = [
            (State.CPU_WAIT, 0.05 * run_s),
            (State.ON_CPU, 0.1 * run_s),
            (State.FILE_LOCK, run_s * chance.choice((0.0, 0.3, 0.6))),
        ]
        phases += [(State.ON_CPU, 0.005 * run_s), (State.DISK, 0.005 * run_s)] * 20
        phases += [(State.SLEEP, 0.2 * run_s)]
        for state, seconds in phases:
            true[state] += seconds
        for state, seconds in simulated.request(phases).items():
            sampled[state] += seconds
    whole_s = sum(true.values())
    # three standard errors of as many looks as there are, and what the first request leaves open
    for state in State:
        assert sampled[state] / whole_s == pytest.approx(true[state] / whole_s, abs=0.05), state


@pytest.mark.parametrize("seed", range(20))
def test_a_dozen_requests_with_a_look_or_two_are_enough_where_all_do_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated = Simulated(monkeypatch, 0.0007)
    simulated.sampler.chance.seed(seed)
    phases = [(State.ON_CPU, 0.01), (State.FILE_LOCK, 0.25), (State.SLEEP, 0.3)]
    for _ in range(20):  # until the length of a request and the cost of a look are known
        simulated.request(phases)
    locked_s = [simulated.request(phases).get(State.FILE_LOCK, 0.0) for _ in range(12)]
    assert math.fsum(locked_s) / 12 == pytest.approx(0.25, abs=0.08)


def test_blocked_time_never_counts_as_waiting_for_a_cpu_which_the_kernel_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where looks met the only thread when it ran."""
    for look_at_s in (0.025, 0.095):
        simulated = Simulated(monkeypatch, 0.0004)
        moments = iter([look_at_s])
        monkeypatch.setattr(
            simulated.sampler.moments,
            "next_s",
            lambda *_, moments=moments, **__: next(moments, 9.0),
        )
        phases = [(State.CPU_WAIT, 0.02), (State.ON_CPU, 0.01), (State.SLEEP, 0.06)]
        seconds = simulated.request([*phases, (State.ON_CPU, 0.01)])
        assert seconds == pytest.approx(
            {State.ON_CPU: 0.02, State.CPU_WAIT: 0.02, State.NOT_OBSERVED: 0.06}
        )


def test_what_nobody_counted_may_have_been_waiting_for_a_cpu() -> None:
    """Of children that come and go between two looks nobody knows how long they waited."""
    busy = TreeLook(RUNNABLE, 0.1, [ThreadShare(0.05, 0.1)], frozenset({(1, 1), (2, 2)}))
    spent = TimeByState()
    spent.add_interval(0.2, busy)
    spent.add_interval(0.2, busy._replace(threads=frozenset({(1, 1), (3, 3)})))
    spent.add_end(0.0, 0.1)
    by_state = spent.seconds_by_state(0.4)
    assert by_state[State.CPU_WAIT] > 0.2


def test_programs_that_start_others_are_followed_as_far_as_that_is_cheap() -> None:
    sampling = sampler.RequestSampler()
    assert sampling.part_to_follow() == 1.0  # nothing is known of the first one
    for _ in range(50):
        sampling.count_followed(0.001, forks=True)
    assert sampling.part_to_follow() == pytest.approx(FORKS_SHARE * 0.1 / 0.001, rel=0.01)
    sampling.count_followed(0.1, forks=True)
    assert sampling.part_to_follow() == 0.0  # a few programs would not be enough
    sampling.follow_cost_s = 0.001
    sampling.count_followed(0.001, forks=False)
    assert sampling.part_to_follow() == 0.0


def test_seconds_without_a_look_count_as_not_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch, 0.0004)
    monkeypatch.setattr(simulated.sampler.moments, "next_s", lambda *_, **__: 1e9)
    seconds = simulated.request([(State.ON_CPU, 0.1), (State.SLEEP, 0.3)])
    assert seconds == pytest.approx({State.ON_CPU: 0.1, State.NOT_OBSERVED: 0.3})


def test_memory_for_short_requests_is_bounded_when_each_waits_for_another_object() -> None:
    # given requests that looks met, each on a file of its own
    balance = Balance()
    for number in range(10 * MOST_KEPT):
        met = TimeByState()
        met.add(State.DISK, 0.001, f"/data/{number}")
        balance.settle(met, 0.1)
        assert len(balance._kept) <= MOST_KEPT + 1
    # expect their time to go on to those that no look met
    other = TimeByState()
    other.add(State.NOT_OBSERVED, 0.5)
    balance.settle(other, 0.0)
    assert other.seconds_by_state(0.5) == {State.DISK: pytest.approx(0.5)}
    assert all(abs(seconds) <= MOST_KEPT_S for seconds in balance._kept.values())


def test_many_short_page_waits_count_as_memory_although_the_thread_looks_running() -> None:
    sleeping, running, key = Doing(State.SLEEP), Doing(None), (7, 7)
    spent = TimeByState()
    spent.add_interval(0.1, TreeLook(sleeping, 1e9, [ThreadShare(0.0, 0.0, 1)], frozenset({key})))
    faulting = TreeLook(
        running, 1e9, [ThreadShare(0.02, 0.0, 400)], frozenset({key}), Doing(State.MEMORY)
    )
    spent.add_interval(0.1, faulting)
    spent.add_interval(0.1, faulting)
    spent.add_end(0.0, 0.04)
    seconds = spent.seconds_by_state(0.3)
    assert seconds[State.MEMORY] == pytest.approx(0.04 + 0.08)
    assert seconds[State.SLEEP] == pytest.approx(0.1 + 0.04)


def test_major_page_faults_of_a_thread_are_counted() -> None:
    status = proc.parse_status(b"7 (a) b) S 1 7 7 0 -1 4194304 900 0 41 0 3 2 0 0 20 0 1 0 5 0 0")
    assert status is not None and status.major_faults == 41
    assert proc.parse_status(b"") is proc.parse_status(b"7 (a) S") is None
