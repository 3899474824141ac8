"""The scripts of hack/: what they do where nothing is installed yet, and when what they run ends badly."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Says what it was asked for, and ends as the file beside it says, line by line.
STUB = """#!/bin/sh
echo "$@" >>"$0.asked"
code=$(head -n 1 "$0.codes"); sed -i 1d "$0.codes"
exit "${code:-0}"
"""


@pytest.mark.parametrize(
    ("codes", "expected", "runs"),
    [
        ([0, 0], 0, 2),
        ([1, 0], 1, 2),
        ([0, 1], 1, 2),
        # all that is selected lies in one of the two
        ([5, 0], 0, 2),
        ([0, 5], 0, 2),
        ([5, 1], 1, 2),
        # nothing is selected at all: a name that was not spelt right
        ([5, 5], 5, 2),
        # Ctrl-C, or options that pytest does not know
        ([2], 2, 1),
        ([4], 4, 1),
        ([1, 2], 2, 2),
    ],
)
def test_both_runs_of_all_tests_count(codes: list[int], expected: int, runs: int, tmp_path: Path) -> None:
    # given an environment whose pytest ends so
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "ruff", "mypy", "lint-imports"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
        (programs / f"{name}.codes").write_text("")
    (programs / "python.codes").write_text("".join(f"{code}\n" for code in codes))
    made_of = f"embedded,dev {ROOT} ".encode() + (ROOT / "pyproject.toml").read_bytes()
    (tmp_path / ".scaletest-stamp").write_text(f"{hashlib.sha256(made_of).hexdigest()}\n")
    environment = {**os.environ, "SCALETEST_VENV": str(tmp_path), "SCALETEST_TEST_KUBECONFIG": ""}
    done = subprocess.run([ROOT / "hack/test", "--all", "tests/unit/test_model.py", "-k", "a b"], env=environment)
    # expect both, unless the first was ended, and what was asked for in each
    asked = (programs / "python.asked").read_text().splitlines()
    assert (done.returncode, len(asked)) == (expected, runs)
    assert all(line.endswith("tests/unit/test_model.py -k a b") for line in asked)
    assert ["-m not cluster" in asked[0], *("--numprocesses 4" in line for line in asked[1:])] == [True] * runs


def test_a_bare_machine_is_asked_what_it_lacks() -> None:
    # given a Python without any package
    line = [sys.executable, "-S", "-m", "hack.kubernetes", "missing"]
    done = subprocess.run(line, cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
