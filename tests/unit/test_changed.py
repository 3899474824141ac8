"""Which tests ./hack/test --changed runs: those near a change, by the imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack import changed

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "test"),
    [
        # imported by its test
        ("scaletest/model/error_pattern.py", "tests/unit/test_error_pattern.py"),
        # a file beside the modules of a package
        ("scaletest/ui/templates/live_state.html", "tests/unit/test_ui_runs.py"),
        # a command, which is imported by its name when it is called
        ("scaletest/cli/quick.py", "tests/integration/test_quick.py"),
        # a page that a test reads
        ("docs/how-to/from-the-original.md", "tests/unit/test_guides.py"),
        # what tests share
        ("tests/unit/fakes.py", "tests/unit/test_python_client.py"),
        ("tests/unit/test_weekly.py", "tests/unit/test_weekly.py"),
    ],
)
def test_the_tests_of_a_change_are_found(path: str, test: str) -> None:
    selected, _ = changed.select([path])
    assert test in selected
    assert all((ROOT / name).exists() for name in selected)


def test_what_everything_imports_selects_the_nearest_within_the_budget() -> None:
    selected, others = changed.select(["scaletest/model/errors.py"])
    assert others > 0
    assert sum(map(changed._seconds, selected)) <= changed.BUDGET_S


@pytest.mark.parametrize("path", ["scaletest/py.typed", "tests/unit/test_gone.py"])
def test_a_file_that_no_test_reaches_selects_none(path: str) -> None:
    selected, others = changed.select([path])
    assert (set(selected) - {"tests/unit/test_changed.py"}, others) == (set(), 0)
