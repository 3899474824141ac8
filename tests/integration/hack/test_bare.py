"""A stranger's first two commands, in a Debian that has nothing but Python, venv and git."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.conftest import missing, need

ROOT = Path(__file__).parents[3]
# The Python of each suite.
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}


def test_the_package_names_the_pythons_that_a_test_runs_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert named == list(PYTHONS.values())


@pytest.mark.weekly(part="bare")
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("user", ["root", "user"])
@pytest.mark.parametrize("suite", PYTHONS)
def test_the_demo_passes_and_no_test_fails(suite: str, user: str) -> None:
    need("debootstrap", "ip")
    if os.geteuid() != 0:
        missing("root, who can change into another system")
    done = subprocess.run(
        [ROOT / "hack" / "bare", suite, user],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    end = done.stdout[-5000:]
    assert done.returncode == 0, end
    assert f" -- Python {PYTHONS[suite]}." in done.stdout, end
    assert re.search(r"^PASS ", done.stdout, re.MULTILINE), end
    # many are skipped there, which the last lines explain
    assert re.search(r" [1-9]\d{3,} passed, \d+ skipped", end), end
    assert "install what they need: ./hack/test --install" in end
