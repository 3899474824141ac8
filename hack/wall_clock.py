"""A Redis whose wall clock can be set while it runs, as a node's clock is: a small library is preloaded into it."""

from __future__ import annotations

import shlex
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("wall_clock.c")


class NoCompiler(Exception):
    """The library cannot be made here; the text says why."""


class WallClock:
    """Makes a program that runs a server with this clock: `program` takes the server's own options."""

    def __init__(self, server: str, folder: Path) -> None:
        """Raises NoCompiler."""
        compiler = shutil.which("cc")
        if compiler is None:
            raise NoCompiler("no C compiler (cc) was found, so Redis's clock is not set")
        library, self._file = folder / "wall_clock.so", folder / "wall_clock"
        built = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode:
            raise NoCompiler(f"{SOURCE.name} cannot be compiled, so Redis's clock is not set: {built.stderr[-500:]}")
        self.set(0)
        self.program = str(folder / "server")
        variables = f"LD_PRELOAD={shlex.quote(str(library))} SCALETEST_WALL_CLOCK={shlex.quote(str(self._file))}"
        Path(self.program).write_text(f'#!/bin/sh\nexec env {variables} {shlex.quote(server)} "$@"\n')
        Path(self.program).chmod(0o755)

    def set(self, ahead_s: int) -> None:
        """Let the server's clock be so far ahead of this machine's, or behind where negative."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead_s))
