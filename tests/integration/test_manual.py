"""The programs that show the manual page find nothing wrong with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import need

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scaletest.1"


@pytest.mark.parametrize(
    "line", [["groff", "-ww", "-man", "-Tutf8"], ["mandoc", "-T", "lint", "-W", "warning"]]
)
def test_programs_that_show_it_have_nothing_to_say(line: list[str]) -> None:
    need(line[0])
    done = subprocess.run([*line, str(PAGE)], capture_output=True, text=True, check=False)
    complaints = done.stderr if line[0] == "groff" else done.stdout
    # a date would make another page every day
    assert [row for row in complaints.splitlines() if "missing date" not in row] == []
