"""Limits of control groups, throttling, and how often processes may be looked at."""

from pathlib import Path

import pytest

from scaletest.observe.control_groups import Throttling
from scaletest.observe.sampling import LOOKS_SHARE, Allowance


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")


def test_throttling_by_version_2_counts_all_limits_around_us(tmp_path: Path) -> None:
    own, root = tmp_path / "cgroup", tmp_path / "fs"
    write(own, "0::/a/b\n")
    for folder, limit in (("", ""), ("a", "20000 100000"), ("a/b", "max 100000")):
        write(root / folder / "cgroup.procs", "")
        write(root / folder / "cpu.stat", "nr_throttled 1\nthrottled_usec 500000\n")
        if limit:
            write(root / folder / "cpu.max", limit)
    throttling = Throttling(root, own)
    write(root / "a/cpu.stat", "nr_periods 40\nnr_throttled 11\nthrottled_usec 2500000\n")
    write(root / "a/b/cpu.stat", "nr_periods 20\nnr_throttled 19\nthrottled_usec 9500000\n")
    assert throttling.seconds() == pytest.approx(2.0)
    assert throttling.part() == pytest.approx(0.25)


def test_an_unreadable_control_group_counts_as_unlimited(tmp_path: Path) -> None:
    write(tmp_path / "cgroup.procs", "")
    # a name that no file may have: looking for it is an error, not an absence
    write(tmp_path / "cgroup", f"0::/{'x' * 300}\n")
    assert Throttling(tmp_path, tmp_path / "cgroup").seconds() == 0


def test_a_control_group_that_cannot_be_seen_does_not_hide_its_parents(tmp_path: Path) -> None:
    write(tmp_path / "cgroup.procs", "")
    write(tmp_path / "cgroup", f"0::/{'x' * 300}\n")
    write(tmp_path / "cpu.max", "20000 100000\n")
    write(tmp_path / "cpu.stat", "throttled_usec 500000\n")
    throttling = Throttling(tmp_path, tmp_path / "cgroup")
    write(tmp_path / "cpu.stat", "throttled_usec 1500000\n")
    assert throttling.seconds() == pytest.approx(1.0)


def test_without_a_limit_nothing_is_throttled(tmp_path: Path) -> None:
    assert Throttling(tmp_path, tmp_path / "missing").seconds() == 0
    write(tmp_path / "cgroup", "0::/\nnonsense\n")
    write(tmp_path / "cgroup.procs", "")
    write(tmp_path / "cpu.max", "max 100000\n")
    write(tmp_path / "cpu.stat", "nr_throttled 1\nthrottled_usec 500000\n")
    assert Throttling(tmp_path, tmp_path / "cgroup").seconds() == 0


@pytest.mark.parametrize("cost_s", [0.0005, 0.01])
def test_costlier_looks_are_made_less_often(cost_s: float) -> None:
    allowance = Allowance()
    now = spent_s = 0.0
    for _ in range(1000):
        now += allowance.interval_s
        allowance.count_look(cost_s)
        spent_s += cost_s
    assert spent_s / now == pytest.approx(LOOKS_SHARE, rel=0.01)
