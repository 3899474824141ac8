"""The lifecycle commands."""

import csv
import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.lifecycle import runai
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.timeline import timeline_of
from scaletest.lifecycle.measure.templating import text_of
from scaletest.lifecycle.run_type import RUN_TYPE, LifecycleRun, read_run
from scaletest.model.verdict import VerdictKind
from scaletest.runs.folder import RunFolder
from scaletest.runs.registry import judge_run
from tests.unit.lifecycles import plan, submission, workload


def test_a_folder_of_the_original_tool_is_plotted_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given nothing but its two files, one workload of which the other has no record
    names = [f"j-00000{index}" for index in range(5)]
    rows = [workload(name, submitted=float(index)) for index, name in enumerate(names)]
    (tmp_path / "submitted.json").write_text(
        runai.write_submitted([submission(name) for name in names])
    )
    (tmp_path / "sampled.json").write_text(runai.write_sampled(map(timeline_of, rows[:4]), "p"))
    assert run(["lifecycle", "plot", "-o", str(tmp_path), "--plot", "detailed", "--tail", "3"]) == 0
    # the table holds all of them, whatever is drawn
    table = list(csv.DictReader((tmp_path / "times.csv").read_text().splitlines()))
    assert len(table) == 4
    # of the pods its files tell times and no number
    assert (table[0]["Pods"], table[0]["Last Pod Creation"]) == ("", "1.000000")
    assert (tmp_path / "detailed.png").exists()
    capsys.readouterr()
    assert run(["report", str(tmp_path), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["books"]["measured"], report["books"]["pending"]) == (4, 1)
    assert run(["report", str(tmp_path)]) == 0
    assert "no pod is on record" in capsys.readouterr().out


def test_a_run_that_ends_while_it_is_read_has_no_verdict_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a folder in which somebody samples
    (tmp_path / "submitted.json").write_text(runai.write_submitted([submission("j-000001")]))
    (tmp_path / "sampled.json").write_text(
        runai.write_sampled([timeline_of(workload("j-000001"))], "p")
    )
    store, sampling = LifecycleFolder(tmp_path), ExitStack()
    sampling.enter_context(store.locked(".sampler.lock"))

    def read_slowly(folder: RunFolder) -> LifecycleRun:
        partial = read_run(LifecycleFolder(folder.path))
        sampling.close()
        return partial

    # when that ends after the files were read, expect no verdict, and one when they are read again
    monkeypatch.setattr(RUN_TYPE, "judge", read_slowly)
    assert judge_run(store).verdict.kind is VerdictKind.RUNNING
    assert judge_run(store).verdict.kind is VerdictKind.PASS


def test_a_folder_without_a_lifecycle_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lifecycle", "plot", "--output-dir", str(tmp_path)]) == 2
    assert "contains no lifecycle run" in capsys.readouterr().err


def test_options_that_would_be_ignored_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LifecycleFolder(tmp_path).begin(
        plan(
            count=5,
            workers=3,
            api_version="batch/v1",
            object_kind="Job",
            template=text_of("job", None),
        ),
        {},
    )
    command = ["lifecycle", "submit", "-o", str(tmp_path), "--dry-run"]
    # the same command goes on
    assert run([*command, "--num-workers", "3", "-t", "training", "-p", "2"]) == 0
    assert run([*command, "--num-workers", "4"]) == 2
    assert "num workers 3, not 4" in capsys.readouterr().err
