"""Options of the command line without their secrets."""

from __future__ import annotations

import pytest

from scaletest.cli.main import run
from scaletest.cli.saturate_run import public


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
