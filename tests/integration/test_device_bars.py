"""The bars of devices, sized for CI: full workers under attack, and the eye that watches them."""

from __future__ import annotations

from argparse import Namespace

from hack.benchmarks.devices import Tenure, overlaps, sequences


def test_no_slot_of_full_workers_has_two_holders_while_they_are_attacked() -> None:
    row = sequences(Namespace(sequences=4, seed=5))
    assert row["pass"], row
    # each of the eight slots was held, and somebody was sure of it
    assert row["moments"] >= row["tenures"] >= 8
    assert row["requests"].keys() == {"succeeded"}


def test_two_holders_of_a_slot_at_one_moment_are_reported() -> None:
    rows = [
        Tenure("s", "a/1", 1.0, 2.0),
        Tenure("s", "b/1", 2.5, 3.0),
        Tenure("t", "c/1", 0.0, 9.0),
    ]
    assert overlaps(rows) == []
    # also when the first goes on after the second has ended
    assert len(overlaps([*rows, Tenure("s", "d/1", 2.9, 2.95)])) == 1
    assert overlaps(
        [Tenure("s", "a/1", 1.0, 5.0), Tenure("s", "b/1", 2.0, 3.0), Tenure("s", "c/1", 4.0, 6.0)]
    ) == [
        "s: a/1 and b/1 for 3.000 s",
        "s: a/1 and c/1 for 1.000 s",
    ]
