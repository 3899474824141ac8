"""The index of runs reads what has changed, and nothing else."""

import json
import os
from pathlib import Path

import pytest

from scaletest.model.labels import Labels
from scaletest.runs import run_index
from scaletest.runs.places import find_named
from scaletest.runs.run_index import RunIndex
from tests.unit import made_runs as runs


def stored(root: Path, name: str) -> None:
    runs.stored(root / name, runs.LIMITED, runs.limited_steps())


def test_the_index_reads_again_what_has_changed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "runs"
    stored(root, "one")
    stored(root, "two")
    index, reads = RunIndex(root), list[str]()
    read = run_index.read_listed_run
    monkeypatch.setattr(
        run_index,
        "read_listed_run",
        lambda folder: reads.append(folder.name) or read(folder),
    )
    shown, unread = index.look(60.0)
    assert [run.run for run in shown] == sorted(reads) == ["one", "two"] and unread == 0
    assert shown[0].curve == [] and shown[0].workload == shown[1].workload
    # when nothing changes, expect that nothing is read
    reads.clear()
    assert index.look(60.0)[0] == shown and reads == []
    # when one is labelled and one is deleted, expect both in the next look
    folder = find_named(root, "two")
    folder.relabel(lambda _: Labels(note="arc"))
    gone = find_named(root, "one")
    assert gone is not None and gone.remove()
    shown, _ = index.look(60.0)
    assert [(run.run, run.note) for run in shown] == [("two", "arc")] and reads == ["two"]
    # while it is measured, and when its process was killed, expect what is true now
    with folder.locked():
        assert [run.verdict for run in index.look(60.0)[0]] == ["RUNNING"]
    assert [run.verdict for run in index.look(60.0)[0]] == ["FAIL"]


def test_who_looks_waits_no_longer_than_asked(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        stored(tmp_path / "runs", name)
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    # the clock is read once, and then after each run
    index = RunIndex(tmp_path / "runs", clock)
    shown, unread = index.look(1.5)
    assert ([run.run for run in shown], unread) == (["b", "c"], 1)
    index.fill()
    assert [run.run for run in index.look(0.0)[0]] == ["a", "b", "c"]


def test_a_name_that_is_not_utf_8_is_listed_as_text(tmp_path: Path) -> None:
    stored(tmp_path / "runs", os.fsdecode(b"\xff"))
    (run,), _ = RunIndex(tmp_path / "runs").look(60.0)
    assert (run.run, run.folder) == (r"\udcff", rf"{tmp_path}/runs/\udcff")


def test_damaged_runs_and_strangers_are_no_reason_to_fail(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    (root / "damaged").mkdir(parents=True)
    (root / "damaged" / "plan.json").write_text("{")
    (root / "a file").write_text("")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "plan.json").write_text("{}")
    (root / "odd").mkdir()
    (root / "odd" / "plan.json").write_text(json.dumps({"schema_version": 1}))
    shown, unread = RunIndex(root).look(60.0)
    assert [run.run for run in shown] == ["damaged", "odd"] and unread == 0
    assert "not valid JSON" in shown[0].problem
    assert RunIndex(tmp_path / "nowhere").look(1.0) == ([], 0)
