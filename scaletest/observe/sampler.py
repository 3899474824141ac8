"""The sampler of requests: where the processes of a running program spend their time.

It has no thread: who waits for a program looks at its processes in between, so that nothing runs
while no program does. Looks are rarer where they cost more, and a look that fails ends the sampling
of that request and nothing else.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Callable
from dataclasses import replace
from resource import struct_rusage

from scaletest.model.activity import Activity, State
from scaletest.observe.blocking import Blocking
from scaletest.observe.control_groups import Throttling
from scaletest.observe.devices.clients import Clients, present
from scaletest.observe.time_by_state import Balance, TimeByState
from scaletest.observe.tree import NOTHING_RAN, Tree
from scaletest.processes import proc

logger = logging.getLogger("scaletest.worker")

INTERVAL_S = 0.1
# Of a long program a tenth of the time that it ran: phases of a second matter less in a minute.
GROWTH, LONGEST_INTERVAL_S = 0.1, 0.5
# So many looks are enough for a request of up to a second or so.
ENOUGH_LOOKS = 3
# In requests of more looks it does not matter where in an interval the first one falls.
FEW_LOOKS = 2
# Of requests that typically take less than this a random part is sampled: what sampling needs
# before and after each of them would otherwise cost 8 workers more than 1 % of a core.
SHORT_S, SAMPLED_PART = 1.0, 0.5
# Part of a core that looks may take: where they cost more, as with many threads or cold caches,
# they become rarer.
SHARE = 0.002
NEVER = float("inf")
# Multiples of the golden section, modulo 1, are spread evenly, however many there are.
GOLDEN_SECTION = 0.6180339887498949
_DENIED = {
    "syscall": (
        "the system calls of some programs cannot be read: what they wait for is less certain"
    ),
    "wchan": (
        "neither system calls nor kernel functions of some programs can be read: waits are not"
        " observed"
    ),
    "stat": "some processes of programs cannot be read: their time counts as not observed",
    "fdinfo": (
        "the device use of some programs cannot be read: how long they keep devices busy is"
        " left out"
    ),
    "schedstat": (
        "this kernel does not count how long threads wait for a CPU: causes are not sampled"
    ),
}


class RequestSampler:
    """Samples programs, for one thread.

    share: the part of a core that looks may take. sampled_part: of short requests.
    """

    def __init__(self, share: float = SHARE, sampled_part: float = SAMPLED_PART) -> None:
        self._sampled_part = sampled_part
        self._told: set[str] = set()
        self.blocking = Blocking(denied=self.tell)
        self.throttling = Throttling()
        self.clients = Clients(denied=self.tell)
        self.chance = random.Random()
        self.allowance = Allowance(share)
        self.balance = Balance()
        self.moments = Moments(self.chance)
        # CPU time of this thread up to the last look at any program
        self.cpu_s = 0.0
        self.typical_s = INTERVAL_S
        self._has_typical = False
        self.own_schedule = OwnSchedule().read
        self.works = self.own_schedule() is not None
        if not self.works:
            self.tell("schedstat")

    def begin(self, device: str = "") -> ProgramWatch:
        """Before a program starts."""
        self.blocking.use_device(device)
        return ProgramWatch(self, device)

    def draw(self, device: str = "") -> ProgramWatch | None:
        """Before a request's program starts; None where chance leaves out one of many short
        requests.
        """
        is_short = self._has_typical and self.typical_s < SHORT_S
        if is_short and not device and self.chance.random() >= self._sampled_part:
            return None
        return self.begin(device)

    def interval_s(self) -> float:
        """Between two looks: a whole number of intervals makes up a request, where requests are
        longer than one.
        """
        least_s = max(
            INTERVAL_S,
            self.allowance.interval_s,
            min(LONGEST_INTERVAL_S, self.typical_s / ENOUGH_LOOKS),
        )
        return max(least_s, self.typical_s / max(1, int(self.typical_s / least_s)))

    def next_after_s(self, interval_s: float, ran_s: float) -> float:
        """How long after a look the next one comes, of a program that ran so long."""
        return max(interval_s, min(LONGEST_INTERVAL_S, GROWTH * ran_s), self.allowance.interval_s)

    def ended(self, ran_s: float) -> None:
        """Take in how long a program took."""
        self._has_typical = True
        self.moments.passed(ran_s)
        self.typical_s = 0.8 * self.typical_s + 0.2 * ran_s

    def tell(self, key: str, text: str = "") -> None:
        """Warn, once for each key."""
        if key not in self._told:
            self._told.add(key)
            logger.warning("%s", text or _DENIED[key])


class Moments:
    """When to look at programs for the first time, at any instant of an interval with the same
    chance.

    Programs that are shorter than an interval are looked at once in each interval of the time that
    they run, the intervals of one after the other. Longer ones are looked at in the first interval
    of each; the instants in those of several programs are spread evenly, so that the means of a
    dozen with one look or two each are near those of all. (Instants in the intervals of short ones
    are not: where an interval and a program have certain lengths, all would meet one phase.)
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        # of the last instant in the first interval of a program
        self._part = chance.random()
        # from the begin of the program
        self._next_s = self._end_s = 0.0

    def next_s(self, interval_s: float, *, anew: bool) -> float:
        """Time of the next look, since the program began. anew: an interval begins with the
        program.
        """
        if anew:
            self._part = (self._part + GOLDEN_SECTION) % 1.0
            self._next_s, self._end_s = self._part * interval_s, interval_s
        elif self._next_s <= 0.0:
            self._next_s = self._end_s + self._chance.uniform(0.0, interval_s)
            self._end_s += interval_s
        return self._next_s

    def looked(self, interval_s: float) -> float:
        """There was a look; when to look again."""
        self._next_s = 0.0
        return self.next_s(interval_s, anew=False)

    def passed(self, seconds: float) -> None:
        """A program ran so long."""
        self._next_s -= seconds
        self._end_s = max(0.0, self._end_s - seconds)


