"""The runs of this user: found by name, by the end of a name, by path, or as LAST."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scaletest.archive.folder import PLAN, RunFolder, default_root
from scaletest.model.errors import UsageError


def runs(root: Path) -> list[RunFolder]:
    """All runs below `root`, the oldest first. Hidden folders are not complete yet."""
    if not root.is_dir():
        return []
    found = [RunFolder(path) for path in root.glob("[!.]*") if (path / PLAN).is_file()]
    return sorted(found, key=lambda run: (run.began, run.name))


def find(name: str, environment: Mapping[str, str]) -> RunFolder:
    """The run of that path or name; LAST is the newest, and the end of a name suffices when only one ends so."""
    if (Path(name) / PLAN).is_file():
        return RunFolder(Path(name))
    known = runs(default_root(environment))
    if name == "LAST" and known:
        return known[-1]
    matching = [run for run in known if run.name == name] or [run for run in known if run.name.endswith(name) and name]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(run.name for run in matching[:5])
        raise UsageError(f"{name!r} fits {len(matching)} runs: {names}", hint="give more of the name")
    raise UsageError(f"there is no run {name!r}", hint="see: scaletest runs list")
