"""The runs of this user: found by name, by the end of a name, by path, or as LAST."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scaletest.archive.folder import RunFolder, default_root
from scaletest.archive.lifecycles import LifecycleFolder
from scaletest.archive.lifecycles import root as lifecycles
from scaletest.model.errors import UsageError
from scaletest.model.nearest import nearest


def runs(root: Path) -> list[RunFolder]:
    """All runs below `root`, and lifecycles beside it, oldest first; without hidden folders."""
    places = (place for place in (root, lifecycles(root)) if place.is_dir())
    found = [
        run for place in places for path in place.glob("[!.]*") if (run := opened(path)) is not None
    ]
    return sorted(found, key=lambda run: (run.began, run.name))


def opened(path: Path) -> RunFolder | None:
    """The run in a folder, whatever its kind; None when there is none."""
    kinds = (RunFolder(path), LifecycleFolder(path))
    try:
        return next((run for run in kinds if (path / run.plan_file).is_file()), None)
    except OSError:  # longer than a path may be, or below a folder that is closed to us
        return None


def find(name: str, environment: Mapping[str, str]) -> RunFolder:
    """The run of a path or name; LAST is the newest, a unique end of a name suffices."""
    try:
        Path(name).stat()
    except PermissionError as error:
        raise UsageError(
            f"{name} cannot be looked into: {error.strerror}", hint="look at its folders' rights"
        ) from error
    except OSError:
        pass  # no path then, but perhaps a name
    if (there := opened(Path(name))) is not None:
        return there
    known = runs(default_root(environment))
    if name == "LAST" and known:
        return known[-1]
    matching = [run for run in known if run.name == name] or [
        run for run in known if run.name.endswith(name) and name
    ]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(run.name for run in matching[:5])
        raise UsageError(
            f"{name!r} fits {len(matching)} runs: {names}", hint="give more of the name"
        )
    near = nearest(name, [run.name for run in known])
    raise UsageError(
        f"there is no run {name!r}",
        hint=f"did you mean {near}?" if near else "see: scaletest runs list",
    )