class Allowance:
    """CPU time for looks: so much of what passes between two of them as they may cost, by what they
    did cost.
    """

    def __init__(self, share: float = SHARE) -> None:
        self._share = share
        self._cost_s = 0.0

    @property
    def interval_s(self) -> float:
        """Between two looks."""
        return self._cost_s / self._share

    def spend(self, seconds: float) -> None:
        """A look cost so much, with the waking up for it."""
        self._cost_s = 0.8 * self._cost_s + 0.2 * seconds


class ProgramWatch:
    """One program from before its start to its end. `due`: when to look next, on the monotonic
    clock.
    """

    def __init__(self, sampler: RequestSampler, device: str = "") -> None:
        self._sampler = sampler
        self._device = device
        self._clients = sampler.clients if present(device) else None
        if self._clients is not None:
            self._clients.begin(device)
        self._began = self._looked = self._started = time.monotonic()
        self._looks_s = 0.0
        # since the last look that counted
        self._unchanged_s = 0.0
        # how long we waited for a CPU to look, while the program went on
        self._late_s = 0.0
        self._own = sampler.own_schedule()
        self._throttled_s = sampler.throttling.seconds()
        self._interval_s = sampler.interval_s()
        self._is_short = sampler.typical_s < self._interval_s
        self._first_s = sampler.moments.next_s(self._interval_s, anew=not self._is_short)
        # in requests of few looks the first one stands for a whole interval, wherever in it it
        # falls
        has_few = not self._is_short and sampler.typical_s < FEW_LOOKS * self._interval_s
        self._spent = TimeByState(1.0 - self._first_s / self._interval_s if has_few else 0.5)
        # the interval that the next look stands for, and the sum of those of looks that met
        # something blocked
        self._look_s = self._interval_s
        self._stands_for_s = 0.0
        # how long the first process ran and waited for a CPU since the last look that counted
        self._first = NOTHING_RAN
        self._tree: Tree | None = None
        self._keeps_tree = True
        self.due = NEVER

    def start(self, pid: int) -> None:
        """The program has started."""
        self._count_own(0.0)
        if self._sampler.works:
            self._tree = Tree(pid, self._sampler.blocking)
            self._begin_looks()
            self._sampler.cpu_s = time.thread_time()

    def resume(self, tree: Tree) -> None:
        """The program was there before, and begins to work. The tree is the caller's; what it did
        does not count.
        """
        self._count_own(0.0)
        if not self._sampler.works:
            return
        began_s = time.thread_time()
        try:
            look = tree.look()
            if self._clients is not None:  # what their counters show now is of before
                self._clients.look(tree.processes)
                self._clients.begin(self._device)
        except Exception as error:
            self._sampler.tell("error", f"sampling ended early: {type(error).__name__}: {error}")
            return
        if look is not None:
            self._spent.interval(0.0, look._replace(shares=[]))
        self._tree, self._keeps_tree = tree, False
        self._spend(began_s)
        self._begin_looks()

    def _begin_looks(self) -> None:
        self._started = time.monotonic()
        self.due = self._started + self._first_s

    def look(self) -> None:
        """Look at the processes. As long as nobody ran the interval goes on, to be counted when
        somebody did.
        """
        now = time.monotonic()
        self._late_s += max(0.0, now - self.due)
        try:
            assert self._tree is not None
            if self._tree.is_unchanged():
                self._unchanged_s = max(0.0, now - self._looked)
            else:
                self._spent.interval(
                    max(0.0, now - self._looked), self._tree.look(), self._unchanged_s
                )
                self._looked, self._unchanged_s = now, 0.0
            # a device may be busy while nobody runs
            if self._clients is not None:
                self._clients.look(self._tree.processes)
        except Exception as error:
            self._sampler.tell("error", f"sampling ended early: {type(error).__name__}: {error}")
            self.due = NEVER
            return
        self._stands_for_s += self._look_s if self._spent.ends_blocked else 0.0
        self._spend(self._sampler.cpu_s)
        if self._is_short:
            self.due = max(now, self._started + self._sampler.moments.looked(self._interval_s))
        else:
            self._look_s = self._sampler.next_after_s(self._interval_s, now - self._began)
            self.due = now + self._look_s

    def ended(self) -> None:
        """The program has ended, and is not yet reaped."""
        if self._tree is not None:
            self._first = self._tree.ended()

    def _spend(self, since_s: float) -> None:
        """A look cost the CPU time of this thread since then, with the waking up for it."""
        self._sampler.cpu_s = time.thread_time()
        self._looks_s += self._sampler.cpu_s - since_s
        self._sampler.allowance.spend(self._sampler.cpu_s - since_s)

    def close(self, usage: struct_rusage | None) -> Activity | None:
        """The program has ended, with what it used, None when that is not known. None when nothing
        can be said.
        """
        return self._quietly(lambda: self._close(usage))

    def close_own(self, state: State, name: str = "") -> Activity | None:
        """There was no program, but this thread: as long as it neither ran nor waited for a CPU it
        was in this state.

        name: of what it waited for.
        """
        return self._quietly(lambda: self._close_own(state, name))

    def _quietly(self, close: Callable[[], Activity]) -> Activity | None:
        try:
            return close()
        except Exception as error:
            self._sampler.tell("error", f"sampling ended early: {type(error).__name__}: {error}")
            return None

    def _close_own(self, state: State, name: str) -> Activity:
        self._count_own(0.0)
        ended = time.monotonic()
        self._spent.add(state, ended - self._looked, name)
        return self._activity(ended, None)

    def _close(self, usage: struct_rusage | None) -> Activity:
        if self._tree is not None and self._keeps_tree:
            self._tree.close()
        elif self._tree is not None and self._clients is not None:
            # its processes live on, and can be read at the end
            self._clients.look(self._tree.processes)
        self._count_own(self._looks_s)
        self._sampler.ended(time.monotonic() - self._started)
        ended = time.monotonic()
        self._spent.close(
            max(0.0, ended - self._looked),
            usage.ru_utime + usage.ru_stime if usage else 0.0,
            self._unchanged_s,
            self._first,
        )
        self._sampler.balance.settle(self._spent, self._stands_for_s)
        activity = self._activity(ended, usage)
        if self._clients is None:
            return activity
        return replace(
            activity, engines=self._clients.busy_s(), device_memory_bytes=self._clients.memory_bytes
        )

    def _count_own(self, looks_s: float) -> None:
        """Our own time: to start the program, or to see that it ended, we need a CPU ourselves.
        looks_s: of looks.
        """
        own = self._sampler.own_schedule()
        if own is None or self._own is None:
            return
        passed_s = max(0.0, time.monotonic() - self._looked)
        run_s = min(passed_s, max(0.0, own.run_s - self._own.run_s - looks_s))
        wait_s = min(passed_s - run_s, max(0.0, own.wait_s - self._own.wait_s - self._late_s))
        self._spent.add(State.ON_CPU, run_s)
        self._spent.add(State.CPU_WAIT, wait_s)
        self._looked += run_s + wait_s
        self._own = own

    def _activity(self, ended: float, usage: struct_rusage | None) -> Activity:
        throttled_s = self._sampler.throttling.seconds() - self._throttled_s
        self._spent.throttle(throttled_s)
        activity = Activity(
            self._spent.seconds(ended - self._began), self._spent.waits(), throttled_s=throttled_s
        )
        if usage is None:
            return activity
        return replace(
            activity,
            cpu_s=usage.ru_utime + usage.ru_stime,
            memory_bytes=usage.ru_maxrss * 1024,
            read_blocks=usage.ru_inblock,
            written_blocks=usage.ru_oublock,
            major_faults=usage.ru_majflt,
            switches=usage.ru_nvcsw,
            involuntary_switches=usage.ru_nivcsw,
        )


class OwnSchedule:
    """How long the thread that reads it ran and waited for a CPU. Forked processes have their
    own.
    """

    def __init__(self) -> None:
        self._handle = -1
        self._process = 0

    def read(self) -> proc.Schedule | None:
        """None where the kernel does not tell."""
        try:
            if self._process != os.getpid():
                self._process = os.getpid()
                self._handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            schedule = proc.parse_schedule(os.pread(self._handle, 128, 0))
        except OSError:
            return None
        return schedule if schedule and schedule.slices else None
