"""Model: every field has a rule, and what is written reads back the same."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.lifecycle.measure.submitting import AllRefused
from scaletest.model import (
    Activity,
    Outcome,
    Reason,
    Record,
    Reply,
    Request,
    State,
    Verdict,
    VerdictKind,
    Wait,
    checks,
    histogram,
    wire,
)
from scaletest.model.errors import InvalidValue, ScaletestError
from scaletest.model.record import effective_limit
from scaletest.validation.plan import Plan

names = st.from_regex(checks.QUEUE_NAME, fullmatch=True)
ids = st.from_regex(checks.REQUEST_ID, fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
durations = st.floats(0, checks.MAX_TIME_LIMIT_S, allow_nan=False)
spans = st.floats(0, 1e6, allow_nan=False).map(lambda seconds: round(seconds, 4))
counts = st.integers(0, 10**12)
objects = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300)
waits = st.lists(st.builds(Wait, st.sampled_from(State), objects, spans), max_size=4).map(tuple)
activities = st.builds(
    Activity,
    seconds=st.dictionaries(st.sampled_from(State), spans),
    waits=waits,
    cpu_s=spans,
    memory_bytes=counts,
    read_blocks=counts,
    written_blocks=counts,
    major_faults=counts,
    switches=counts,
    involuntary_switches=counts,
    throttled_s=spans,
    waited_before_s=spans,
    engines=st.dictionaries(st.text(max_size=80), spans, max_size=12),
    device_memory_bytes=counts,
)
replies = st.builds(
    Reply,
    id=ids,
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from(Reason),
    exit_code=st.none() | st.integers(-64, 255),
    error=texts,
    wait_s=durations,
    run_s=durations,
    timeout_s=durations,
    attempts=st.integers(0, 100),
    worker=texts,
    node=texts,
    pod=texts,
    device=texts,
    enqueued_s=durations,
    started_s=durations,
    ended_s=durations,
    figures=st.dictionaries(texts, st.integers() | texts, max_size=3),
    # as it comes back from JSON: bounded
    activity=st.none() | activities.map(lambda activity: Activity.from_dict(activity.to_dict())),
)
records = st.builds(Record, names, st.integers(0, 1000), replies, durations)
anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
)


@given(replies)
def test_reply_reads_back(reply: Reply) -> None:
    assert Reply.from_json(reply.to_json()) == reply


@given(records)
def test_record_reads_back(record: Record) -> None:
    assert Record.from_json(record.to_json()) == record


@given(activities)
def test_an_activity_is_at_most_1_kb_and_reads_back(activity: Activity) -> None:
    row = activity.to_dict()
    assert len(wire.dump(row).encode()) <= 1024
    back = Activity.from_dict(row)
    assert back.to_dict() == row
    assert {
        state: seconds for state, seconds in activity.seconds.items() if seconds
    } == back.seconds
    assert (back.cpu_s, back.switches, back.memory_bytes) == (
        activity.cpu_s,
        activity.switches,
        activity.memory_bytes,
    )


@pytest.mark.parametrize("length", [1, 80, 400])
def test_an_activity_keeps_both_ends_of_its_objects(length: int) -> None:
    path = f"/begin{'/é' * length}/end"
    seconds = dict.fromkeys(State, 1234567.1234)
    row = Activity(
        seconds, tuple(Wait(State.NOT_OBSERVED, path, 1e6) for _ in range(4)), cpu_s=1e6
    ).to_dict()
    assert len(wire.dump(row).encode()) <= 1024
    assert all(
        wait["object"].startswith("/begi") and wait["object"].endswith("/end")
        for wait in row["waits"]
    )


def test_the_busiest_engines_are_kept() -> None:
    engines = {f"0000:03:00.0 {number}": number / 2 for number in range(12)}
    row = Activity(
        {State.DEVICE: 1.0}, (Wait(State.DEVICE, "/dev/dri/renderD128", 1.0),), engines=engines
    ).to_dict()
    assert row["engines"] == {f"0000:03:00.0 {number}": number / 2 for number in range(11, 3, -1)}
    assert Activity.from_dict(row).engines == row["engines"] and row["waits"]


def test_names_of_objects_hold_no_control_characters() -> None:
    row = Activity({}, (Wait(State.DISK, "a\x1b[31m\u202eb", 1.0),)).to_dict()
    assert row["waits"][0]["object"].isprintable()


@pytest.mark.parametrize(
    "row",
    [
        None,
        {},
        {"seconds": []},
        {"seconds": {"on_cpu": "1"}},
        {"seconds": {"on_cpu": True}},
        {"seconds": {"on_cpu": -1}},
        {"seconds": {"dancing": "1"}},
        {"seconds": {}, "cpu_s": -1},
        {"seconds": {}, "switches": 1.5},
        {"seconds": {}, "engines": {"0000:03:00.0 video": "1"}},
        {"seconds": {}, "engines": [1]},
        {"seconds": {}, "waits": [{}]},
        {"seconds": {}, "waits": ["disk"]},
        {"seconds": {}, "waits": [{"state": "disk", "object": "a", "seconds": 1}] * 5},
    ],
)
def test_an_invalid_activity_is_refused(row: object) -> None:
    with pytest.raises(InvalidValue):
        Activity.from_dict(row)


@given(anything | st.fixed_dictionaries({"seconds": anything, "waits": anything}))
def test_an_activity_that_cannot_be_read_costs_no_reply(row: object) -> None:
    reply = Reply.from_dict({"id": "a", "outcome": "succeeded", "run_s": 1.5, "activity": row})
    assert (reply.ok, reply.run_s) == (True, 1.5)


@given(st.text(max_size=60) | anything.map(json.dumps) | st.binary(max_size=30))
@pytest.mark.parametrize("kind", [Reply, Record])
def test_garbage_is_an_invalid_value_and_nothing_else(kind: type, text: str | bytes) -> None:
    try:
        kind.from_json(text)  # type: ignore[attr-defined]
    except InvalidValue:
        pass


@given(
    st.fixed_dictionaries(
        {"id": st.just("a") | anything, "queue": st.just("q") | anything},
        optional={
            "outcome": st.sampled_from(Outcome) | anything,
            "arguments": anything,
            "time_limit_s": anything,
            "wait_s": anything,
            "figures": anything,
            "step": anything,
            "total_s": anything,
        },
    )
)
@pytest.mark.parametrize("kind", [Reply, Record])
def test_wrong_types_in_right_places_are_an_invalid_value(
    kind: type, row: dict[str, object]
) -> None:
    try:
        kind.from_json(json.dumps(row))  # type: ignore[attr-defined]
    except InvalidValue:
        pass


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-a",
        ".a",
        "a b",
        "/a",
        "a/",
        "a//b",
        "a/../b",
        "a/-b",
        "a/" * 50,
        "a\n",
        "ä",
        "a" * 101,
        "a:b",
        None,
        7,
    ],
)
def test_bad_queue_names_are_refused(name: object) -> None:
    with pytest.raises(InvalidValue, match="queue name"):
        Request("r", name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a", "a/b", "team/media.h264/4k", "a/" * 49 + "aa"])
def test_queue_names_may_have_parts(name: str) -> None:
    assert Request("r", name).queue == name


@pytest.mark.parametrize(
    "limit", [-1, math.nan, math.inf, checks.MAX_TIME_LIMIT_S * 2, "1", True, None]
)
def test_bad_time_limits_are_refused(limit: object) -> None:
    with pytest.raises(InvalidValue, match="time limit"):
        Request("r", "q", (), limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("argument", ["a\0b", "\x1b[31m", "x" * 4097, "\ud800", 3])
def test_bad_arguments_are_refused(argument: object) -> None:
    with pytest.raises(InvalidValue):
        Request("r", "q", (argument,))  # type: ignore[arg-type]


def test_arguments_count_as_bytes_together() -> None:
    # given 4,096 bytes in all, when one more comes, expect a refusal
    assert Request("r", "q", ("ä" * 1024, "x" * 2048))
    with pytest.raises(InvalidValue, match="4097 bytes"):
        Request("r", "q", ("ä" * 1024, "x" * 2049))


@given(st.lists(st.floats(1e-6, 3600), min_size=1, max_size=60), st.floats(0, 1))
def test_quantiles_of_the_histogram_are_those_of_the_values(
    values: list[float], share: float
) -> None:
    counts: dict[int, int] = {}
    for value in values:
        counts[histogram.bucket_of(value)] = counts.get(histogram.bucket_of(value), 0) + 1
    rank = max(1, math.ceil(share * len(values)))
    assert histogram.histogram_quantile(counts, share) == pytest.approx(
        sorted(values)[rank - 1], rel=0.0101
    )


def test_histogram_ends_hold_everything() -> None:
    assert histogram.bucket_of(0) == histogram.bucket_of(1e-9) == 0
    assert histogram.bucket_of(1e12) == histogram.LAST_BUCKET
    assert histogram.histogram_quantile({}, 0.5) is None


@pytest.mark.parametrize(
    ("limit", "steps"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12))],
)
def test_plan_doubles_up_to_its_limit(limit: int, steps: tuple[int, ...]) -> None:
    assert Plan(limit=limit).steps == steps


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"scale": 0.5},
        {"scale": 2.1},
        {"scale": math.nan},
        {"seconds": -1},
        {"queue": "a b"},
    ],
)
def test_plan_refuses_what_cannot_be_run(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        Plan(**wrong)  # type: ignore[arg-type]


def test_plan_reads_back() -> None:
    plan = Plan(
        limit=6, command=("ffmpeg", "-i", "x"), device_glob="/dev/dri/*", tolerate_failures=2
    )
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize(
    ("worker", "request_", "limit"), [(0, 0, 0), (2, 0, 2), (0, 3, 3), (2, 3, 2), (4, 3, 3)]
)
def test_the_smaller_non_zero_limit_counts(worker: float, request_: float, limit: float) -> None:
    assert effective_limit(worker, request_) == limit


def test_verdicts_have_their_exit_codes() -> None:
    codes = {str(kind): kind.exit_code for kind in VerdictKind}
    assert codes == {"PASS": 0, "FAIL": 3, "INVALID": 4, "RUNNING": 4}
    assert Verdict(VerdictKind.FAIL, "why", "what").to_dict() == {
        "kind": "FAIL",
        "reason": "why",
        "remedy": "what",
    }


def test_every_error_has_a_message_and_an_exit_code() -> None:
    def below(kind: type[ScaletestError]) -> list[type[ScaletestError]]:
        return [kind, *(leaf for child in kind.__subclasses__() for leaf in below(child))]

    # the one room whose error says FAIL is imported here, since others may have done so before
    assert AllRefused.exit_code == 3
    assert {kind.exit_code for kind in below(ScaletestError)} == {1, 2, 3, 4, 5, 6, 7}
    assert ScaletestError().message == "Something went wrong inside scaletest."


@given(st.text(max_size=500), st.integers(10, 100))
def test_cut_text_is_safe_and_short(text: str, limit: int) -> None:
    shown = checks.cut_text(text, limit)
    assert len(shown) <= limit
    assert all(c.isprintable() for c in shown)
