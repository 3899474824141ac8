"""Runs as folders and as files: what goes out comes in again, and nothing hostile does."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
import tarfile
import weakref
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.analysis.evaluation import evaluate
from scaletest.analysis.steps import summarise
from scaletest.archive.environment import environment
from scaletest.model import NodeSample, Plan, Record
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError
from scaletest.model.labels import Labels
from scaletest.runs.folder import COMMON, ENVIRONMENT, RECORDS, RESULT, STEPS, RunFolder
from scaletest.runs.places import find, runs
from scaletest.runs.transfer import export, import_run
from scaletest.validation.folder import StoredValidation, ValidationFolder
from tests.unit.made import measured

# A file of 4 GB without a byte of data, as GNU tar writes it.
SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "first/plan.json"}
SPARSE |= {"GNU.sparse.realsize": "4000000000"}
Members = list[tuple[tarfile.TarInfo, bytes]]


def make(path: Path, cycles: dict[int, float] | None = None, **measuring: Any) -> ValidationFolder:
    """A run on disk as a validation leaves it."""
    cycles = cycles or {1: 0.1, 2: 0.1}
    plan = Plan(
        limit=max(cycles), seconds=cycles[1], queue="q", repeats=measuring.get("repeats", 1)
    )
    folder = ValidationFolder.create(path)
    folder.begin(plan, environment(["scaletest", "validate"]), Labels(tags=("example",)))
    measurements, records = measured(cycles, **measuring)
    for measurement in measurements:
        folder.add(measurement, records[measurement.key])
    folder.add_samples([sample(at_s) for at_s in (1.0, 2.0)])
    folder.write(
        RESULT, evaluate(plan, measurements, records, random.Random(1), elapsed_s=3.5).to_dict()
    )
    return folder


def sample(at_s: float) -> NodeSample:
    return NodeSample(
        "n",
        "w",
        at_s,
        1.0,
        {"cpu": {"user": 1.5}, "device:0": {"energy_j": 7.0}},
        {"device:0": "NVML"},
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A run as a file."""
    place = tmp_path_factory.mktemp("packed")
    export(make(place / "first", count=5), place / "run.tar.gz")
    return (place / "run.tar.gz").read_bytes()


def members(data: bytes) -> Members:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(member, (tar.extractfile(member) or io.BytesIO()).read()) for member in tar]


def archive(rows: Members) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        for member, data in rows:
            tar.addfile(member, io.BytesIO(data))
    return raw.getvalue()


class Watched(Record):
    """A record that can be looked at from afar."""

    __slots__ = ("__weakref__",)


def loaded(folder: RunFolder) -> StoredValidation:
    return ValidationFolder(folder.path).load()


def taken(data: bytes, root: Path, name: str = "", **limits: int) -> RunFolder:
    (root / "given").write_bytes(data)
    return import_run(root / "given", root / "runs", name, **limits)


def left(root: Path) -> list[str]:
    """Everything below the runs of `root`, hidden or not."""
    return sorted(str(path.relative_to(root / "runs")) for path in (root / "runs").rglob("*"))


def test_a_run_comes_back_whole(tmp_path: Path) -> None:
    folder = make(tmp_path / "2026-a", count=5, repeats=2)
    export(folder, tmp_path / "x.tar.gz")
    again = import_run(tmp_path / "x.tar.gz", tmp_path / "runs")
    assert again.name == "2026-a"
    assert loaded(again) == folder.load()
    assert left(tmp_path) == ["2026-a", *(f"2026-a/{name}" for name in sorted(COMMON.files))]


