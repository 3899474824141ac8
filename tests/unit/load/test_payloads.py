"""Payloads of requests."""

from pathlib import Path
from typing import Any

import pytest

from scaletest.load.http import HttpLoad
from scaletest.load.http_call import HttpCall, HttpResponse
from scaletest.load.level_load import LoadOrder
from scaletest.load.payloads import read_payloads
from scaletest.model.attempt import OK
from scaletest.model.errors import UsageError


def test_a_payload_is_a_file_or_the_files_of_a_folder_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    assert read_payloads(str(tmp_path)) == [b"one", b"two"]
    assert read_payloads(str(tmp_path / "b")) == [b"two"]
    assert read_payloads("") == [None]
    with pytest.raises(UsageError, match="cannot be read"):
        read_payloads(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no file in"):
        read_payloads(str(tmp_path / "empty"))


class Recorder:
    """Sends nothing, and remembers the bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes | None] = []

    async def send(self, body: bytes | None) -> HttpResponse:
        self.bodies.append(body)
        return HttpResponse(OK)

    async def close(self) -> None:
        """Nothing is open."""


def test_bodies_are_sent_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Recorder()

    async def open_sender(call: HttpCall) -> Any:
        return sender

    monkeypatch.setattr("scaletest.load.http.open_sender", open_sender)
    load = HttpLoad(HttpCall("http://h/"), [b"one", b"two"])
    load.measure(LoadOrder(1.0, parallel=1, count=3), lambda: False, lambda ended, failed: None)
    load.close()
    assert sender.bodies == [b"one", b"two", b"one"]
