"""From files of /proc to seconds by state: parsers take anything, known lines mean what they say,
sums are kept.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections import defaultdict
from pathlib import Path
from resource import struct_rusage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import Activity, State, Wait, wire
from scaletest.model.activity import MAX_BYTES
from scaletest.system import proc, sampler
from scaletest.system.blocking import RUNNABLE, UNKNOWN, Doing, of_function, of_letter
from scaletest.system.sampler import SHARE, Allowance
from scaletest.system.syscalls import WaitKind, calls
from scaletest.system.throttling import Throttling
from scaletest.system.time_by_state import MOST_KEPT, MOST_KEPT_S, Balance, TimeByState, union
from scaletest.system.tree import ThreadShare, TreeLook, most_threads

garbage = st.binary(max_size=80)
words = st.text("0123456789abcdefx:>- \n.[]", max_size=120)


@given(garbage)
def test_parsers_take_any_bytes(data: bytes) -> None:
    proc.parse_schedule(data)
    proc.parse_status(data)
    proc.parse_call(data)
    proc.parse_numbers(data)
    proc.parse_address(data)
    proc.unix_name(data)
    assert all(number >= 0 for number in proc.polled(data))
    assert len(proc.selected(data)) == sum(byte.bit_count() for byte in data)


@given(words)
def test_parsers_take_any_text(text: str) -> None:
    proc.parse_limited(text)
    proc.mapped_file(text, 1)
    proc.awaited_inode(text, 1)
    proc.parse_epoll(text)
    proc.inode_of(text)
    list(proc.parse_peers(text))


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62))
def test_schedules_are_in_seconds(run: int, wait: int, slices: int) -> None:
    assert proc.parse_schedule(b"%d %d %d\n" % (run, wait, slices)) == (
        run / 1e9,
        wait / 1e9,
        slices,
    )


@given(st.binary(max_size=15))
def test_a_name_of_a_program_may_hold_anything(name: bytes) -> None:
    fields = b" ".join(b"%d" % number for number in range(4, 53))
    status = proc.parse_status(b"12 (%s) D %s\n" % (name, fields))
    assert status == ("D", 20, 22 / proc.TICKS_PER_S)


def test_system_calls() -> None:
    line = b"230 0x0 0x0 0x7ffca4bd9450 0x7ffca4bd9490 0x0 0x0 0x7ffca4bd9438 0x7ff7f3c31503\n"
    call = proc.parse_call(line)
    assert call == (230, (0, 0, 0x7FFCA4BD9450, 0x7FFCA4BD9490, 0, 0), 0x7FFCA4BD9438)
    assert calls("x86_64")[call.number] is WaitKind.SLEEP
    assert proc.parse_call(b"running\n") is None
    assert proc.parse_call(b"-1 0x7ffc 0x401000\n") == (-1, (), 0x7FFC)
    # a dead thread has no stack
    assert proc.parse_call(b"-1 0x0 0x0\n") == (-1, (), 0)


def test_numbers_of_system_calls_differ_by_architecture() -> None:
    intel, arm = calls("x86_64"), calls("aarch64")
    assert intel[73] is WaitKind.FLOCK and arm[32] is WaitKind.FLOCK
    assert intel[202] is WaitKind.FUTEX and arm[98] is WaitKind.FUTEX
    assert intel[0] is WaitKind.DESCRIPTOR and arm[63] is WaitKind.DESCRIPTOR
    assert intel[232] is WaitKind.EPOLL and arm[22] is WaitKind.EPOLL
    assert intel[11] is WaitKind.MAP and arm[215] is WaitKind.MAP
    assert calls("arm64") == arm
    assert not calls("riscv64")


FUNCTIONS = {
    "locks_lock_inode_wait": State.FILE_LOCK,
    "futex_do_wait": State.LOCK,
    "do_semtimedop": State.LOCK,
    "hrtimer_nanosleep": State.SLEEP,
    "do_wait": State.CHILD,
    "anon_pipe_read": State.PIPE,
    "wait_woken": State.NETWORK,
    "unix_stream_read_generic": State.NETWORK,
    "sk_stream_wait_memory": State.NETWORK,
    "inet_csk_accept": State.IDLE,
    "sigsuspend": State.IDLE,
    "io_schedule": State.DISK,
    "folio_wait_bit_common": State.DISK,
    "jbd2_log_wait_commit": State.DISK,
    "balance_dirty_pages": State.DISK,
    "submit_bio_wait": State.DISK,
    "mem_cgroup_handle_over_high": State.MEMORY,
    "do_swap_page": State.MEMORY,
    "i915_request_wait_timeout": State.DEVICE,
    "dma_fence_default_wait": State.DEVICE,
    "xe_exec_ioctl": State.DEVICE,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_the_kernel_have_their_state(name: str) -> None:
    assert of_function(name) is FUNCTIONS[name]


def test_what_is_not_known_is_not_guessed() -> None:
    assert of_function("something_else") is None
    assert of_letter("S") == UNKNOWN
    assert of_letter("R") == RUNNABLE
    assert of_letter("D").state is State.DISK


def test_shared_memory_has_a_name_and_private_memory_none() -> None:
    maps = (
        "7f0000000000-7f0000001000 rw-s 00000000 00:19 5                          /dev/shm/sem.gate"
        " (deleted)\n7f0000002000-7f0000003000 rw-p 00000000 fe:00 6                         "
        " /usr/lib/libc.so.6\n7f0000004000-7f0000005000 rw-s 00000000 00:01 7                      "
        "    /dev/zero (deleted)\n"
    )
    assert proc.mapped_file(maps, 0x7F0000000010) == "/dev/shm/sem.gate"
    assert [proc.mapped_file(maps, address) for address in (0x7F0000002010, 0x7F0000004010, 1)] == [
        "",
        "",
        "",
    ]


def test_locks_that_are_waited_for() -> None:
    locks = (
        "1: FLOCK  ADVISORY  WRITE 6441 fe:00:9978047 0 EOF\n"
        "1: -> FLOCK  ADVISORY  READ 12395 fe:00:9978047 0 EOF\n"
        "2: POSIX  ADVISORY  WRITE 11767 fe:00:10316409 0 EOF\n"
    )
    assert proc.awaited_inode(locks, 12395) == 9978047
    assert proc.awaited_inode(locks, 6441) is None


def test_peers_of_both_versions_of_ip() -> None:
    tcp = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
        " inode\n   0: 0100007F:A06B 0100007F:18EB 01 00000000:00000000 00:00000000 00000000     0 "
        "       0 4711 1 0\n   1: 00000000:18EB 00000000:0000 0A 00000000:00000000 00:00000000"
        " 00000000     0        0 4712 1 0\n"
    )
    assert list(proc.parse_peers(tcp)) == [(4711, "127.0.0.1:6379", 0xA06B), (4712, "", 6379)]
    six = (
        "  sl  local_address                         remote_address                        st\n  "
        " 0: 00000000000000000000000001000000:A06B 00000000000000000000000001000000:18EB 01 0:0 0:0"
        " 0 0 0 4713 1\n   1: 0000000000000000FFFF00000100007F:A06B"
        " 0000000000000000FFFF00000100007F:18EB 01 0:0 0:0 0 0 0 4714 1\n"
    )
    assert list(proc.parse_peers(six)) == [
        (4713, "[::1]:6379", 0xA06B),
        (4714, "127.0.0.1:6379", 0xA06B),
    ]


def test_addresses_in_a_process() -> None:
    assert (
        proc.parse_address(struct.pack("=H", 2) + b"\x18\xeb\x0a\x00\x00\x01" + bytes(8))
        == "10.0.0.1:6379"
    )
    assert (
        proc.parse_address(struct.pack("=H", 10) + b"\x18\xeb" + bytes(19) + b"\x01")
        == "[::1]:6379"
    )
    assert proc.parse_address(struct.pack("=H", 1) + b"/run/x.sock\0rest") == "/run/x.sock"
    assert proc.parse_address(struct.pack("=H", 1) + b"\0name\0\0") == "@name"
    assert proc.parse_address(struct.pack("=H", 2) + b"\x18") == ""


def test_descriptors_that_are_watched() -> None:
    assert proc.parse_epoll(
        "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5\ntfd: 7 events: 1\n"
    ) == [5, 7]
    assert proc.polled(struct.pack("=ihhihh", 3, 1, 0, -1, 1, 0)) == [3]
    assert proc.selected(b"\x08\x01") == [3, 8]
    assert proc.inode_of("pos:\t0\nino:\t42\n") == 42


# -- seconds by state
# --------------------------------------------------------------------------------------------------

seconds = st.floats(0, 100)
shares = st.lists(st.builds(ThreadShare, seconds, seconds), max_size=5)
doings = st.sampled_from(
    [RUNNABLE, UNKNOWN, *(Doing(state, name) for state in State for name in ("", "a"))]
)
looks = st.builds(
    TreeLook,
    doings,
    st.tuples(st.integers(1, 3), st.just(1)),
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
        spent.interval(interval_s, look, min(still_s, interval_s))
    spent.close(rest, cpu_s, min(unchanged_s, rest))
    spent.throttle(throttled_s)
    total_s = sum(interval_s for interval_s, _, _ in intervals) + rest
    by_state = spent.seconds(total_s)
    assert math.isclose(sum(by_state.values()), total_s, rel_tol=1e-6, abs_tol=1e-6)
    assert all(value >= 0 for value in by_state.values())
    assert sum(wait.seconds for wait in spent.waits()) <= total_s + 1e-6
    assert all(wait.object for wait in spent.waits())


@given(seconds, shares)
def test_threads_run_no_longer_than_time_passes(interval_s: float, many: list[ThreadShare]) -> None:
    run_s, wait_s = union(interval_s, many)
    assert 0 <= run_s <= interval_s and -1e-9 <= wait_s <= interval_s - run_s + 1e-6


def test_one_thread_has_exactly_what_the_kernel_counted() -> None:
    assert union(1.0, [ThreadShare(0.25, 0.5)]) == pytest.approx((0.25, 0.5))


def look(
    state: State | None, *, thread: int = 1, age_s: float = 99.0, living: tuple[int, ...] = (1,)
) -> TreeLook:
    return TreeLook(
        Doing(state), (thread, thread), age_s, [], frozenset((pid, pid) for pid in living)
    )


def test_half_an_interval_belongs_to_each_end() -> None:
    spent = TimeByState()
    spent.interval(0.1, look(State.FILE_LOCK))
    spent.interval(0.2, look(State.SLEEP))
    spent.close(0.3, 0.0)
    assert spent.seconds(0.6) == pytest.approx({State.FILE_LOCK: 0.2, State.SLEEP: 0.4})


def test_time_in_which_nobody_ran_belongs_to_its_begin() -> None:
    spent = TimeByState()
    spent.interval(0.0, look(State.FILE_LOCK))
    spent.interval(1.0, look(State.SLEEP), 0.8)
    spent.close(0.0, 0.0)
    assert spent.seconds(1.0) == pytest.approx({State.FILE_LOCK: 0.9, State.SLEEP: 0.1})


def test_a_process_claims_no_more_than_it_lived() -> None:
    spent = TimeByState()
    spent.interval(0.1, look(State.SLEEP, thread=2, age_s=0.01, living=(1, 2)))
    spent.interval(0.1, look(State.SLEEP, thread=3, age_s=0.02, living=(1, 3)))
    spent.close(0.0, 0.0)
    by_state = spent.seconds(0.2)
    # 0.01 to its left and 0.01 to its right of the first, 0.02 of the second
    assert by_state[State.SLEEP] == pytest.approx(0.04) and by_state[
        State.NOT_OBSERVED
    ] == pytest.approx(0.16)


def test_cpu_time_of_processes_that_no_look_saw_is_known() -> None:
    spent = TimeByState()
    spent.close(1.0, 0.25)
    assert spent.seconds(1.0) == pytest.approx({State.ON_CPU: 0.25, State.NOT_OBSERVED: 0.75})


def test_throttling_takes_from_the_waiting_for_a_cpu_only() -> None:
    spent = TimeByState()
    spent.interval(
        1.0, TreeLook(RUNNABLE, (1, 1), 99.0, [ThreadShare(0.25, 0.5)], frozenset({(1, 1)}))
    )
    spent.close(0.0, 0.25)
    spent.throttle(2.0)
    by_state = spent.seconds(1.0)
    assert by_state[State.THROTTLED] == pytest.approx(0.5) and State.CPU_WAIT not in by_state


def test_an_object_has_the_same_name_in_all_requests_whatever_else_they_wait_for() -> None:
    path = "/data/" + "x" * 150
    others = tuple(Wait(State.NETWORK, f"{number}" * 160, 0.1) for number in range(3))
    for count in range(4):
        activity = Activity(
            {State.FILE_LOCK: 1.0}, (Wait(State.FILE_LOCK, path, 1.0), *others[:count]), cpu_s=1 / 3
        )
        row = activity.to_dict()
        assert row["waits"][0]["object"] == path
        assert len(wire.dump(row).encode()) <= MAX_BYTES


# -- limits
# --------------------------------------------------------------------------------------------------


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_throttling_by_version_2_counts_all_limits_around_us(tmp_path: Path) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    write(own, "0::/a/b\n")
    for folder, limit in (("", ""), ("a", "20000 100000"), ("a/b", "max 100000")):
        write(root / folder / "cgroup.procs", "")
        write(root / folder / "cpu.stat", "nr_throttled 1\nthrottled_usec 500000\n")
        if limit:
            write(root / folder / "cpu.max", limit)
    throttling = Throttling(root, own)
    write(root / "a/cpu.stat", "nr_periods 40\nnr_throttled 11\nthrottled_usec 2500000\n")
    write(root / "a/b/cpu.stat", "nr_periods 20\nnr_throttled 19\nthrottled_usec 9500000\n")
    assert throttling.seconds() == pytest.approx(2.0)
    assert throttling.part() == pytest.approx(0.25)


@pytest.mark.parametrize("path", ["/", "/kubepods/pod1/c1", "/../.."])
def test_throttling_by_version_1_in_a_container(tmp_path: Path, path: str) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    write(own, f"5:memory:{path}\n4:cpu,cpuacct:{path}\n0::/\n")
    write(root / "cpu,cpuacct/cgroup.procs", "")
    write(root / "cpu,cpuacct/cpu.cfs_quota_us", "20000\n")
    write(
        root / "cpu,cpuacct/cpu.stat", "nr_periods 1\nnr_throttled 1\nthrottled_time 1000000000\n"
    )
    throttling = Throttling(root, own)
    write(
        root / "cpu,cpuacct/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_time 4000000000\n"
    )
    assert throttling.seconds() == pytest.approx(3.0)
    assert throttling.part() == pytest.approx(0.5)


def test_control_groups_that_may_not_be_looked_for_have_no_limit(tmp_path: Path) -> None:
    write(tmp_path / "cgroup.procs", "")
    # a name that no file may have: looking for it is an error, not an absence
    write(tmp_path / "cgroup", f"0::/{'x' * 300}\n")
    assert Throttling(tmp_path, tmp_path / "cgroup").seconds() == 0


@pytest.mark.parametrize(
    ("open_files", "threads"), [(-1, 256), (1_048_576, 256), (1024, 256), (256, 64)]
)
def test_looking_leaves_half_of_the_files_to_others(open_files: int, threads: int) -> None:
    assert most_threads(open_files) == threads


def test_without_a_limit_nothing_is_throttled(tmp_path: Path) -> None:
    assert Throttling(tmp_path, tmp_path / "missing").seconds() == 0
    write(tmp_path / "cgroup", "0::/\nnonsense\n")
    write(tmp_path / "cgroup.procs", "")
    write(tmp_path / "cpu.max", "max 100000\n")
    write(tmp_path / "cpu.stat", "nr_throttled 1\nthrottled_usec 500000\n")
    assert Throttling(tmp_path, tmp_path / "cgroup").seconds() == 0


@pytest.mark.parametrize("cost_s", [0.0005, 0.01])
def test_looks_that_cost_more_are_rarer(cost_s: float) -> None:
    allowance = Allowance()
    now = spent_s = 0.0
    for _ in range(1000):
        now += allowance.interval_s
        allowance.spend(cost_s)
        spent_s += cost_s
    assert spent_s / now == pytest.approx(SHARE, rel=0.01)


def test_a_look_that_cost_a_lot_is_paid_back() -> None:
    allowance = Allowance()
    now = 0.0
    allowance.spend(1.0)
    for _ in range(100):
        now += allowance.interval_s
        allowance.spend(0.0)
    assert SHARE * now == pytest.approx(1.0)


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
        monkeypatch.setattr(sampler, "Tree", lambda *_: self)
        self.sampler = sampler.RequestSampler(sampled_part=1.0)
        self.sampler.chance.seed(1)
        monkeypatch.setattr(self.sampler, "own_schedule", lambda: proc.Schedule(0.0, 0.0, 1))

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self._cpu_s

    def is_unchanged(self) -> bool:
        return False

    def ended(self) -> ThreadShare:
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
        return TreeLook(doing, (1, 1), math.inf, [share], frozenset({(1, 1)}))

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
        usage = struct_rusage((self.spent(State.ON_CPU, math.inf), *[0] * 15))
        activity = watch.close(usage)
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
    seen: dict[State, float] = defaultdict(float)
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
            seen[state] += seconds
    whole_s = sum(true.values())
    # three standard errors of as many looks as there are, and what the first request leaves open
    for state in State:
        assert seen[state] / whole_s == pytest.approx(true[state] / whole_s, abs=0.05), state


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
    busy = TreeLook(RUNNABLE, (2, 2), 0.1, [ThreadShare(0.05, 0.1)], frozenset({(1, 1), (2, 2)}))
    spent = TimeByState()
    spent.interval(0.2, busy)
    other = busy._replace(thread=(3, 3), threads=frozenset({(1, 1), (3, 3)}))
    spent.interval(0.2, other)
    spent.close(0.0, 0.1)
    by_state = spent.seconds(0.4)
    assert by_state[State.CPU_WAIT] > 0.2


def test_states_that_no_look_met_are_not_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch, 0.0004)
    monkeypatch.setattr(simulated.sampler.moments, "next_s", lambda *_, **__: 1e9)
    seconds = simulated.request([(State.ON_CPU, 0.1), (State.SLEEP, 0.3)])
    assert seconds == pytest.approx({State.ON_CPU: 0.1, State.NOT_OBSERVED: 0.3})


def test_what_is_kept_for_short_requests_is_bounded_where_each_waits_for_another_object() -> None:
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
    assert other.seconds(0.5) == {State.DISK: pytest.approx(0.5)}
    assert all(abs(seconds) <= MOST_KEPT_S for seconds in balance._kept.values())


def test_many_short_page_waits_count_as_memory_although_the_thread_looks_running() -> None:
    sleeping, running, key = Doing(State.SLEEP), Doing(None), (7, 7)
    spent = TimeByState()
    spent.interval(0.1, TreeLook(sleeping, key, 1e9, [ThreadShare(0.0, 0.0, 1)], frozenset({key})))
    faulting = TreeLook(
        running, key, 1e9, [ThreadShare(0.02, 0.0, 400)], frozenset({key}), Doing(State.MEMORY)
    )
    spent.interval(0.1, faulting)
    spent.interval(0.1, faulting)
    spent.close(0.0, 0.04)
    seconds = spent.seconds(0.3)
    assert seconds[State.MEMORY] == pytest.approx(0.04 + 0.08)
    assert seconds[State.SLEEP] == pytest.approx(0.1 + 0.04)


def test_the_faults_of_a_thread_that_read_from_a_disk() -> None:
    line = b"7 (a) b) S 1 7 7 0 -1 4194304 900 0 41 0 3 2 0 0 20 0 1 0 5 0 0"
    assert proc.parse_major_faults(line) == 41
    assert proc.parse_major_faults(b"") == proc.parse_major_faults(b"7 (a) S") == 0
