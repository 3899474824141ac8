"""How often do the intervals of shares hold the truth? Simulated runs, without a clock.

hack/bars causes-coverage [--runs 200]

Workers pass through the commands of a request and wait for what they share. The product's own
sampler looks at them, by its own rules of when and at which requests, and the product attributes
what it saw; what requests truly did is known. Prints a row for each program and number of requests.
"""

import argparse
import heapq
import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from resource import struct_rusage

from scaletest.causes.attribution import attribute_causes
from scaletest.model import Activity, Measurement, Outcome, Record, Reply, State
from scaletest.observe import sampler as sampler_module
from scaletest.observe.doing import RUNNABLE, Doing
from scaletest.observe.sampler import RequestSampler
from scaletest.observe.tree import ThreadShare, TreeLook
from scaletest.processes.proc import Schedule
from scaletest.validation.judging.steps import summarise
from scaletest.validation.plan import Plan

BEGAN_S = 1_790_000_000.0
LOOK_COST_S = 0.00015
COUNTED = (State.ON_CPU, State.CPU_WAIT)
Spent = Sequence[tuple[State, float]]


@dataclass(frozen=True, slots=True)
class Program:
    """What a request does: states, and their seconds; SHARED is held by one request at a time."""

    phases: Sequence[tuple[State, float]]
    held: int  # index of the phase for which the lock is needed, of State.FILE_LOCK until then
    forks: bool  # whether each phase is a process of its own
    grows: int = -1  # index of a phase that takes as many times as long as there are workers
    scatter: float = 0.1


PROGRAMS = {
    "script with flock": Program(
        [(State.ON_CPU, 0.003), (State.SLEEP, 0.1), (State.ON_CPU, 0.002), (State.SLEEP, 0.1)],
        held=1,
        forks=True,
    ),
    "one process, flock": Program(
        [(State.ON_CPU, 0.02), (State.SLEEP, 0.15), (State.ON_CPU, 0.002), (State.SLEEP, 0.15)],
        held=1,
        forks=False,
    ),
    "short requests": Program(
        [(State.ON_CPU, 0.005), (State.DISK, 0.02), (State.ON_CPU, 0.002), (State.SLEEP, 0.02)],
        held=1,
        forks=False,
    ),
    "two causes": Program(
        [(State.ON_CPU, 0.02), (State.SLEEP, 0.1), (State.ON_CPU, 0.002), (State.DISK, 0.02)],
        held=1,
        forks=False,
        grows=3,
    ),
    "two causes in a script": Program(
        [(State.ON_CPU, 0.003), (State.SLEEP, 0.1), (State.ON_CPU, 0.002), (State.DISK, 0.02)],
        held=1,
        forks=True,
        grows=3,
    ),
}