def test_samples_are_kept_and_replaced_and_old_folders_have_none(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=5)
    folder.add_samples([sample(3.0)])
    assert [sample.at_s for sample in folder.load().samples] == [1.0, 2.0, 3.0]
    folder.replace_samples([sample(3.0)])
    assert folder.load().samples == [sample(3.0)]
    # what a killed run had begun to write is not what the next one goes on from
    with (folder.path / "samples.jsonl").open("a") as file:
        file.write('{"node": "n')
    folder.forget_unfinished(folder.load())
    folder.add_samples([sample(4.0)])
    assert folder.load().samples == [sample(3.0), sample(4.0)]
    # those before a damaged line are kept, and a run that goes on begins a new file with them
    with (folder.path / "samples.jsonl").open("a") as file:
        file.write('{"node": 7}\n')
    folder.add_samples([sample(5.0)])
    damaged = folder.load()
    assert damaged.samples == [sample(3.0), sample(4.0)] and damaged.damaged.startswith(
        "samples.jsonl of run: field 'node'"
    )
    folder.forget_unfinished(damaged)
    assert folder.load().samples == damaged.samples and not folder.load().damaged
    (folder.path / "samples.jsonl").unlink()
    folder.check()
    assert folder.load().samples == []


def test_the_same_run_gives_the_same_bytes_without_logs(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=5)
    export(folder, tmp_path / "a.tar.gz")
    # given other times, modes and files that are not the run's
    folder.log.write_text("a password")
    (folder.path / "notes").write_text("mine")
    for path in folder.path.iterdir():
        os.utime(path, (1, 1))
        path.chmod(0o600)
    export(folder, tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    names = [member.name for member, _ in members((tmp_path / "a.tar.gz").read_bytes())]
    assert names == [f"run/{name}" for name in COMMON.files]


def test_an_import_overwrites_no_existing_run(tmp_path: Path, packed: bytes) -> None:
    folder = taken(packed, tmp_path)
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UsageError, match="there already"):
        export(folder, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"
    with pytest.raises(UsageError, match="there is a run first already") as caught:
        taken(packed, tmp_path)
    assert "--name" in caught.value.hint
    assert loaded(taken(packed, tmp_path, "second")) == loaded(folder)
    with pytest.raises(UsageError, match="cannot be written"):
        export(folder, tmp_path / "nowhere" / "x")


def plain(name: str, data: bytes = b"{}", **changed: Any) -> Callable[[Members], Members]:
    """One more member."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in changed.items():
        setattr(member, field, value)
    return lambda rows: [*rows, (member, data)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (plain("../plan.json"), "no file of a run"),
        (plain("first/../../plan.json"), "no file of a run"),
        (plain("/plan.json"), "no file of a run"),
        (plain("first/sub/plan.json"), "no file of a run"),
        (plain("first/.lock"), "no file of a run"),
        (plain("first/x\x1b[31m"), "no file of a run"),
        (plain("first/plan.json"), "second plan.json"),
        (plain("other/plan.json"), "second plan.json"),
        (plain("first", b"", type=tarfile.DIRTYPE), "no file of a run"),
        (
            plain("first/plan.json", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
            "no file of a run",
        ),
        (
            plain("first/plan.json", b"", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
            "no file of a run",
        ),
        (plain("first/plan.json", b"", type=tarfile.FIFOTYPE), "no file of a run"),
        (plain("first/plan.json", b"", type=tarfile.CHRTYPE), "no file of a run"),
        (plain("first/plan.json", b"", type=tarfile.GNUTYPE_SPARSE), "no file of a run"),
        (
            plain("first/plan.json", b"0\n".ljust(512, b"\0"), pax_headers=SPARSE),
            "no file of a run",
        ),
        (lambda rows: rows[1:], "holds no run"),
        (lambda rows: [], "cannot be the name"),
        (
            lambda rows: [
                (member, data.replace(b"limit", b"LIMIT" * 99)[: member.size])
                for member, data in rows
            ],
            "that can be read",
        ),
        (
            lambda rows: [(member, data[:-9] + b"\xff" * 9) for member, data in rows],
            "that can be read",
        ),
    ],
)
def test_an_archive_that_holds_no_run_is_refused_and_leaves_no_folder(
    tmp_path: Path, packed: bytes, change: Callable[[Members], Members], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        taken(archive(change(members(packed))), tmp_path)
    assert left(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "runs"]


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("plan.json", "plan.json in"),
        ("environment.json", "environment.json in"),
        ("result.json", "result.json in"),
        ("steps.jsonl", "steps.jsonl in"),
        ("records.jsonl", "a line of records.jsonl in"),
    ],
)
def test_the_bytes_read_in_one_call_are_bounded(
    tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch, name: str, unit: str
) -> None:
    monkeypatch.setattr("scaletest.runs.transfer._MOST_AT_ONCE", 100_000)
    rows = [(member, data) for member, data in members(packed) if not member.name.endswith(name)]
    bomb = plain(f"first/{name}", b'{"a":"' + b" " * 150_000 + b'"}\n')
    with pytest.raises(
        UsageError, match=f"{unit} the archive has more than 100000 bytes"
    ) as caught:
        taken(archive(bomb(rows)), tmp_path, most_bytes=1_000_000)
    assert "--max-size" in caught.value.hint
    assert left(tmp_path) == []
    # who raises the limit may have more
    if name == "plan.json":
        assert taken(archive(bomb(rows)), tmp_path, most_bytes=128 * 200_000)


def test_many_short_lines_are_not_refused_as_one_long_line(
    tmp_path: Path, packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.runs.transfer._MOST_AT_ONCE", 100_000)
    rows = [
        (member, data)
        for member, data in members(packed)
        if not member.name.endswith("records.jsonl")
    ]
    assert taken(
        archive(plain("first/records.jsonl", b"\n" * 150_000)(rows)), tmp_path, most_bytes=1_000_000
    )


def test_an_import_keeps_at_most_one_record_in_memory(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=50)
    export(folder, tmp_path / "x.tar.gz")
    alive, most, read = 0, 0, Record.from_json

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def counted(line: str) -> Record:
        nonlocal alive, most
        record = read(line)
        watched = Watched(**{field.name: getattr(record, field.name) for field in fields(Record)})
        weakref.finalize(watched, gone)
        alive, most = alive + 1, max(most, alive + 1)
        return watched

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ValidationFolder.readers, "records.jsonl", counted)
        import_run(tmp_path / "x.tar.gz", tmp_path / "runs")
        assert most == 2  # the last one, while the next is read
        most = 0
        folder.load()
        assert most >= 50


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "LAST", "a b", "x" * 129, "-x", "ä"])
def test_bad_names_are_refused(tmp_path: Path, packed: bytes, name: str) -> None:
    rows = members(packed)
    for member, _ in rows:
        member.name = f"{name}/{member.name.split('/')[1]}" if name else member.name.split("/")[1]
    with pytest.raises(UsageError):
        taken(archive(rows), tmp_path)
    assert left(tmp_path) == []


def test_a_file_that_unpacks_to_much_is_refused_early(tmp_path: Path, packed: bytes) -> None:
    size = sum(member.size for member, _ in members(packed))
    assert loaded(taken(packed, tmp_path, "fits", most_bytes=size))
    with pytest.raises(UsageError, match="unpacks to more than") as caught:
        taken(packed, tmp_path, "other", most_bytes=size - 1)
    assert "--max-size" in caught.value.hint


def test_a_huge_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    # given an extended header of 64 MB, which the reader of tar files would hold in memory
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb") as out:
        header = tarfile.TarInfo("x")
        header.type, header.size = tarfile.XHDTYPE, 64 * 1024**2
        out.write(header.tobuf(tarfile.USTAR_FORMAT))
        out.write(bytes(header.size))
    with pytest.raises(UsageError, match="header of it is too long"):
        taken(raw.getvalue(), tmp_path)


def test_an_import_refuses_many_bytes_after_the_end_of_the_archive(
    tmp_path: Path, packed: bytes
) -> None:
    with pytest.raises(UsageError, match="header of it is too long"):
        taken(gzip.compress(gzip.decompress(packed) + bytes(64 * 1024**2)), tmp_path)
    assert left(tmp_path) == []


def test_a_cut_file_is_refused_wherever_it_is_cut(tmp_path: Path, packed: bytes) -> None:
    for length in range(0, len(packed), max(1, len(packed) // 60)):
        with pytest.raises(UsageError):
            taken(packed[:length], tmp_path)
    assert left(tmp_path) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_broken_bytes_are_an_error_for_users_and_never_another(
    tmp_path: Path, packed: bytes, data: st.DataObject
) -> None:
    # given damage within the tar, which no checksum of gzip shows
    tar = bytearray(gzip.decompress(packed))
    for _ in range(data.draw(st.integers(1, 4))):
        tar[data.draw(st.integers(0, min(len(tar) - 1, 20_000)))] = data.draw(st.integers(0, 255))
    try:
        folder = taken(gzip.compress(bytes(tar), 1), tmp_path)
    except ScaletestError as error:
        assert error.exit_code == 2
    else:
        assert folder.path.parent == tmp_path / "runs"
        stored = loaded(folder)
        assert summarise(stored.plan, stored.measurements, stored.records) is not None
        assert folder.remove()
    assert left(tmp_path) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.binary(max_size=2000).map(gzip.compress))
def test_any_bytes_are_an_error_for_users(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError):
        taken(data, tmp_path)


def test_a_run_is_found_by_name_end_of_name_path_and_as_last(tmp_path: Path) -> None:
    home = {"XDG_DATA_HOME": str(tmp_path)}
    root = tmp_path / "scaletest" / "runs"
    assert runs(root) == []
    folders = [make(root / name, count=3) for name in ("b-one", "a-two", "c-one")]
    for index, folder in enumerate(folders):
        environment = json.loads((folder.path / "environment.json").read_text())
        (folder.path / "environment.json").write_text(
            json.dumps({**environment, "began": f"2026-01-0{index + 1}"})
        )
    (root / ".import-x").mkdir()
    (root / ".import-x" / "plan.json").write_text("{}")
    (root / "empty").mkdir()
    assert [run.name for run in runs(root)] == ["b-one", "a-two", "c-one"]
    assert find("LAST", home).name == "c-one"
    assert find("two", home).name == "a-two"
    assert find(str(root / "b-one"), {}).name == "b-one"
    for wrong, problem in (
        ("one", "fits 2 runs"),
        ("typo", "there is no run"),
        ("", "there is no run"),
    ):
        with pytest.raises(UsageError, match=problem):
            find(wrong, home)


def test_a_run_in_use_is_not_deleted(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=3)
    assert not folder.in_use
    with folder.locked():
        assert folder.in_use
        with pytest.raises(UsageError, match="in use"):
            RunFolder(folder.path).remove()
    assert len(folder.load().measurements) == 2
    assert folder.remove()
    assert not folder.path.exists()


def test_deleting_leaves_what_is_not_the_runs(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=3)
    folder.log.write_text("x")
    (folder.path / "notes").write_text("mine")
    assert not folder.remove()
    assert [path.name for path in folder.path.iterdir()] == ["notes"]


def test_a_step_that_is_listed_twice_is_not_measured_twice(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=5)
    steps = folder.path / "steps.jsonl"
    steps.write_text(steps.read_text() * 2)
    with pytest.raises(InvalidValue, match="holds a step twice"):
        folder.load()


@pytest.mark.parametrize("name", (ENVIRONMENT, STEPS, RECORDS, RESULT))
def test_files_that_cannot_be_used_are_errors_of_the_user(tmp_path: Path, name: str) -> None:
    # given a folder in place of a file, when the run is read, expect a reason and no traceback
    folder = make(tmp_path / "run", count=5)
    (folder.path / name).unlink()
    (folder.path / name).mkdir()
    with pytest.raises(UsageError, match="run run cannot be read: Is a directory"):
        folder.load()


def test_a_run_whose_folder_is_gone_cannot_be_written(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", count=5)
    measurements, records = measured({1: 0.1}, count=5)
    shutil.rmtree(folder.path)
    for write in (
        lambda: folder.write(RESULT, {}),
        lambda: folder.add(measurements[0], records[1, 0]),
    ):
        with pytest.raises(UsageError, match="run run cannot be written: No such file"):
            write()
    with pytest.raises(UsageError, match="run run cannot be locked"), folder.locked():
        pass
