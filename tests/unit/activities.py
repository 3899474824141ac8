"""Runs of known causes: workers whose requests pass through phases, on resources that they share,
without a clock.

What a request truly did is kept beside what a sampler that looks ten times a second would have seen
of it.
"""

import heapq
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scaletest.model import Activity, Measurement, Outcome, Record, Reply, State, Wait
from tests.unit.made import Records

BEGAN_S = 1_790_000_000.0
SAMPLE_S = 0.1
GAP = "gap"
RUNNABLE = (State.ON_CPU, State.CPU_WAIT)


@dataclass(frozen=True)
class Phase:
    """What a request does for some seconds. shared: the resource it needs meanwhile; waiting: its
    state until then.
    """

    state: State
    seconds: float
    shared: str = ""
    waiting: State = State.FILE_LOCK
    object: str = ""


@dataclass(eq=False)
class Injected:
    """A workload with a known cause.

    phases: of a request of worker `index` of `workers`. slots: of each shared resource. gap_s:
    between two requests.
    noise: relative standard deviation of the seconds. sampled: whether the workers say where the
    time went.
    cpu: CPU seconds over seconds on a CPU, of `workers`. throttled: of the wait for a CPU, by a
    limit.
    """

    phases: Callable[[int, int], Sequence[Phase]]
    slots: dict[str, int] = field(default_factory=dict)
    gap_s: Callable[[int], float] = lambda workers: 0.001
    noise: float = 0.05
    cpu: Callable[[int], float] = lambda workers: 1.0
    throttled: float = 0.0
    sampled: bool = True


Spent = list[tuple[State, str, float]]


def sampled(spent: Spent, chance: random.Random) -> tuple[dict[State, float], tuple[Wait, ...]]:
    """What looking every 0.1 s from a random instant on tells of a request; NOT_OBSERVED where no
    look met it.

    A look stands for the time since the one before, the last one also for the rest. The kernel
    itself counts how long threads that can run do run, and how long they wait for that, so only
    their sum is sampled.
    """
    whole = sum(seconds for _, _, seconds in spent)
    by_object: dict[tuple[State, str], float] = defaultdict(float)
    look, before, edge, index = chance.random() * SAMPLE_S, 0.0, 0.0, 0
    while look < whole:
        while index < len(spent) - 1 and look >= edge + spent[index][2]:
            edge += spent[index][2]
            index += 1
        following = look + SAMPLE_S
        by_object[spent[index][:2]] += (look if following < whole else whole) - before
        before, look = look, following
    if not by_object:
        return {State.NOT_OBSERVED: whole}, ()
    seconds: dict[State, float] = defaultdict(float)
    for (state, _), length in by_object.items():
        seconds[state] += length
    true = {
        state: math.fsum(length for own, _, length in spent if own is state) for state in RUNNABLE
    }
    runnable = math.fsum(seconds.pop(state, 0.0) for state in RUNNABLE)
    if runnable:
        seconds.update(
            {
                state: runnable * length / sum(true.values())
                for state, length in true.items()
                if length
            }
        )
    waits = [Wait(state, name, length) for (state, name), length in by_object.items() if name]
    return dict(seconds), tuple(sorted(waits, key=lambda wait: -wait.seconds)[:4])


def run(
    injected: Injected,
    steps: Sequence[int] = (1, 2, 4),
    *,
    requests: int = 60,
    seed: int = 1,
) -> tuple[list[Measurement], Records, dict[int, dict[str, float]]]:
    """Measurements, records, and the true mean seconds of a cycle by place, for each number of
    workers.
    """
    chance = random.Random(f"{seed}")
    measurements: list[Measurement] = []
    records: Records = {}
    truths: dict[int, list[dict[str, float]]] = defaultdict(list)
    turns = [(workers, 0) for workers in steps] + [(workers, 1) for workers in reversed(steps)]
    at_s = BEGAN_S
    for workers, repeat in turns:
        rows, truth = _measured(injected, workers, repeat, at_s, requests, chance)
        last = max(row.reply.ended_s for row in rows)
        measurements.append(Measurement(workers, repeat, 0.1, last - at_s, "precise"))
        records[workers, repeat] = rows
        truths[workers] += truth
        at_s = last + 1.0
    return measurements, records, {workers: _mean(truth) for workers, truth in truths.items()}


