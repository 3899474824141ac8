"""The option of sampling: which workers sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.model import Record
from tests.conftest import call


@pytest.mark.parametrize(("options", "sampled"), [((), True), (("--no-causes",), False)])
def test_records_of_a_local_validation_carry_activities(
    tmp_path: Path, options: tuple[str, ...], sampled: bool
) -> None:
    folder = tmp_path / "run"
    line = [
        "--local",
        "--limit",
        "1",
        "--step-time",
        "2",
        "--run-dir",
        str(folder),
        *options,
        "--",
        "/bin/sleep",
        "0.2",
    ]
    done = call("validate", *line)
    assert done.returncode in (0, 3, 4), done.stderr
    records = [
        Record.from_json(line)
        for line in (folder / "records.jsonl").read_text("utf-8").splitlines()
    ]
    assert records and any(record.reply.activity is not None for record in records) is sampled


def test_no_causes_is_refused_for_workers_of_a_deployment() -> None:
    done = call("validate", "--deployment", "d", "--no-causes")
    assert done.returncode == 2 and "--no-causes is for local workers" in done.stderr
