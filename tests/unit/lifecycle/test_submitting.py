"""Submission of a lifecycle's objects into its folder, and threads while one is measured."""

import json
import sys
import threading
from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.cluster.bulk_objects import Applied
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure import measuring
from scaletest.lifecycle.measure.measuring import delete_objects
from scaletest.lifecycle.measure.submitting import Submitter
from scaletest.lifecycle.measure.templating import text_of
from tests.unit.lifecycles import BEGAN, plan


def test_defect_14_a_second_run_in_the_folder_deletes_no_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a folder in which a submit was interrupted after two of five
    job_plan = plan(
        count=5,
        processes=2,
        api_version="batch/v1",
        object_kind="Job",
        template=text_of("job", None),
    )
    store, tool = LifecycleFolder(tmp_path), Stopping(2)
    store.begin(job_plan, {})
    Submitter(job_plan, store, tool, lambda: BEGAN, fresh=True, stopping=tool.stop.is_set).run()
    assert [
        row["jobName"] for row in json.loads((tmp_path / "submitted.json").read_text())
    ] == tool.names
    # then the next one goes on, and the one after that has nothing to do
    for expected in (5, 5):
        Submitter(job_plan, store, tool, lambda: BEGAN + 9).run()
        assert tool.names == list(job_plan.names())[:expected]
        rows = json.loads((tmp_path / "submitted.json").read_text())
        assert [row["jobName"] for row in rows] == tool.names
    # a dry run submits nothing, and another run is refused the folder
    command = ["lifecycle", "submit", "-o", str(tmp_path), "--dry-run"]
    assert run(command) == 0
    assert run([*command, "-n", "6"]) == 2
    assert "another --output-dir for a new run" in capsys.readouterr().err
    # and what was submitted is taken away, by its label
    objects = Gone(tool.names)
    assert delete_objects(job_plan, objects) == 5  # type: ignore[arg-type]
    assert (objects.names_left, objects.selector) == ([], f"scaletest/run={job_plan.run}")


class Stopping:
    """A tool that accepts everything, and stops the submitter when it has seen so many."""

    def __init__(self, most: int) -> None:
        self.names: list[str] = []
        self.stop, self._most = threading.Event(), most
        self._lock = threading.Lock()

    def __call__(self, name: str) -> Applied:
        with self._lock:
            self.names.append(name)
            if len(self.names) == self._most:
                self.stop.set()
        return Applied(True, True, 201)


class Gone:
    """Objects of a cluster that can be listed and deleted."""

    def __init__(self, names: list[str]) -> None:
        self.names_left, self.selector = list(names), ""

    def resource(self, api_version: str, kind: str) -> str:
        return kind

    def list_names(self, resource: str, namespace: str, selector: str) -> list[str]:
        self.selector = selector
        return list(self.names_left)

    def delete(self, resource: str, namespace: str, names: list[str]) -> None:
        self.names_left = [name for name in self.names_left if name not in names]


def test_the_switch_interval_of_threads_is_short_only_while_events_are_stamped() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(KeyError), measuring.short_switch_interval():
        assert sys.getswitchinterval() < before
        raise KeyError
    assert sys.getswitchinterval() == before
