"""What the looks at all programs of a thread share: when to look, and what to warn of."""

import logging
import random

from scaletest.observe.blocking import Blocking
from scaletest.observe.control_groups import Throttling
from scaletest.observe.devices.clients import Clients
from scaletest.observe.time_by_state import Balance
from scaletest.processes import proc

# Part of a core that looks may take: where they cost more, as with many threads or cold caches,
# they become rarer.
LOOKS_SHARE = 0.002
# Of requests that typically take less than this a random part is sampled: what sampling needs
# before and after each of them would otherwise cost 8 workers more than 1 % of a core.
SHORT_S, SAMPLED_PART = 1.0, 0.5
# Multiples of the golden section, modulo 1, are spread evenly, however many there are.
GOLDEN_SECTION = 0.6180339887498949

logger = logging.getLogger("scaletest.worker")

INTERVAL_S = 0.1
# Of a long program a tenth of the time that it ran: phases of a second matter less in a minute.
GROWTH, LONGEST_INTERVAL_S = 0.1, 0.5
# The part of a core that may be spent on programs that start others: these are looked at whenever
# one of them ends, so soon after that, then after three times as long until the next one waits.
FORKS_SHARE = 0.003
SETTLE_S = 0.002
# Then so often, or after a tenth of the time for which the same processes were there, up to
# INTERVAL_S.
FOLLOW_S = 0.03
# Where less than this part of such programs could be followed, all are looked at as usual.
LEAST_FOLLOWED = 0.1
# So many looks are enough for a request of up to a second or so.
ENOUGH_LOOKS = 3
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


class Sampling:
    """Readers, intervals and allowances for the programs of one thread."""

    def __init__(self, share: float = LOOKS_SHARE, sampled_part: float = SAMPLED_PART) -> None:
        """share: the part of a core that looks may take. sampled_part: of short requests."""
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
        # whether programs of late started others, and what it costs to follow one of these
        self.forks = True
        self.follow_cost_s = 0.0
        self.typical_s = INTERVAL_S
        self.has_typical = False
        # what this thread had waited for a CPU when the last program ended, None where that was not
        # sampled; and what it waited between two programs, when that was known last
        self.waited_s: float | None = None
        self.waited_between_s = 0.0
        self.own_schedule = read_own_schedule
        self.works = self.own_schedule() is not None
        if not self.works:
            self.tell("schedstat")

    def interval_s(self) -> float:
        """Return the seconds between two looks.

        A whole number of intervals makes up a request, where requests are longer than one.
        """
        least_s = max(
            INTERVAL_S,
            self.allowance.interval_s,
            min(LONGEST_INTERVAL_S, self.typical_s / ENOUGH_LOOKS),
        )
        return max(least_s, self.typical_s / max(1, int(self.typical_s / least_s)))

    def next_after_s(self, interval_s: float, ran_s: float) -> float:
        """Return how long after a look the next one comes, of a program that ran so long."""
        return max(interval_s, min(LONGEST_INTERVAL_S, GROWTH * ran_s), self.allowance.interval_s)

    def follow_after_s(self, unchanged_s: float) -> float:
        """Return when to look again at a program whose processes have been the same for so long.

        The instants are left to chance, so that no phase of what they do is met more than others.
        """
        return self.chance.uniform(0.5, 1.5) * min(INTERVAL_S, max(FOLLOW_S, GROWTH * unchanged_s))

    def part_to_follow(self) -> float:
        """Return which part of the programs can be followed from one descendant to the next."""
        if not self.forks or self.typical_s < self.interval_s():
            return 0.0
        part = min(1.0, FORKS_SHARE * self.typical_s / max(1e-6, self.follow_cost_s))
        return part if part >= LEAST_FOLLOWED else 0.0

    def count_followed(self, cost_s: float, forks: bool) -> None:
        """Take in what it cost to follow a program, and whether it started others."""
        self.forks = forks
        # from 0 on, since the first programs find cold caches
        self.follow_cost_s = 0.8 * self.follow_cost_s + 0.2 * cost_s

    def count_program(self, ran_s: float) -> None:
        """Take in how long a program took."""
        self.has_typical = True
        self.moments.count_run(ran_s)
        self.typical_s = 0.8 * self.typical_s + 0.2 * ran_s

    def tell(self, key: str, text: str = "") -> None:
        """Warn, once for each key."""
        if key not in self._told:
            self._told.add(key)
            logger.warning("%s", text or _DENIED[key])


def read_own_schedule() -> proc.Schedule | None:
    """Return how long the thread that calls ran and waited for a CPU; None where it is unknown."""
    schedule = proc.parse_schedule(proc.read_text("/proc/thread-self/schedstat").encode())
    return schedule if schedule and schedule.slices else None


class Moments:
    """When to look at programs first: at any instant of an interval with the same chance.

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
        """Return the time of the next look, since the program began.

        anew: an interval begins with the program.
        """
        if anew:
            self._part = (self._part + GOLDEN_SECTION) % 1.0
            self._next_s, self._end_s = self._part * interval_s, interval_s
        elif self._next_s <= 0.0:
            self._next_s = self._end_s + self._chance.uniform(0.0, interval_s)
            self._end_s += interval_s
        return self._next_s

    def next_after_look_s(self, interval_s: float) -> float:
        """Return when to look again, after a look."""
        self._next_s = 0.0
        return self.next_s(interval_s, anew=False)

    def count_run(self, seconds: float) -> None:
        """Take in how long a program ran."""
        self._next_s -= seconds
        self._end_s = max(0.0, self._end_s - seconds)


class Allowance:
    """CPU time for looks: the part of what passes between two of them that they may cost."""

    def __init__(self, share: float = LOOKS_SHARE) -> None:
        self._share = share
        self._cost_s = 0.0

    @property
    def interval_s(self) -> float:
        """Between two looks."""
        return self._cost_s / self._share

    def count_look(self, seconds: float) -> None:
        """Take in what a look cost, with the waking up for it."""
        self._cost_s = 0.8 * self._cost_s + 0.2 * seconds
