"""Where `validate` runs when no option says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.cli.main import run


@pytest.mark.parametrize("word", ["nosuchprog", "plan.yaml"])
def test_a_word_that_is_no_program_starts_no_run(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "plan.yaml").write_text("limit: 2\n")
    assert run(["validate", word, "--limit", "2"]) == 2
    error = capsys.readouterr().err
    assert ("nosuchprog cannot be started" in error) == (word == "nosuchprog")
    assert ("-f plan.yaml" in error) == (word == "plan.yaml")
    assert not (tmp_path / "scaletest").exists()
