"""Groups of failures: what they have in common, where and when they occurred, in bounded memory.
Shares between groups.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import Outcome, Reason, Record, Reply
from scaletest.render.numbers import leading_names
from scaletest.report import failures
from scaletest.stats.failures import (
    LONGEST_ERROR,
    MOST_GROUPS,
    MOST_PLACES,
    FailureTally,
    count_alike,
    groups_of,
)
from scaletest.validation.judging.fairness import fairness

VAAPI = "[AVHWDeviceContext @ {:#x}] Failed to initialise VAAPI connection: -1"


def reply(
    error: str = "broken",
    node: str = "node-1",
    device: str = "/dev/dri/renderD128",
    ended_s: float = 0.0,
    outcome: Outcome = Outcome.FAILED,
    exit_code: int | None = 1,
    reason: Reason = Reason.EXIT,
) -> Reply:
    return Reply(
        "id-1",
        outcome,
        reason,
        exit_code,
        error,
        node=node,
        device=device,
        ended_s=ended_s,
    )


def record(reply: Reply) -> Record:
    return Record("q", 1, reply, 1.0)


def test_errors_of_ffmpeg_that_differ_in_a_pointer_are_one_group() -> None:
    # given 143 failures on three nodes, and one of another kind
    records = [
        record(
            reply(VAAPI.format(0x55D0C3A1B2C0 + 64 * number), f"node-{number % 3}", ended_s=1000.0)
        )
        for number in range(143)
    ]
    records.append(record(reply("No such file or directory", exit_code=254, ended_s=1039.5)))
    first, second = groups_of(records)
    # expect one group with an example and its spread
    assert (first.count, second.count) == (143, 1)
    assert first.error == VAAPI.format(0x55D0C3A1B2C0)
    assert "0x" not in first.pattern
    assert first.nodes == {"node-0": 48, "node-1": 48, "node-2": 47}
    assert sum(first.devices.values()) == 143
    assert (second.first_s, second.last_s) == (1039.5, 1039.5)


@pytest.mark.parametrize(
    "other",
    [
        reply("worse"),
        reply(exit_code=2),
        reply(reason=Reason.SIGNAL),
        reply(outcome=Outcome.TIMED_OUT, reason=Reason.NONE),
    ],
)
def test_groups_differ_in_outcome_reason_exit_code_and_pattern(other: Reply) -> None:
    assert len(groups_of(map(record, [reply(), other]))) == 2


def test_nothing_failed() -> None:
    assert groups_of([record(Reply("id-1", Outcome.SUCCEEDED, exit_code=0))]) == []
    assert failures.table([]).rows == ()


def test_of_very_many_groups_the_most_frequent_are_kept() -> None:
    often = [reply("often")] * 3
    (first, *others) = groups_of(
        map(record, [*often, *(reply(f"x{number}") for number in range(3 * MOST_GROUPS))])
    )
    assert (first.error, first.count, len(others)) == ("often", 3, MOST_GROUPS - 1)


def test_a_tally_is_bounded_and_loses_no_failure() -> None:
    tally = FailureTally(most=5)
    for number in range(1000):
        tally.add(reply(f"x{number % 7}", node=f"node-{number}"), 1000.0 * number + 1)
    groups = tally.groups()
    assert len(groups) == 5
    assert sum(group.count for group in groups) + tally.others == 1000
    for group in groups:
        assert len(group.places) <= MOST_PLACES
        assert sum(place.count for place in group.places) + group.elsewhere == group.count


def test_a_very_long_error_is_cut() -> None:
    (group,) = groups_of([record(reply("ab " * 10_000))])
    assert len(group.error) == LONGEST_ERROR


@given(st.lists(st.tuples(st.floats(0, 1e12), st.sampled_from("abc"), st.text(max_size=3))))
def test_counts_and_times_hold_for_any_order(rows: list[tuple[float, str, str]]) -> None:
    tally = FailureTally()
    for at_s, error, node in rows:
        tally.add(reply(error, node), at_s)
    groups = tally.groups()
    assert sum(group.count for group in groups) == len(rows)
    for group in groups:
        times = [at_s for at_s, error, _ in rows if error == group.error and at_s > 0]
        assert (group.first_s, group.last_s) == (min(times, default=0), max(times, default=0))


def test_texts_are_counted_by_their_pattern_under_the_first() -> None:
    texts = ["403 quota of 7", "no reason", "403 quota of 8"]
    assert count_alike(texts) == {"403 quota of 7": 2, "no reason": 1}


@pytest.mark.parametrize(
    ("counts", "others", "text"),
    [
        ({"a": 3}, 0, "a"),
        ({"a": 3}, 2, "a (3) and 2 elsewhere"),
        ({"a": 3, "": 1}, 0, "a (3) and n/a (1)"),
        ({"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}, 0, "a (5), b (4), c (3) and 2 more"),
        ({}, 0, "n/a"),
        ({}, 2, "2 elsewhere"),
    ],
)
def test_the_first_few_names_are_listed(counts: dict[str, int], others: int, text: str) -> None:
    assert leading_names(counts, others=others) == text


def test_groups_are_sorted_and_the_ratio_is_most_over_least() -> None:
    result = fairness({"a": 10, "b": 30, "c": 20})
    assert [(row.name, row.amount) for row in result.groups] == [("b", 30), ("c", 20), ("a", 10)]
    assert result.ratio == 3
