"""Reports of runs that are looked up by name, are broken, or miss a part."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import VerdictKind
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.report import formats
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.plan import Plan
from scaletest.validation.report.report import validation_report
from scaletest.validation.run_type import RUN_TYPE
from tests.unit import made_runs as runs

FILES = (
    "plan.json",
    "environment.json",
    "steps.jsonl",
    "records.jsonl",
    "samples.jsonl",
    "result.json",
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "content", [b"{", b"\xff\xfe\n", b"[]\n", b"null\n"], ids=["half", "bytes", "list", "null"]
)
def test_a_broken_file_is_an_error_that_names_the_run(
    tmp_path: Path, name: str, content: bytes
) -> None:
    folder = runs.stored(tmp_path / "run", Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    (folder.path / name).write_bytes(content)
    if content == b"{" and name.endswith(
        "jsonl"
    ):  # a line that was being written when the run was killed
        lost = name != "samples.jsonl"  # without the last sample a run is judged all the same
        assert RUN_TYPE.judge(folder).result.verdict.kind is (
            VerdictKind.INVALID if lost else VerdictKind.PASS
        )
        return
    if name == "samples.jsonl":
        _expect_missing_samples(folder)
        return
    with pytest.raises(UsageError, match=r"run run (cannot be read|holds bytes)") as caught:
        RUN_TYPE.judge(folder)
    assert str(folder.path) in caught.value.hint


def _expect_missing_samples(folder: ValidationFolder) -> None:
    """The run is judged, and says so."""
    result = RUN_TYPE.judge(folder).result
    assert result.verdict.kind is VerdictKind.PASS
    (line,) = [
        line for line in result.warnings if line.startswith("samples of the nodes are missing: ")
    ]
    assert "samples.jsonl" in line


def test_samples_that_may_not_be_read_are_missing(tmp_path: Path) -> None:
    folder = runs.stored(tmp_path / "run", Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    (folder.path / "samples.jsonl").mkdir()
    _expect_missing_samples(folder)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "elapsed_s",
        "interrupted",
        "command_line",
        "began",
        "host",
        "processor",
        "cores",
        "devices",
        "packages",
    ]
)


@given(st.dictionaries(KEYS | st.text(max_size=5), json_values, max_size=6))
def test_any_environment_and_result_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("any") / "run"
    folder = runs.stored(path, Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    for name in ("environment.json", "result.json"):
        (path / name).write_text(json.dumps(data))
    try:
        run = RUN_TYPE.judge(folder)
    except ScaletestError:
        return
    for form in formats.texts():
        formats.render(validation_report(run), form).encode()


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        RUN_TYPE.judge(ValidationFolder(tmp_path))
