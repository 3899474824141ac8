"""A Redis whose wall clock can be set while it runs, by a small preloaded library."""

import shlex
import struct
from pathlib import Path

from hack.compiler import NoCompiler, shared_library

__all__ = ["NoCompiler", "WallClock"]
SOURCE = Path(__file__).with_name("wall_clock.c")


class WallClock:
    """A wall clock for a server.

    program: runs the server with it, and takes the server's own options.
    """

    def __init__(self, server: str, folder: Path) -> None:
        """Make the program. Raises NoCompiler."""
        library, self._file = folder / "wall_clock.so", folder / "wall_clock"
        shared_library(SOURCE, library)
        self.set(0)
        self.program = str(folder / "server")
        variables = (
            f"LD_PRELOAD={shlex.quote(str(library))}"
            f" SCALETEST_WALL_CLOCK={shlex.quote(str(self._file))}"
        )
        Path(self.program).write_text(
            f'#!/bin/sh\nexec env {variables} {shlex.quote(server)} "$@"\n'
        )
        Path(self.program).chmod(0o755)

    def set(self, ahead_s: int) -> None:
        """Set how many seconds the server's clock is ahead of this machine's, or behind."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("=q", ahead_s))
