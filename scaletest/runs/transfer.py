"""Runs as one file: out as a tar that is the same for the same run, in with distrust.

What comes in may be anything: only the known names of one folder are read, as plain files, each
once, and no more than a limit when unpacked. It lies in a hidden folder beside the runs until it
could be loaded, then it gets its name.
"""

from __future__ import annotations

import gzip
import itertools
import os
import tarfile
import tempfile
import zlib
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO

from scaletest.archive.environment import fresh_of, open_private
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.labels import is_run_name
from scaletest.runs.folder import STEPS, RunFolder
from scaletest.runs.places import opened, place_of
from scaletest.runs.registry import TYPES, run_type, type_of

MOST_BYTES = 2 * 1024**3
# What lies between two members: headers, padding, the reader's own buffer. A longer header is an
# attack on memory.
_HEADERS = 256 * 1024
_BLOCK = 16 * 1024
# Files that are read whole, and lines of the others: Python's objects take up to 25 times as much.
_MOST_AT_ONCE, _SHARE_AT_ONCE = 16 * 1024**2, 128
_BROKEN = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError, OverflowError)


def export(folder: RunFolder, target: Path) -> None:
    """Write the run's files into a new gzipped tar; UsageError when the target is there or cannot
    be written.

    No times, owners or modes go in, so that the same run gives the same bytes. Logs stay behind.
    """
    if not target.name:
        raise UsageError(f"{str(target)!r} is no file", hint="give FILE.tar.gz")
    type_of(folder).check(folder)
    fresh = fresh_of(target)
    try:
        if target.exists():
            raise UsageError(f"{target} is there already", hint="give another name")
        with fresh.open("wb") as raw:
            _pack(folder, raw)
        fresh.replace(target)
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror or error}", hint="give another FILE"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)


def import_run(
    archive: Path, root: Path, name: str = "", most_bytes: int = MOST_BYTES
) -> RunFolder:
    """Unpack a run below `root` under its own name or `name`; UsageError and nothing changed when
    it is no run.

    most_bytes: limit of the unpacked size. A 128th of it, or 16 MiB if that is more, is the limit
    of what is read at once, so that memory does not grow with the run.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        # no list of runs shows a hidden folder; it is gone afterwards unless it was renamed
        with (
            archive.open("rb") as raw,
            tempfile.TemporaryDirectory(
                prefix=".import-", dir=root, ignore_cleanup_errors=True
            ) as hidden,
        ):
            place = Path(hidden)
            inside = _unpack(raw, place, most_bytes)
            run = opened(place) or RunFolder(place)
            run_name = name or inside
            if not is_run_name(run_name):
                raise UsageError(
                    f"{run_name[:80]!a} cannot be the name of a run",
                    hint="give one of letters, digits, '.', '_' and '-': --name NEW",
                )
            _check(run, archive)
            root = place_of(root, TYPES[type_of(run).name].place)
            root.mkdir(parents=True, exist_ok=True)
            target = root / run_name
            if target.exists():
                raise UsageError(
                    f"there is a run {target.name} already", hint="give another name: --name NEW"
                )
            place.rename(target)
    except OSError as error:
        raise UsageError(
            f"{archive} cannot be imported into {root}: {error.strerror or error}",
            hint="look at the file and at the rights of the folder",
        ) from error
    return RunFolder(target, run.layout)


def _pack(folder: RunFolder, raw: IO[bytes]) -> None:
    with (
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in folder.layout.files:
            path = folder.path / name
            if path.is_file():
                with path.open("rb") as file:
                    member = tarfile.TarInfo(f"{folder.path.resolve().name}/{name}")
                    member.size = os.fstat(
                        file.fileno()
                    ).st_size  # of this one: it may be replaced meanwhile
                    tar.addfile(member, file)


class _Metered:
    """A stream that ends with an error when more is read than `left` allows."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile) -> None:
        self._stream = stream
        self.left = _HEADERS

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError("a header of it is too long")
        return data


def _unpack(raw: IO[bytes], place: Path, most_bytes: int) -> str:
    """Write the members into `place`; the name of the folder they were in."""
    folders: set[str] = set()
    left = most_bytes
    try:
        with gzip.GzipFile(fileobj=raw, mode="rb") as packed:
            metered = _Metered(packed)
            # read as a stream, strictly forwards: nothing is skipped and nothing is looked for
            with tarfile.open(fileobj=metered, mode="r|", errorlevel=2) as tar:  # type: ignore[call-overload]
                for member in tar:
                    folder, name = _placed(member)
                    folders.add(folder)
                    if (place / name).exists() or len(folders) > 1:
                        raise InvalidValue(
                            f"the archive holds a second {name}", hint="one archive holds one run"
                        )
                    left -= member.size
                    if left < 0:
                        raise UsageError(
                            f"the archive unpacks to more than {most_bytes} bytes",
                            hint="if you trust it, raise --max-size",
                        )
                    metered.left = _HEADERS + member.size
                    _copy(
                        tar, member, place / name, max(_MOST_AT_ONCE, most_bytes // _SHARE_AT_ONCE)
                    )
                    metered.left = _HEADERS
            # to the end, where the checksum is
            while metered.read(_BLOCK):
                pass
    except _BROKEN as error:
        raise UsageError(
            f"this is no archive of a run: {error}", hint="see: scaletest runs export"
        ) from error
    return next(iter(folders), "")


def _placed(member: tarfile.TarInfo) -> tuple[str, str]:
    """Folder and file name of a member; InvalidValue unless it is a plain file of a run."""
    path = PurePosixPath(member.name)
    plain = (
        member.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
        and not member.issparse()
        and member.size >= 0
    )
    if (
        not plain
        or path.name not in _known()
        or len(path.parts) > 2
        or path.is_absolute()
        or ".." in path.parts
    ):
        shown = ascii(member.name[:80])
        raise InvalidValue(
            f"the archive holds {shown}, which is no file of a run",
            hint="see: scaletest runs export",
        )
    return str(path.parent) if len(path.parts) == 2 else "", path.name


@cache
def _known() -> frozenset[str]:
    """The names of all files of all run types."""
    layouts = (run_type(name).layout for name in TYPES)
    return frozenset(itertools.chain.from_iterable(layout.files for layout in layouts))


def _copy(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, most_at_once: int) -> None:
    """Write a member; UsageError for over `most_at_once` bytes that must be read together."""
    lines = target.suffix == ".jsonl" and target.name != STEPS
    source, together = tar.extractfile(member), 0
    with open_private(target, "xb") as file:
        while source is not None and (block := source.read(_BLOCK)):
            file.write(block)
            last_end = block.rfind(b"\n") if lines else -1
            together = len(block) - last_end - 1 if last_end >= 0 else together + len(block)
            if together > most_at_once:
                unit = f"a line of {target.name}" if lines else target.name
                raise UsageError(
                    f"{unit} in the archive has more than {most_at_once} bytes",
                    hint="if you trust it, raise --max-size",
                )
    if target.stat().st_size != member.size:
        raise EOFError("it ends too early")


def _check(folder: RunFolder, archive: Path) -> None:
    """Whether it can be loaded; the error says which file of it is wrong."""
    try:
        type_of(folder).check(folder)
    except UsageError as error:
        what = str(error).replace(f" of run {folder.name}", "").replace(str(folder.path), "it")
        raise UsageError(f"{archive} is no run that can be read: {what}") from error
