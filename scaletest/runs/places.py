"""The places of runs, and the search for one by name, label, path, or as LAST."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from scaletest.model.errors import UsageError, nearest_name
from scaletest.model.labels import LATEST
from scaletest.runs.folder import PLAN, SAMPLED, RunFolder


def default_root(environment: Mapping[str, str]) -> Path:
    """Return $XDG_DATA_HOME/scaletest/runs, else ~/.local/share/scaletest/runs."""
    base = environment.get("XDG_DATA_HOME", "")
    try:
        data = Path(base) if base else Path.home() / ".local" / "share"
    except RuntimeError as error:
        raise UsageError(
            "this user has no home directory to keep runs in",
            hint="set HOME or XDG_DATA_HOME to a folder of yours",
        ) from error
    return data / "scaletest" / "runs"


def new_path(environment: Mapping[str, str], chosen: str | Path | None = None) -> Path:
    """Return the path of a new run: the chosen one, else a name of its time and four letters."""
    if chosen:
        return Path(chosen)
    name = f"{datetime.now(UTC).strftime('%Y-%m-%dT%H%M%SZ')}-{uuid.uuid4().hex[:4]}"
    return default_root(environment) / name


def run_reference(path: Path, root: Path) -> str:
    """Return the word by which commands find the run: its name below `root`, else its path."""
    return path.name if path.parent == root else str(path)


def find_named(root: Path, name: str) -> RunFolder | None:
    """Return the run whose folder below `root` has that name; None when there is none.

    Nothing outside `root` is looked at, whatever the name.
    """
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        return None
    return open_run(root / name)


def find_runs(root: Path) -> list[RunFolder]:
    """List all runs below `root`, the oldest first."""
    # hidden folders are not complete yet
    runs = filter(None, map(open_run, root.glob("[!.]*")))
    return sorted(runs, key=lambda run: (run.began, run.name))


def open_run(path: Path) -> RunFolder | None:
    """Return the run in a folder, of any type; None when there is none."""
    try:
        is_run = any((path / file).is_file() for file in (PLAN, SAMPLED))
    except OSError:  # longer than a path may be, or below a folder that is closed to us
        return None
    return RunFolder(path) if is_run else None


def find(name: str, environment: Mapping[str, str]) -> RunFolder:
    """Find the run of that path, folder's name or label.

    LAST is the newest, and the end of a name suffices when only one run's ends so.
    """
    run = open_run(Path(name))
    if run is not None:
        return run
    runs = find_runs(default_root(environment))
    if name == LATEST and runs:
        return runs[-1]
    matching = _match_name(name, runs)
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(run.name for run in matching[:5])
        raise UsageError(
            f"{name!r} fits {len(matching)} runs: {names}", hint="give one of these names"
        )
    labels = [run.labels.name for run in runs]
    near = nearest_name(name, [*(run.name for run in runs), *filter(None, labels)])
    raise UsageError(
        f"there is no run {name!r}",
        hint=f"did you mean {near}?" if near else "see: scaletest runs list",
    )


def _match_name(name: str, runs: Sequence[RunFolder]) -> list[RunFolder]:
    """Return the runs whose folder has that name, else that label, else those where either ends so.

    Folders come first: a label may come from elsewhere, and takes no folder's name away.
    """
    if matching := [run for run in runs if run.name == name]:
        return matching
    labels = [(run, run.labels.name) for run in runs if name]
    if matching := [run for run, label in labels if label == name]:
        return matching
    return [run for run, label in labels if run.name.endswith(name) or label.endswith(name)]
