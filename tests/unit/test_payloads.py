"""Payloads of requests and their providers."""

from __future__ import annotations

from typing import Any

import pytest

from scaletest.load.payloads import BUILT_IN, Payloads, provided
from scaletest.model.errors import UsageError


def test_payloads_come_in_turn(tmp_path: Any) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\n\ntwo\n")
    payloads = provided(f"lines:{file}")
    assert [payloads.get(number) for number in range(3)] == [b"one", b"two", b"one"]
    assert provided(f"folder:{tmp_path}").get(7) == file.read_bytes()
    assert Payloads().get(5) is None
    with pytest.raises(UsageError, match="no payload provider 'x'"):
        provided("x:y")
    with pytest.raises(UsageError, match="cannot be read"):
        provided(f"file:{tmp_path / 'none'}")


def test_a_provider_that_is_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    # given one that gives text, bytes and a value
    monkeypatch.setitem(BUILT_IN, "mine", lambda argument: [argument, b"b", {"a": 1}])
    payloads = provided("mine:text")
    assert [payloads.get(number) for number in range(3)] == [b"text", b"b", b'{"a": 1}']

    def broken(argument: str) -> list[object]:
        raise ValueError("no such account")

    monkeypatch.setitem(BUILT_IN, "mine", broken)
    with pytest.raises(UsageError, match="no such account"):
        provided("mine")
