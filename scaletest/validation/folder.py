"""A run's folder: plan.json, environment.json, records.jsonl, result.json. Written after every step, whole or not."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from scaletest import __version__
from scaletest.model import Plan, Record
from scaletest.model.errors import UsageError
from scaletest.model.wire import SCHEMA_VERSION


def default_root(environment: Mapping[str, str]) -> Path:
    """Where runs are kept: $XDG_DATA_HOME/scaletest/runs, else ~/.local/share/scaletest/runs."""
    base = environment.get("XDG_DATA_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "scaletest" / "runs"
    except RuntimeError as error:
        raise UsageError("this user has no home directory to keep runs in", hint="give --run-dir DIR") from error


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise UsageError(f"the run folder {path} is not empty", hint="give another --run-dir")
        except OSError as error:
            raise UsageError(
                f"the run folder {path} cannot be made: {error.strerror}", hint="give another --run-dir"
            ) from error

    @property
    def log(self) -> Path:
        """Where local workers write."""
        return self.path / "workers.log"

    def begin(self, plan: Plan, command_line: Sequence[str]) -> None:
        """Write plan and environment."""
        self._write("plan.json", plan.to_dict())
        self._write("environment.json", environment(command_line))

    def add(self, records: Sequence[Record]) -> None:
        """Append the records of a step and make sure they are on disk."""
        with (self.path / "records.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(record.to_json() + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())

    def result(self, data: Mapping[str, Any]) -> None:
        """Write the result so far."""
        self._write("result.json", data)

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        """Whole or not at all: a reader never sees half a file."""
        path = self.path / name
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(data, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        fresh.replace(path)


def environment(command_line: Sequence[str]) -> dict[str, Any]:
    """Where and with what a run was made."""
    packages = {}
    for name in ("redis", "hiredis", "rq"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = ""
    return {
        "schema_version": SCHEMA_VERSION,
        "scaletest": __version__,
        "command_line": [re.sub(r"//([^:@/]*):.*@", r"//\1:***@", word) for word in command_line],
        "python": sys.version.split()[0],
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "packages": packages,
    }
