"""Compiles shared libraries from the project's C files, with this machine's compiler."""

import shutil
import subprocess
from pathlib import Path


class NoCompiler(Exception):
    """The library cannot be compiled here; the text says why."""


def shared_library(source: Path, library: Path, *options: str) -> None:
    """Compile one C file. Raises NoCompiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("cc, a C compiler")
    line = [compiler, "-shared", "-fPIC", "-O1", *options, "-o", str(library), str(source)]
    built = subprocess.run(line, capture_output=True, text=True, check=False)
    if built.returncode:
        raise NoCompiler(f"{source.name} cannot be compiled: {built.stderr[-500:]}")
