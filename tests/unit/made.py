"""Runs made up for tests: records of workers that finish one request after the other."""

import random
from collections.abc import Mapping

from scaletest.model import Measurement, Outcome, Reason, Record, Reply

Records = dict[tuple[int, int], list[Record]]


def measured(
    cycles: Mapping[int, float],
    *,
    count: int | Mapping[int, int] = 100,
    scatter: float = 0.01,
    repeats: int = 1,
    between: float = 0.0,
    failed: int = 0,
    seed: int = 1,
) -> tuple[list[Measurement], Records]:
    """Measurements and records of steps.

    cycles: workers -> mean seconds a request. count: successful requests of each worker on both
    ways together, a number or one for each step. repeats: pairs of ways. scatter, between: standard
    deviation of run times and of the means of pairs, relative. failed: of each step.
    """
    chance = random.Random(seed)
    measurements, records = [], {}
    began_s = 1000.0
    for pair in range(repeats):
        means = {n: cycle * (1 + chance.gauss(0, between)) for n, cycle in cycles.items()}
        turns = [(workers, 2 * pair) for workers in cycles]
        turns += [(workers, 2 * pair + 1) for workers in reversed(cycles)]
        for workers, repeat in turns:
            whole = count if isinstance(count, int) else count[workers]
            each = whole // 2 if repeat % 2 else whole - whole // 2
            rows = [
                row
                for index in range(workers)
                for row in _worker(
                    index, workers, repeat, began_s, means[workers], each, scatter, chance
                )
            ]
            if repeat == 0:
                rows += [_failure(index, workers, began_s) for index in range(failed)]
            records[workers, repeat] = rows
            ended_s = max((row.reply.ended_s for row in rows), default=began_s)
            measurements.append(Measurement(workers, repeat, 0.1, ended_s - began_s, "precise"))
            began_s = ended_s + 1.0
    return measurements, records


def _worker(
    index: int,
    workers: int,
    repeat: int,
    began_s: float,
    mean: float,
    count: int,
    scatter: float,
    chance: random.Random,
) -> list[Record]:
    now, rows = began_s + mean * index / workers, []
    for number in range(count):
        run_s = max(mean / 10, mean * (1 + chance.gauss(0, scatter)))
        reply = Reply(
            f"{workers}-{repeat}-{index}-{number}",
            Outcome.SUCCEEDED,
            exit_code=0,
            wait_s=0.0,
            run_s=run_s,
            worker=f"w{index}",
            node="here",
            enqueued_s=now,
            started_s=now,
            ended_s=now + run_s,
        )
        rows.append(Record("q", workers, reply, run_s, repeat))
        now += run_s
    return rows


def _failure(index: int, workers: int, began_s: float) -> Record:
    reply = Reply(
        f"{workers}-failed-{index}",
        Outcome.FAILED,
        Reason.EXIT,
        exit_code=1,
        error="it failed",
        run_s=0.01,
        worker="w0",
        node="here",
        enqueued_s=began_s,
        started_s=began_s,
        ended_s=began_s + 0.01,
    )
    return Record("q", workers, reply, 0.02)
