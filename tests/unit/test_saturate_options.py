"""Options of the command line without their secrets."""

from __future__ import annotations

from scaletest.cli.saturate_options import public


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