def shares(truth: dict[int, dict[str, float]], before: int, after: int) -> dict[str, float]:
    """The true share of each place in what a cycle grew by."""
    grown = {
        name: truth[after].get(name, 0.0) - truth[before].get(name, 0.0) for name in [*State, GAP]
    }
    whole = sum(grown.values())
    return {str(name): seconds / whole for name, seconds in grown.items()}


def _mean(truth: Sequence[dict[str, float]]) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for row in truth:
        for name, seconds in row.items():
            total[name] += seconds / len(truth)
    return dict(total)


def _measured(
    injected: Injected, workers: int, repeat: int, at_s: float, requests: int, chance: random.Random
) -> tuple[list[Record], list[dict[str, float]]]:
    """One step: every worker does `requests` requests; events in the order of time."""
    free = {name: [at_s] * slots for name, slots in injected.slots.items()}
    spent: dict[int, Spent] = {worker: [] for worker in range(workers)}
    begun: dict[int, float] = {}
    events = [(at_s + 0.01 * worker, worker, 0) for worker in range(workers)]
    done: Counter[int] = Counter()
    gaps: dict[int, float] = {}
    rows: list[Record] = []
    truth: list[dict[str, float]] = []
    while events:
        now, worker, index = heapq.heappop(events)
        phases = injected.phases(worker, workers)
        if index == 0:
            begun[worker], spent[worker] = now, []
        if index < len(phases):
            heapq.heappush(
                events,
                (
                    _pass(phases[index], now, spent[worker], free, injected, chance),
                    worker,
                    index + 1,
                ),
            )
            continue
        rows.append(
            _record(injected, (worker, workers, repeat), begun[worker], now, spent[worker], chance)
        )
        if worker in gaps:
            truth.append(_truth(spent[worker], gaps[worker]))
        gaps[worker] = injected.gap_s(workers) * chance.uniform(0.8, 1.2)
        done[worker] += 1
        if done[worker] < requests:
            heapq.heappush(events, (now + gaps[worker], worker, 0))
    return rows, truth


def _pass(
    phase: Phase,
    now: float,
    spent: Spent,
    free: dict[str, list[float]],
    injected: Injected,
    chance: random.Random,
) -> float:
    """Go through a phase, and return when it ends."""
    seconds = max(phase.seconds / 10, phase.seconds * (1 + chance.gauss(0, injected.noise)))
    start = now
    if phase.shared:
        start = max(now, heapq.heappop(free[phase.shared]))
        heapq.heappush(free[phase.shared], start + seconds)
    if start > now:
        spent.append((phase.waiting, phase.object, start - now))
    spent.append(
        (
            phase.state,
            "" if phase.shared and phase.state != phase.waiting else phase.object,
            seconds,
        )
    )
    return start + seconds


def _truth(spent: Spent, gap_s: float) -> dict[str, float]:
    row: dict[str, float] = defaultdict(float, {GAP: gap_s})
    for state, _, seconds in spent:
        row[str(state)] += seconds
    return row


def _record(
    injected: Injected,
    who: tuple[int, int, int],
    begun: float,
    now: float,
    spent: Spent,
    chance: random.Random,
) -> Record:
    worker, workers, repeat = who
    seconds, waits = sampled(spent, chance)
    on_cpu = math.fsum(length for state, _, length in spent if state is State.ON_CPU)
    waited = math.fsum(length for state, _, length in spent if state is State.CPU_WAIT)
    activity = Activity(
        seconds,
        waits,
        cpu_s=on_cpu * injected.cpu(workers),
        throttled_s=injected.throttled * waited,
    )
    reply = Reply(
        "r",
        Outcome.SUCCEEDED,
        exit_code=0,
        wait_s=0.001,
        run_s=now - begun,
        worker=f"worker-{worker}",
        node=f"node-{'ab'[worker % 2]}",
        device=f"/dev/dri/renderD{128 + worker % 2}",
        enqueued_s=begun - 0.001,
        started_s=begun,
        ended_s=now,
        activity=activity if injected.sampled else None,
    )
    return Record("q", workers, reply, now - begun + 0.0015, repeat)
