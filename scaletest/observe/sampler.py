"""The sampler of requests: where the processes of a running program spend their time.

It has no thread: who waits for a program looks at its processes in between, so that nothing runs
while no program does. Looks are rarer where they cost more, and a look that fails ends the sampling
of that request and nothing else.
"""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from resource import struct_rusage

from scaletest.model.activity import MAX_CPUS, Activity, State
from scaletest.observe.devices.clients import devices_present
from scaletest.observe.sampling import FOLLOW_S, SETTLE_S, SHORT_S, Sampling
from scaletest.observe.time_by_state import TimeByState
from scaletest.observe.tree import NOTHING_RAN, Tree

NEVER = float("inf")
# CPU time that following one program may take, beside some times as much as others took.
MOST_FOLLOW_S, FOLLOW_COST_FACTOR = 0.005, 4.0
# While a tree that has changed does not wait yet, each look comes after so many times the pause
# before the last one.
SETTLE_FACTOR = 3.0


class ProgramWatch:
    """One program from before its start to its end.

    `due`: when to look next, on the monotonic clock.
    """

    def __init__(self, sampling: Sampling, *, follows: bool = False) -> None:
        """follows: look also whenever a descendant of the program has ended."""
        self._sampling = sampling
        self._follows = follows
        self._spent = TimeByState()
        # the processes, once there are some, and whether they live on after this
        self._tree: Tree | None = None
        self._keeps_tree = False
        self._has_forked = False
        # how long the first process ran and waited for a CPU between the last look and its end
        self._root_share = NOTHING_RAN
        self._clients = sampling.clients if devices_present() else None
        if self._clients is not None:
            self._clients.begin()

        # when this began, the program began, and it was looked at last
        self._began_s = self._started_s = self._looked_s = time.monotonic()
        self.due = NEVER
        # for how long nobody ran since the last look that counted
        self._unchanged_s = 0.0
        # after how long to look again at a tree that has just changed, 0 once it waits; and when it
        # changed
        self._settle_s = 0.0
        self._changed_s = 0.0
        # CPU time of the looks
        self._looks_cost_s = 0.0
        # how long we waited for a CPU to look, while the program went on
        self._late_s = 0.0

        self._own_schedule = sampling.own_schedule()
        if self._own_schedule is not None and sampling.waited_s is not None:
            sampling.waited_between_s = max(0.0, self._own_schedule.wait_s - sampling.waited_s)
        self._throttled_s = sampling.throttling.seconds()

        self._interval_s = sampling.interval_s()
        self._is_short = sampling.typical_s < self._interval_s
        self._first_look_s = sampling.moments.next_s(self._interval_s, anew=not self._is_short)
        # the interval that the next look stands for, and the sum of those of looks that met
        # something blocked
        self._look_interval_s = self._interval_s
        self._stands_for_s = 0.0
        # CPUs that what ran may use
        self._cpus: set[int] = set()

    def start(self, pid: int) -> None:
        """Begin to look at the program, which has started."""
        self._count_own(0.0)
        if self._sampling.works:
            self._tree = Tree(pid, self._sampling.blocking, watch_ends=self._follows)
            self._plan_first_look()
            if self._follows:
                self._settle(self._started_s)
            self._sampling.cpu_s = time.thread_time()

    def resume(self, tree: Tree) -> None:
        """Begin to look at a program that was there before, and begins to work.

        tree: the caller's; what it did before does not count.
        """
        self._count_own(0.0)
        self._follows = False
        if not self._sampling.works:
            return
        began_s = time.thread_time()
        with self._warning_of_errors():
            look = tree.look()
            if self._clients is not None:  # what their counters show now is of before
                self._clients.look(tree.processes)
                self._clients.begin()
            if look is not None:
                self._spent.add_interval(0.0, look._replace(shares=[]))
            self._tree = tree
            self._keeps_tree = True
            self._spend(began_s)
            self._plan_first_look()

    def _plan_first_look(self) -> None:
        self._started_s = time.monotonic()
        self.due = self._started_s + self._first_look_s

    @property
    def end_handles(self) -> list[int]:
        """Descriptors that are readable when descendants of the program have ended."""
        return self._tree.end_handles if self._tree is not None and self._follows else []

    def note_ends(self, handles: Collection[int]) -> None:
        """Take in that descendants have ended. Who waited for them goes on, maybe with another."""
        with self._warning_of_errors():
            assert self._tree is not None
            now_s = time.monotonic()
            if self._tree.note_ends(handles) and self._spent.waits_in_sequence:
                # until then it was in the state in which the last look met it
                self._unchanged_s = max(0.0, now_s - self._looked_s)
            self._spend(self._sampling.cpu_s)
            self._settle(now_s)

    def _settle(self, now_s: float) -> None:
        """Look soon, and again until the tree waits for something, within the allowance."""
        self._settle_s = SETTLE_S
        self._changed_s = now_s
        self.due = min(self.due, now_s + SETTLE_S)
        usual_cost_s = FOLLOW_COST_FACTOR * self._sampling.follow_cost_s
        if self._looks_cost_s > MOST_FOLLOW_S + usual_cost_s:
            self._follows = False
            self._settle_s = 0.0

    def look(self) -> None:
        """Look at the processes.

        As long as nobody ran the interval goes on, to be counted when somebody did.
        """
        now_s = time.monotonic()
        self._late_s += max(0.0, now_s - self.due)
        self.due = NEVER  # where this look fails, it is the last one
        with self._warning_of_errors():
            assert self._tree is not None
            passed_s = max(0.0, now_s - self._looked_s)
            if self._tree.is_unchanged():
                self._unchanged_s = passed_s
            else:
                look = self._tree.look()
                self._spent.add_interval(passed_s, look, self._unchanged_s)
                if look is not None and look.doing.state is None:
                    # a command in a script may be pinned to CPUs by itself
                    self._note_cpus(look.active_tid)
                self._looked_s = now_s
                self._unchanged_s = 0.0
            # a device may be busy while nobody runs
            if self._clients is not None:
                self._clients.look(self._tree.processes)
            if self._spent.ends_blocked:
                self._stands_for_s += self._look_interval_s
            self._spend(self._sampling.cpu_s)
            self._has_forked = self._has_forked or len(self._tree.processes) > 1
            self._plan_next_look(now_s)

    def _plan_next_look(self, now_s: float) -> None:
        """Plan the look after one: soon while a tree that has changed does not wait yet."""
        if self._settle_s and not self._spent.waits_in_sequence:
            self._settle_s *= SETTLE_FACTOR
            if self._settle_s < FOLLOW_S:
                self.due = now_s + self._settle_s
                return
        self._settle_s = 0.0
        if self._is_short:
            next_s = self._sampling.moments.next_after_look_s(self._interval_s)
            self.due = max(now_s, self._started_s + next_s)
            return
        if self._follows:
            self._look_interval_s = self._sampling.follow_after_s(now_s - self._changed_s)
        else:
            ran_s = now_s - self._began_s
            self._look_interval_s = self._sampling.next_after_s(self._interval_s, ran_s)
        self.due = now_s + self._look_interval_s

    def ended(self) -> None:
        """Note how long the first process ran: the program has ended, and is not yet reaped."""
        if self._tree is not None:
            self._root_share = self._tree.look_at_end()
            if not self._cpus:
                self._note_cpus(self._tree.root)

    def _note_cpus(self, tid: int) -> None:
        with suppress(OSError):
            self._cpus |= os.sched_getaffinity(tid)

    def _spend(self, since_s: float) -> None:
        """Count the CPU time of this thread since then as that of a look, with the waking up."""
        self._sampling.cpu_s = time.thread_time()
        cost_s = self._sampling.cpu_s - since_s
        self._looks_cost_s += cost_s
        self._sampling.allowance.count_look(cost_s)

    @contextmanager
    def _warning_of_errors(self) -> Iterator[None]:
        """Sample no further after an error, and tell of it: the request goes on."""
        try:
            yield
        except Exception as error:
            self._sampling.tell("error", f"sampling ended early: {type(error).__name__}: {error}")

    def close(self, usage: struct_rusage | None) -> Activity | None:
        """Return the activity of a program that has ended; None when nothing can be said.

        usage: what it used, None when that is not known.
        """
        activity: Activity | None = None
        with self._warning_of_errors():
            if self._tree is not None and not self._keeps_tree:
                self._tree.close()
            elif self._tree is not None and self._clients is not None:
                self._clients.look(self._tree.processes)
            self._count_own(self._looks_cost_s)
            self._sampling.count_program(time.monotonic() - self._started_s)
            if self._follows:
                self._sampling.count_followed(self._looks_cost_s, self._has_forked)
            self._sampling.forks = self._sampling.forks or self._has_forked
            ended_s = time.monotonic()
            self._spent.add_end(
                max(0.0, ended_s - self._looked_s),
                usage.ru_utime + usage.ru_stime if usage else 0.0,
                self._unchanged_s,
                self._root_share,
            )
            stands_for_s = None if self._follows else self._stands_for_s
            self._sampling.balance.settle(self._spent, stands_for_s)
            activity = self._activity(ended_s)
            if usage is not None:
                activity = replace(
                    activity,
                    cpu_s=usage.ru_utime + usage.ru_stime,
                    memory_bytes=usage.ru_maxrss * 1024,
                    read_blocks=usage.ru_inblock,
                    written_blocks=usage.ru_oublock,
                    major_faults=usage.ru_majflt,
                    switches=usage.ru_nvcsw,
                    involuntary_switches=usage.ru_nivcsw,
                )
            if self._clients is not None:
                activity = replace(
                    activity,
                    engines=self._clients.busy_s(),
                    device_memory_bytes=self._clients.memory_bytes,
                )
        return activity

    def close_own(self, state: State, name: str = "") -> Activity | None:
        """Return the activity of this thread, where there was no program.

        state: in which it was while it neither ran nor waited for a CPU. name: of what it waited
        for.
        """
        activity: Activity | None = None
        with self._warning_of_errors():
            self._count_own(0.0)
            ended_s = time.monotonic()
            self._spent.add(state, ended_s - self._looked_s, name)
            activity = self._activity(ended_s)
        return activity

    def _count_own(self, looks_s: float) -> None:
        """Count our own time: we need a CPU to start the program, and to see that it ended.

        looks_s: the part of that time that looks took, which is not the program's.
        """
        schedule = self._sampling.own_schedule()
        if schedule is None or self._own_schedule is None:
            return
        passed_s = max(0.0, time.monotonic() - self._looked_s)
        run_s = min(passed_s, max(0.0, schedule.run_s - self._own_schedule.run_s - looks_s))
        wait_s = min(
            passed_s - run_s, max(0.0, schedule.wait_s - self._own_schedule.wait_s - self._late_s)
        )
        self._spent.add(State.ON_CPU, run_s)
        self._spent.add(State.CPU_WAIT, wait_s)
        self._looked_s += run_s + wait_s
        self._own_schedule = schedule
        self._sampling.waited_s = schedule.wait_s

    def _activity(self, ended_s: float) -> Activity:
        throttled_s = self._sampling.throttling.seconds() - self._throttled_s
        self._spent.count_throttled(throttled_s)
        is_pinned = len(self._cpus) < min(os.cpu_count() or 0, MAX_CPUS + 1)
        return Activity(
            self._spent.seconds_by_state(ended_s - self._began_s),
            self._spent.longest_waits(),
            throttled_s=throttled_s,
            waited_before_s=self._sampling.waited_between_s,
            cpus=tuple(sorted(self._cpus)) if is_pinned else (),
        )


class RequestSampler(Sampling):
    """Samples programs, for one thread."""

    def begin(self) -> ProgramWatch:
        """Watch a program that is about to start."""
        return ProgramWatch(self, follows=self.chance.random() < self.part_to_follow())

    def draw(self, device: str = "") -> ProgramWatch | None:
        """Watch the program of a request that is about to start; None where chance leaves it out.

        So it does with many short requests that use no device, and with such of these as take much
        to follow.
        """
        self.blocking.use_device(device)
        is_short = not device and self.has_typical and self.typical_s < SHORT_S
        part = self._sampled_part if is_short else 1.0
        followed = self.part_to_follow()
        if followed and part < 1.0:
            part = min(part, followed)
        if self.chance.random() >= part:
            self.waited_s = None
            return None
        # of those that are sampled as many as may be followed of all
        return ProgramWatch(self, follows=self.chance.random() * part < followed)