class SimulatedProcesses:
    """Takes the place of the clock and of the tree of one program that goes through phases."""

    def __init__(self, seed: str) -> None:
        self.sampler = RequestSampler()
        self.sampler.chance.seed(seed)
        self.sampler.own_schedule = lambda: Schedule(0.0, 0.0, 1)
        self.sampler.works = True
        self._now_s = self._cpu_s = 0.0

    def monotonic(self) -> float:
        """Return the time of the simulation."""
        return self._now_s

    def thread_time(self) -> float:
        """Return the CPU time that looks took so far."""
        return self._cpu_s

    def activity(self, spent: Spent, *, forks: bool) -> Activity | None:
        """Return what the sampler tells of a program; None where chance left it out."""
        sampler_module.time = self  # type: ignore[assignment]
        sampler_module.Tree = lambda *_, **__: self  # type: ignore[assignment, misc]
        self._spent, self._forks, self._began_s = spent, forks, self._now_s
        self._counted = (0.0, 0.0, 0)
        self._watched = -1
        self._is_new = True
        ends_s = self._began_s + sum(seconds for _, seconds in spent)
        watch = self.sampler.draw()
        if watch is None:
            self._now_s = ends_s
            return None
        watch.start(1)
        while True:
            event_s = self._end_of(self._watched) if watch.end_handles else ends_s
            next_s = min(watch.due, event_s)
            if next_s >= ends_s:
                break
            self._now_s = max(self._now_s, next_s)
            if event_s <= watch.due:
                watch.note_ends([self._watched])
            else:
                watch.look()
        self._now_s = ends_s
        watch.ended()
        cpu_s = sum(seconds for state, seconds in spent if state is State.ON_CPU)
        return watch.close(struct_rusage((cpu_s, *[0] * 15)))

    # -- what stands for the tree

    @property
    def root(self) -> int:
        """Return a process whose affinity can be asked for."""
        return 0

    @property
    def processes(self) -> range:
        """The processes that a look meets."""
        return range(2 if self._forks else 1)

    @property
    def end_handles(self) -> list[int]:
        """The phase whose process was met, until it ends."""
        return [self._watched] if self._watched >= 0 else []

    def note_ends(self, handles: Collection[int]) -> bool:
        """Forget the process, which has ended."""
        self._watched = -1
        return True

    def is_unchanged(self) -> bool:
        """Return whether nothing ran since the last look."""
        return not self._is_new and self._counts()[2] == self._counted[2]

    def look(self) -> TreeLook:
        """Return the phase of now as a thread's activity."""
        self._cpu_s += LOOK_COST_S
        self._is_new = False
        index = self._index()
        state = self._spent[index][0]
        if self._forks:
            self._watched = index
        key = (index if self._forks else 0, 0)
        begin_s = self._end_of(index - 1)
        age_s = (self._now_s - begin_s) // 0.01 * 0.01 if self._forks else float("inf")
        doing = RUNNABLE if state in COUNTED else Doing(state)
        return TreeLook(doing, age_s, [self._share()], frozenset({key}), None, in_sequence=True)

    def look_at_end(self) -> ThreadShare:
        """Return what the last process ran since the last look."""
        return self._share()

    def close(self) -> None:
        """Close nothing."""

    def _index(self) -> int:
        for index in range(len(self._spent)):
            if self._now_s < self._end_of(index):
                return index
        return len(self._spent) - 1

    def _end_of(self, index: int) -> float:
        return self._began_s + sum(seconds for _, seconds in self._spent[: index + 1])

    def _counts(self) -> tuple[float, float, int]:
        """Return seconds on a CPU, waiting for one, and slices, until now."""
        left_s = self._now_s - self._began_s
        run_s = wait_s = 0.0
        slices = 1
        for state, seconds in self._spent:
            slices += left_s > 0
            passed_s = max(0.0, min(left_s, seconds))
            run_s += passed_s if state is State.ON_CPU else 0.0
            wait_s += passed_s if state is State.CPU_WAIT else 0.0
            left_s -= seconds
        return run_s, wait_s, slices

    def _share(self) -> ThreadShare:
        counts, before = self._counts(), self._counted
        self._counted = counts
        return ThreadShare(counts[0] - before[0], counts[1] - before[1], counts[2] - before[2])


@dataclass(slots=True)
class Step:
    """What a step of so many workers did, and what was seen of it."""

    rows: list[Record] = field(default_factory=list)
    true_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    count: int = 0


