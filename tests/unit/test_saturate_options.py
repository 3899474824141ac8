"""Options of the command line without their secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.saturation.runner import public


def test_a_command_line_loses_its_secrets() -> None:
    arguments = [
        "saturate",
        "--url",
        "http://me:word@h/?code=abc&x=1",
        "-H",
        "Authorization: Bearer abc",
        "--header=K: abc",
    ]
    assert "abc" not in " ".join(public(arguments)) and "word" not in " ".join(public(arguments))
    assert public(["-H", "K: abc"]) == ["-H", "K: ***"]


def test_an_address_alone_is_the_service_to_load(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["saturate", "http://h/", "--dry-run"]) == 0
    positional = capsys.readouterr().out
    assert run(["saturate", "--url", "http://h/", "--dry-run"]) == 0
    assert capsys.readouterr().out == positional


def test_a_typed_address_comes_before_that_of_a_file_and_two_targets_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("url: http://127.0.0.1:1/\n")
    assert run(["saturate", "-f", str(plan), "--dry-run", "http://127.0.0.1:2/"]) == 0
    assert "http://127.0.0.1:2/" in capsys.readouterr().out
    for other in (["--url", "http://127.0.0.1:1/"], ["--service", "svc/x"]):
        assert run(["saturate", "--dry-run", *other, "http://127.0.0.1:2/"]) == 2
        assert f"and {other[0]} are two targets" in capsys.readouterr().err
