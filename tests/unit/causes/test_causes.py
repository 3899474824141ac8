"""Attribution against simulated runs whose cause is known: see `activities`."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.causes.attribution import attribute_causes
from scaletest.causes.causes import GREW_AS_WANTED, NOTHING_GREW, Causes
from scaletest.causes.places import PLACES
from scaletest.causes.request_time import COLUMNS, Cycle, RequestTime, WorkerTotal, request_time
from scaletest.model import Activity, Measurement, Outcome, Record, Reply, State, VerdictKind, Wait
from scaletest.validation.judging.doublings import failed_doubling
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.judging.steps import Step, summarise
from scaletest.validation.plan import Background, Plan
from scaletest.validation.report.causes import causes_note
from scaletest.validation.report.time_chart import draw_time_by_state
from tests.unit.activities import GAP, Injected, Phase, run, shares
from tests.unit.made import Records
from tests.unit.valid import checked

LOCK, SERVICE, WRITTEN = "/run/lock/encoder.lock", "10.0.0.7:8080", "/data/out.mkv"


def plan(**options: object) -> Plan:
    return Plan(**{"limit": 4, "command": ("work",), "queue": "q", **options})  # type: ignore[arg-type]


def two_cores(index: int, workers: int) -> Sequence[Phase]:
    waiting = [Phase(State.CPU_WAIT, 0.3 * (workers / 2 - 1))] if workers > 2 else []
    return [Phase(State.ON_CPU, 0.3), *waiting]


# name -> workload, the place that grows, the object
INJECTED = {
    "cores": (Injected(two_cores), State.CPU_WAIT, ""),
    "CPU limit": (Injected(two_cores, throttled=0.8), State.THROTTLED, ""),
    "caches": (
        Injected(lambda _, n: [Phase(State.ON_CPU, 0.2 * (0.6 + 0.4 * n))]),
        State.ON_CPU,
        "",
    ),
    "threads": (
        Injected(
            lambda _, n: [Phase(State.ON_CPU, 0.3 * max(1, n / 2))], cpu=lambda n: 4 / max(1, n / 2)
        ),
        State.CPU_WAIT,
        "",
    ),
    "file lock": (
        Injected(
            lambda _, n: [
                Phase(State.ON_CPU, 0.3),
                Phase(State.SLEEP, 0.4, "lock", State.FILE_LOCK, LOCK),
            ],
            {"lock": 1},
        ),
        State.FILE_LOCK,
        LOCK,
    ),
    "service": (
        Injected(
            lambda _, n: [
                Phase(State.ON_CPU, 0.1),
                Phase(State.NETWORK, 0.4, "slot", State.NETWORK, SERVICE),
            ],
            {"slot": 2},
        ),
        State.NETWORK,
        SERVICE,
    ),
    "disk": (
        Injected(
            lambda _, n: [Phase(State.ON_CPU, 0.2), Phase(State.DISK, 0.15 * n, object=WRITTEN)]
        ),
        State.DISK,
        WRITTEN,
    ),
    "idle workers": (
        Injected(lambda _, n: [Phase(State.ON_CPU, 0.3)], gap_s=lambda n: 0.03 * n * n),
        GAP,
        "",
    ),
}


def attributed(
    injected: Injected, seed: int = 1, of: Plan | None = None, **options: object
) -> tuple[Causes, dict[str, float]]:
    """The causes of one simulated run, and the true shares between the same two steps."""
    of = of or plan()
    measurements, records, truth = run(injected, of.steps, seed=seed, **options)  # type: ignore[arg-type]
    steps = summarise(of, measurements, records)
    causes = attribute_causes(steps, failed_doubling(of, steps), records, random.Random(seed))
    assert causes is not None
    return causes, shares(truth, causes.before, causes.after)


Outcomes = dict[str, list[tuple[Causes, dict[str, float]]]]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    """What is attributed, and what is true, in some runs of every workload."""
    return {
        name: [attributed(injected, seed) for seed in range(6)]
        for name, (injected, _, _) in INJECTED.items()
    }


@pytest.mark.parametrize("name", INJECTED)
def test_the_first_cause_is_the_injected_one_with_its_object(outcomes: Outcomes, name: str) -> None:
    _, place, named = INJECTED[name]
    for causes, _ in outcomes[name]:
        first = causes.causes[0]
        assert (first.state, first.object, causes.headline) == (place, named, "")
        assert first.share.low <= first.share.value <= first.share.high
        assert causes.slow is None


def test_nine_of_ten_shares_are_within_ten_points_of_the_truth(outcomes: Outcomes) -> None:
    errors = []
    for name, runs in outcomes.items():
        place = INJECTED[name][1]
        for causes, truth in runs:
            true = sum(truth.get(state, 0.0) for state in (place, *_SEEN_AS.get(name, ())))
            errors.append(abs(causes.causes[0].share.value - true))
    assert sum(error <= 0.1 for error in errors) >= 0.9 * len(errors)


# threads that run in turn, and those that a limit holds back, are truly seen in another state
_SEEN_AS = {"threads": (State.ON_CPU,), "CPU limit": (State.CPU_WAIT,)}


def test_the_larger_of_two_causes_comes_first_and_shares_are_true_within_ten_points() -> None:
    def phases(_: int, workers: int) -> Sequence[Phase]:
        disk = Phase(State.DISK, 0.4 * workers, object=WRITTEN)
        return [Phase(State.ON_CPU, 0.2), disk, Phase(State.CPU_WAIT, 0.2 * workers)]

    close = 0
    for seed in range(10):
        causes, truth = attributed(Injected(phases), seed)
        assert [cause.state for cause in causes.causes[:2]] == [State.DISK, State.CPU_WAIT]
        close += all(abs(cause.share.value - truth[cause.state]) <= 0.1 for cause in causes.causes)
    assert close >= 9


@pytest.mark.parametrize("scale", [1.8, 1.99])
def test_a_linear_workload_never_gets_a_cause(scale: float) -> None:
    """A ratio of 1.99 is hardly ever shown, so that the second half rests on the growth alone."""
    linear = Injected(lambda _, n: [Phase(State.ON_CPU, 0.1), Phase(State.SLEEP, 0.2)])
    for seed in range(50):
        noisy = replace(linear, noise=0.05 * (1 + seed % 6))
        causes, _ = attributed(noisy, seed, plan(limit=2, scale=scale), requests=30)
        assert (
            causes.causes == ()
            and causes.headline in (NOTHING_GREW, GREW_AS_WANTED)
            and not causes.sentence
        )


def test_growth_within_chance_is_not_reported_as_no_growth() -> None:
    """The chart beside the sentence shows bars that differ."""
    linear = Injected(lambda _, n: [Phase(State.SLEEP, 0.2)], noise=0.3)
    causes, _ = attributed(linear, of=plan(limit=2, scale=1.99), requests=30)
    assert causes_note(causes) == "From 1 to 2 workers nothing grew by more than chance explains."


def test_threads_that_computed_side_by_side_are_no_growth_of_work() -> None:
    causes, _ = attributed(INJECTED["threads"][0])
    assert State.ON_CPU not in [cause.state for cause in causes.causes]


def test_a_run_that_compares_workers_per_device_is_attributed_from_the_least_to_the_most() -> None:
    shared = Injected(
        lambda _, n: [
            Phase(State.ON_CPU, 0.1),
            Phase(State.DEVICE, 0.15 * n, object="/dev/dri/renderD128"),
        ]
    )
    of = plan(limit=4, per_device=(1, 2, 4), devices=1, device_glob="/dev/dri/renderD*")
    measurements, records, _ = run(shared, of.steps)
    result = evaluate(of, measurements, records, random.Random(1))
    assert (result.causes.before, result.causes.after) == (1, 4)
    assert (result.causes.causes[0].state, result.causes.causes[0].object) == (
        State.DEVICE,
        "/dev/dri/renderD128",
    )
    assert [time.level for time in result.causes.times] == [1, 2, 4]


def test_a_background_load_does_not_change_the_causes() -> None:
    measurements, records, _ = run(INJECTED["file lock"][0])
    beside, _, _ = INJECTED["disk"]
    _, others, _ = run(beside)
    background = [replace(row, queue="q-storage") for rows in others.values() for row in rows]
    of = plan(background=(Background("storage", seconds=0.25),))
    with_it = evaluate(of, measurements, records, random.Random(1), background)
    alone = evaluate(plan(), measurements, records, random.Random(1))
    assert with_it.causes == alone.causes is not None


def test_one_slow_worker_of_four_is_told_apart_from_something_shared() -> None:
    slow = Injected(
        lambda index, _: [Phase(State.ON_CPU, 0.1), Phase(State.DISK, 0.9 if index == 3 else 0.1)]
    )
    causes, _ = attributed(slow)
    assert causes.causes[0].state == State.DISK
    assert causes.slow is not None and (causes.slow.kind, causes.slow.name) == (
        "worker",
        "worker-3",
    )
    assert (
        "only one worker is slow, worker-3: " in causes.sentence
        and "different about this worker" in causes.remedy
    )


def test_one_slow_node_with_several_workers_is_told_apart() -> None:
    slow = Injected(lambda index, _: [Phase(State.ON_CPU, 0.6 if index % 2 else 0.2)])
    of = plan(limit=8)
    measurements, records, _ = run(slow, of.steps)
    for key, rows in records.items():
        records[key] = [replace(row, reply=replace(row.reply, device="")) for row in rows]
    causes = attribute_causes(summarise(of, measurements, records), None, records, random.Random(1))
    assert causes is not None and causes.slow is not None
    assert (causes.slow.kind, causes.slow.name) == ("node", "node-b")


def test_unobserved_time_makes_the_cause_unknown_with_its_share() -> None:
    hidden = Injected(lambda _, n: [Phase(State.ON_CPU, 0.1), Phase(State.NOT_OBSERVED, 0.3 * n)])
    causes, _ = attributed(hidden)
    assert causes.causes == () and causes.remedy == ""
    assert causes.headline.startswith("unknown: ") and causes.headline.endswith(" was not observed")
    assert causes.observed < 0.1 and causes.sentence == f"Cause {causes.headline}"


def test_run_time_that_no_state_tells_of_was_not_observed() -> None:
    _, records, _ = run(INJECTED["disk"][0])
    empty = {key: [_with(row, Activity({})) for row in rows] for key, rows in records.items()}
    causes = _attribute(empty)
    assert (
        causes is not None
        and causes.headline == "unknown: 100% of the added 0.15 s was not observed"
    )


def test_a_state_observed_only_in_the_last_step_is_no_cause() -> None:
    """Sleep that no look meets while requests are short, and a lock that makes them longer."""

    def phases(_: int, workers: int) -> Sequence[Phase]:
        return [
            Phase(State.NOT_OBSERVED if workers == 1 else State.SLEEP, 0.1),
            Phase(State.FILE_LOCK, 0.2 * workers),
        ]

    causes, _ = attributed(Injected(phases))
    assert [cause.state for cause in causes.causes] == [State.FILE_LOCK]
    assert causes.causes[0].share.low < 0.8


def test_seconds_before_and_after_agree_with_what_was_added() -> None:
    for name in ("threads", "CPU limit"):
        first = attributed(INJECTED[name][0])[0].causes[0]
        assert first.after_s - first.before_s == pytest.approx(first.grown_s.value)


def test_records_without_activity_give_no_causes() -> None:
    measurements, records, _ = run(replace(INJECTED["file lock"][0], sampled=False))
    result = evaluate(plan(), measurements, records, random.Random(1))
    assert result.causes is None and result.to_dict()["causes"] is None
    assert result.verdict.kind is VerdictKind.FAIL and "Cause" not in result.verdict.reason


def test_requests_of_older_workers_are_left_out_and_counted() -> None:
    injected, place, named = INJECTED["file lock"]
    _, records, _ = run(injected)
    some = {
        key: [_old(row, row.reply.worker == "worker-1") for row in rows]
        for key, rows in records.items()
    }
    causes = _attribute(some)
    assert causes is not None and (causes.causes[0].state, causes.causes[0].object) == (
        place,
        named,
    )
    assert causes.sampled_share == pytest.approx(0.5, abs=0.02)
    most = {
        key: [row if index % 5 == 0 else _of_older(row) for index, row in enumerate(rows)]
        for key, rows in records.items()
    }
    causes = _attribute(most)
    assert causes.headline == "unknown: 80% of the requests do not report where their time went"
    one_step = {key: [_old(row, key[0] == 1) for row in rows] for key, rows in records.items()}
    assert _attribute(one_step) is None


def test_workers_count_by_their_requests_and_not_by_those_that_say_where_time_went() -> None:
    def cycle(worker: str, run_s: float) -> Cycle:
        reply = Reply("r", Outcome.SUCCEEDED, exit_code=0, run_s=run_s, worker=worker)
        return Cycle(reply, Activity({State.DISK: run_s}), 0, 0.0)

    cycles = [cycle("slow", 4.0), cycle("slow", 4.0), cycle("fast", 1.0)]
    totals = {
        (0, "slow"): WorkerTotal(2, 8.0, 2.0),
        (0, "fast"): WorkerTotal(8, 8.0, 8.0),
        (0, "old"): WorkerTotal(5, 9.0, 5.0),
    }
    time = RequestTime(2, 0, cycles, totals, {})
    assert time.means()[State.DISK] == pytest.approx((2 * 4.0 + 8 * 1.0) / 10)
    assert time.resampled(random.Random(1), 3)[0][State.DISK] == pytest.approx(1.6)
    assert time.sampled_share == pytest.approx(10 / 15)


def test_a_cycle_is_workers_over_throughput_also_when_a_worker_waits_until_the_end() -> None:
    measurements, records, _ = run(INJECTED["file lock"][0])
    rows = records[4, 0]
    # given a worker whose second request waits from the first seconds to the end of the step
    own = sorted(
        (row for row in rows if row.reply.worker == "worker-3"), key=lambda row: row.reply.ended_s
    )
    begin_s, end_s = own[0].reply.ended_s, max(row.reply.ended_s for row in rows)
    waited = Activity({State.FILE_LOCK: end_s - begin_s})
    starved = replace(
        own[1].reply, run_s=end_s - begin_s, started_s=begin_s, ended_s=end_s, activity=waited
    )
    records[4, 0] = [row for row in rows if row not in own[1:]] + [replace(own[1], reply=starved)]
    step = summarise(plan(), measurements, records)[-1]
    # expect that its wait is a worker's time like any other
    time = request_time(step, records).of([0])
    throughput = step.samples[0].throughput.per_s
    means = time.means()
    assert sum(means[place] for place in PLACES) == pytest.approx(4 / throughput, rel=1e-6)
    assert any(cycle.reply is starved for cycle in time.cycles)


def test_a_worker_that_ended_no_request_was_not_observed() -> None:
    reply = Reply("r", Outcome.SUCCEEDED, exit_code=0, run_s=1.0, worker="w")
    cycles = [Cycle(reply, Activity({State.DISK: 1.0}), 0, 0.0)] * 4
    time = RequestTime(2, 0, cycles, {(0, "w"): WorkerTotal(4, 4.0, 4.0)}, {0: 2.0})
    means = time.means()
    assert means[State.DISK] == pytest.approx(1.0)
    assert means[State.NOT_OBSERVED] == pytest.approx(1.0)


def test_an_object_is_named_only_when_it_holds_most_of_the_added_time() -> None:
    _, records, _ = run(INJECTED["disk"][0])
    for rows in records.values():
        for index, row in enumerate(rows):
            waits = tuple(
                replace(wait, object=f"/data/{index}.mkv") for wait in row.reply.activity.waits
            )
            rows[index] = _with(row, replace(row.reply.activity, waits=waits))
    causes = _attribute(records)
    assert (
        causes is not None
        and causes.causes[0].state == State.DISK
        and causes.causes[0].object == ""
    )


def test_an_unknown_cause_leaves_the_usual_remedy() -> None:
    measurements, records, _ = run(Injected(lambda _, n: [Phase(State.NOT_OBSERVED, 0.3 * n)]))
    verdict = evaluate(plan(), measurements, records, random.Random(1)).verdict
    assert "Cause unknown: 100% of the added 0.3 s was not observed" in verdict.reason
    assert "compare their run times" in verdict.remedy


@pytest.mark.parametrize("name", INJECTED)
def test_the_result_fits_its_schema_and_the_places_sum_to_the_cycle(name: str) -> None:
    result = _evaluated(name)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    checked(document)
    for step, time in zip(result.steps, document["causes"]["times"], strict=True):
        cycle_s = step.workers / step.throughput.per_s
        assert sum(time["seconds"].values()) == pytest.approx(cycle_s, rel=0.02)


def test_a_step_without_any_time_has_no_bar_and_breaks_no_page() -> None:
    result = _evaluated("cores")
    first, *others = result.causes.times
    empty = replace(first, seconds={})
    chart = draw_time_by_state(
        replace(result, causes=replace(result.causes, times=(empty, *others)))
    )
    assert chart is not None
    assert (
        draw_time_by_state(replace(result, causes=replace(result.causes, times=(empty,)))) is None
    )


@pytest.mark.parametrize(
    ("waited_s", "run_s", "idle_s", "unseen_s"),
    [(0.25, 1.0, 0.25, 0.0), (0.9, 1.0, 0.0, 0.0), (0.25, 1.125, 0.375, 0.0), (0.0, 1.5, 0.5, 0.5)],
)
def test_a_worker_that_waits_for_a_cpu_before_a_request_is_not_idle(
    waited_s: float, run_s: float, idle_s: float, unseen_s: float
) -> None:
    reply = Reply("r", Outcome.SUCCEEDED, exit_code=0, run_s=run_s, worker="w")
    activity = Activity({State.SLEEP: 1.0}, waited_before_s=waited_s)
    columns = dict(zip(COLUMNS, Cycle(reply, activity, 0, gap_s=0.5).columns(), strict=True))
    assert columns["gap"] == idle_s
    assert (columns[State.SLEEP], columns[State.NOT_OBSERVED]) == (1.0, unseen_s)
    assert columns[State.CPU_WAIT] == run_s + 0.5 - 1.0 - idle_s - unseen_s


def test_equal_records_give_equal_causes() -> None:
    assert _evaluated("disk").causes == _evaluated("disk").causes


seconds = st.floats(0, 5, allow_nan=False)
activities = st.none() | st.builds(
    Activity,
    st.dictionaries(st.sampled_from(State), seconds, max_size=4),
    st.lists(st.builds(Wait, st.sampled_from(State), st.text(max_size=9), seconds), max_size=4).map(
        tuple
    ),
    cpu_s=seconds,
    throttled_s=seconds,
    waited_before_s=seconds,
)


@settings(max_examples=40)
@given(st.data())
def test_whatever_requests_say_the_shares_are_of_the_growth(data: st.DataObject) -> None:
    """Damaged, empty, or contradicting activities: no crash, and no share that is not one."""
    _, records, _ = run(INJECTED["disk"][0], requests=6)
    pool = data.draw(st.lists(activities, min_size=1, max_size=8))
    chance = random.Random(data.draw(st.integers(0, 9)))
    odd = {key: [_with(row, chance.choice(pool)) for row in rows] for key, rows in records.items()}
    causes = _attribute(odd)
    if causes is None:
        return
    assert 0 <= causes.observed <= 1 and 0 <= causes.sampled_share <= 1
    assert bool(causes.headline) or bool(causes.causes)
    ranked = [cause.share.value for cause in causes.causes]
    assert ranked == sorted(ranked, reverse=True)
    assert all(cause.share.low > 0 and cause.state != State.NOT_OBSERVED for cause in causes.causes)


def _evaluated(name: str) -> Evaluation:
    measurements, records, _ = run(INJECTED[name][0])
    return evaluate(plan(), measurements, records, random.Random(1))


def _attribute(records: Records) -> Causes | None:
    of = plan()
    measurements = [Measurement(*key, 0.1, 30.0, "precise") for key in records]
    steps: list[Step] = summarise(of, measurements, records)
    return attribute_causes(steps, failed_doubling(of, steps), records, random.Random(1))


def _with(row: Record, activity: Activity | None) -> Record:
    return replace(row, reply=replace(row.reply, activity=activity))


def _of_older(row: Record) -> Record:
    """The same request, run by another worker that does not sample."""
    return _with(replace(row, reply=replace(row.reply, worker=f"older-{row.reply.worker}")), None)


def _old(row: Record, old: bool) -> Record:
    return _with(row, None) if old else row
