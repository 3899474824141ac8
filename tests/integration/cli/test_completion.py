"""Completion as shells ask for it, of commands, options, and the names of runs and kinds; and the
programs that show the manual page find nothing wrong with it.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import need, program
from tests.unit.made_runs import make


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A run called nightly."""
    runs = tmp_path / "data" / "scaletest" / "runs"
    make("pass", runs)
    (runs / "pass").rename(runs / "nightly")
    return {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}


# (line up to the cursor, what is offered)
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("val", ["validate"]),
        ("bench ru", ["run"]),
        ("validate --lim", ["--limit"]),
        ("validate --preset n", ["nvidia"]),
        ("validate --limit x --form", ["--format"]),
        ("bench run f", ["Fio"]),
        ("report nig", ["nightly"]),
    ],
)
def test_a_line_is_completed(line: str, offered: list[str], environment: dict[str, str]) -> None:
    words = f"scaletest {line}"
    variables = {
        COMPLETE: "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        program(), env={**environment, **variables}, capture_output=True, text=True, check=True
    )
    assert [item.partition(",")[2] for item in done.stdout.splitlines()] == offered
    assert done.stderr == ""


def test_bash_takes_the_script_of_the_guide(environment: dict[str, str]) -> None:
    script = f"""
eval "$({COMPLETE}=bash_source {program()[0]} -m scaletest)"
complete -p scaletest
"""
    done = subprocess.run(
        [need("bash"), "--norc", "-c", script], env=environment, capture_output=True, text=True
    )
    assert "-F _scaletest_completion scaletest" in done.stdout, done.stderr


COMPLETE = "_SCALETEST_COMPLETE"
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "scaletest.1"


@pytest.mark.parametrize(
    "line", [["groff", "-ww", "-man", "-Tutf8"], ["mandoc", "-T", "lint", "-W", "warning"]]
)
def test_programs_that_show_it_have_nothing_to_say(line: list[str]) -> None:
    need(line[0])
    done = subprocess.run([*line, str(PAGE)], capture_output=True, text=True, check=False)
    complaints = done.stderr if line[0] == "groff" else done.stdout
    # a date would make another page every day
    assert [row for row in complaints.splitlines() if "missing date" not in row] == []