def simulate(program: Program, workers: int, requests: int, seed: str) -> Step:
    """Return a step in which every worker does so many requests."""
    chance = random.Random(seed)
    seen = [SimulatedProcesses(f"{seed} {worker}") for worker in range(workers)]
    step, free_s = Step(), BEGAN_S
    events = [(BEGAN_S + 0.01 * worker, worker) for worker in range(workers)]
    done: dict[int, int] = defaultdict(int)
    begins = {worker: begin_s for begin_s, worker in events}
    spent: dict[int, list[tuple[State, float]]] = defaultdict(list)
    at: dict[int, int] = defaultdict(int)
    while events:
        now_s, worker = heapq.heappop(events)
        if at[worker] == len(program.phases):
            activity = seen[worker].activity(spent[worker], forks=program.forks)
            step.rows.append(_record(workers, worker, begins[worker], now_s, activity))
            for state, seconds in spent[worker]:
                step.true_s[state] += seconds
            step.count += 1
            done[worker] += 1
            at[worker], spent[worker] = 0, []
            begins[worker] = now_s = now_s + 0.001
            if done[worker] == requests:
                continue
        index = at[worker]
        state, usual_s = program.phases[index]
        usual_s *= workers if index == program.grows else 1
        seconds = usual_s * max(0.2, 1.0 + chance.gauss(0.0, program.scatter))
        if index == program.held:
            waited_s = max(0.0, free_s - now_s)
            spent[worker].append((State.FILE_LOCK, waited_s))
            free_s = now_s = now_s + waited_s
            free_s += seconds
        spent[worker].append((state, seconds))
        at[worker] += 1
        heapq.heappush(events, (now_s + seconds, worker))
    return step


def _record(
    workers: int, worker: int, begin_s: float, end_s: float, activity: Activity | None
) -> Record:
    reply = Reply(
        "r",
        Outcome.SUCCEEDED,
        exit_code=0,
        wait_s=0.0005,
        run_s=end_s - begin_s,
        worker=f"worker-{worker}",
        enqueued_s=begin_s - 0.0005,
        started_s=begin_s,
        ended_s=end_s,
        activity=activity,
    )
    return Record("q", workers, reply, end_s - begin_s + 0.001, 0)


def run(program: Program, requests: int, seed: int) -> tuple[bool, bool, float] | None:
    """Return whether the first cause is right, whether its interval holds the truth, and its width.

    None where nothing certainly grew.
    """
    steps = {
        workers: simulate(program, workers, requests, f"{seed} {workers}") for workers in (1, 4)
    }
    records = {(workers, 0): step.rows for workers, step in steps.items()}
    measurements = []
    for workers, step in steps.items():
        last_s = max(record.reply.ended_s for record in step.rows)
        measurements.append(Measurement(workers, 0, 0.0, last_s - BEGAN_S, "precise"))
    plan = Plan(limit=4, command=("work",), queue="q")
    causes = attribute_causes(
        summarise(plan, measurements, records), None, records, random.Random(seed)
    )
    if causes is None or not causes.causes:
        return None
    means = {
        workers: {state: s / step.count for state, s in step.true_s.items()}
        for workers, step in steps.items()
    }
    grown = {state: means[4][state] - means[1].get(state, 0.0) for state in means[4]}
    truth = min(1.0, grown[State.FILE_LOCK] / sum(grown.values()))
    first = causes.causes[0]
    holds = first.share.low - 0.005 <= truth <= first.share.high + 0.005
    return first.state == State.FILE_LOCK, holds, first.share.high - first.share.low


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="hack/bars causes-coverage",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    print("| program | requests a worker | a cause | right | interval holds | its mean width |")
    print("|---|--:|--:|--:|--:|--:|")
    lowest = 1.0
    for name, program in PROGRAMS.items():
        for requests in (5, 10, 30):
            outcomes = [run(program, requests, seed) for seed in range(options.runs)]
            told = [outcome for outcome in outcomes if outcome is not None]
            right = sum(outcome[0] for outcome in told) / len(told)
            holds = sum(outcome[1] for outcome in told) / len(told)
            width = sum(outcome[2] for outcome in told) / len(told)
            lowest = min(lowest, holds)
            print(
                f"| {name} | {requests} | {len(told) / len(outcomes):.0%} | {right:.0%} |"
                f" {holds:.0%} | {100 * width:.0f} points |",
                flush=True,
            )
    return int(lowest < 0.93)


if __name__ == "__main__":
    raise SystemExit(main())
