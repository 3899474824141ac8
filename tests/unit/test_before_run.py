"""Checks before a run on this machine: its programs and devices, those of background loads too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scaletest.model import Background, Plan
from scaletest.model.errors import NoDevice, UsageError
from workers import before_run
from workers.devices import DeviceOptions
from workers.workloads.making import ProgramOptions


@pytest.fixture
def devices(tmp_path: Path) -> str:
    """A pattern of two devices."""
    for name in ("card0", "card1"):
        (tmp_path / name).touch()
    return str(tmp_path / "card*")


def test_a_program_is_looked_for_where_it_will_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "work.sh"
    script.write_text("#!/bin/sh\n")
    options = ProgramOptions(directory=str(tmp_path))
    with pytest.raises(UsageError, match="it is not executable") as caught:
        before_run.check_program(("./work.sh",), options)
    assert caught.value.hint.startswith("chmod +x ")
    script.chmod(0o755)
    before_run.check_program(("./work.sh",), options)
    with pytest.raises(UsageError, match="there is no such program"):
        before_run.check_program(("./work.sh",))
    monkeypatch.chdir(tmp_path)
    before_run.check_program(("./work.sh",))
    before_run.check_program((f"../{tmp_path.name}/work.sh",))


@pytest.mark.parametrize(
    ("command", "reason", "hint"),
    [
        (("nosuchprogram",), "there is no such program", "install it, or give its path"),
        (("sleep 1 | cat",), "there is no such program", "for a line of a shell: sh -c 'sleep 1"),
        (("A=1", "a b"), "there is no such program", "to set a variable: env A=1 'a b'"),
        (("/",), "it is a folder", "give the path of a program"),
    ],
)
def test_a_word_that_is_no_program_is_refused_with_what_to_write(
    command: tuple[str, ...], reason: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=f"cannot be started: {reason}") as refused:
        before_run.check_program(command)
    assert refused.value.hint.startswith(hint)


@pytest.mark.parametrize("command", [(), ("sleep", "1"), ("transcode",), ("FILENAME",), ("sh",)])
def test_what_needs_no_program_of_its_own_passes(command: tuple[str, ...]) -> None:
    before_run.check_program(command)


def test_the_devices_that_workers_will_use_must_be_open_to_this_user(
    devices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path.endswith("card0"))
    options = DeviceOptions(devices)
    before_run.check_devices(options, 1)
    for most in (2, None):
        with pytest.raises(NoDevice, match="card1"):
            before_run.check_devices(options, most)


def test_background_loads_are_checked_too(devices: str) -> None:
    before_run.check_plan(Plan(limit=2, queue="q", device_glob=devices))
    for load in (Background("b", command=("nosuchprogram",)), Background("b", device_glob="/no*")):
        with pytest.raises(UsageError, match=r"nosuchprogram|/no"):
            before_run.check_plan(Plan(limit=2, queue="q", background=(load,)))


def test_workers_that_lease_slots_may_get_any_device(
    devices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path.endswith("card0"))
    before_run.check_plan(Plan(limit=1, queue="q", device_glob=devices))
    with pytest.raises(NoDevice, match="card1"):
        before_run.check_plan(Plan(limit=1, queue="q", device_glob=devices, per_device=(2,)))
