"""When to look at a program, and how often looks may come."""

import random

# Part of a core that looks may take: where they cost more, as with many threads or cold caches,
# they become rarer.
SHARE = 0.002
# Multiples of the golden section, modulo 1, are spread evenly, however many there are.
GOLDEN_SECTION = 0.6180339887498949


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
        """Return the time of the next look, since the program began. anew: an interval begins with
        the program.
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

    def count_look(self, seconds: float) -> None:
        """Take in what a look cost, with the waking up for it."""
        self._cost_s = 0.8 * self._cost_s + 0.2 * seconds
