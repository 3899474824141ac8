"""Runs of every type that were measured once, and are kept as archives in tests/data/runs."""

import tarfile
from pathlib import Path

from scaletest.runs.folder import RunFolder
from scaletest.runs.places import open_run

ARCHIVES = Path(__file__).parents[1] / "data" / "runs"
KEPT_RUNS = sorted(path.name.removesuffix(".tar.gz") for path in ARCHIVES.iterdir())


def unpack(name: str, data: Path) -> RunFolder:
    """The run, below the folder that holds a user's runs of all types."""
    folder = data / "runs" / name
    folder.mkdir(parents=True)
    with tarfile.open(ARCHIVES / f"{name}.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            (folder / Path(member.name).name).write_bytes(content.read())
    run = open_run(folder)
    assert run is not None
    return run
