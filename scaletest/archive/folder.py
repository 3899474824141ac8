"""A run's folder: plan.json, environment.json, steps.jsonl, records.jsonl, samples.jsonl,
result.json.

Records are on disk before the line in steps.jsonl that says their step is complete, so a reader, or
a run that goes on after it was killed, knows which records belong to a whole step. Small files are
replaced whole or not at all.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from scaletest.archive.environment import environment
from scaletest.archive.private import make_folder, open_private
from scaletest.kinds.plan import KIND as BENCHMARK
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.model import Measurement, NodeSample, Plan, Record, wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.lifecycle_plan import KIND as LIFECYCLE
from scaletest.model.saturation import KIND as SATURATION
from scaletest.model.saturation import SaturationPlan

PLAN, ENVIRONMENT, STEPS, RECORDS, SAMPLES, RESULT = (
    "plan.json",
    "environment.json",
    "steps.jsonl",
    "records.jsonl",
    "samples.jsonl",
    "result.json",
)
# What makes up a run. Steps come before records: of a run that is still measured, whoever copies
# the files in this order has the records of every step that is listed.
FILES = (PLAN, ENVIRONMENT, STEPS, RECORDS, SAMPLES, RESULT)
LOCK, LOG, LOGS = ".lock", "workers.log", "logs"
VALIDATION = "validation"
# the commands that show runs of other kinds
_SHOWN_BY = {BENCHMARK: "bench show", SATURATION: "report", LIFECYCLE: "report"}


class AnyPlan(Protocol):
    """What a run was to do, whatever its kind."""

    @property
    def workload(self) -> str:
        """What is measured, in words."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that are known before."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `kind` when it is no validation."""


def default_root(environment: Mapping[str, str]) -> Path:
    """Where runs are kept: $XDG_DATA_HOME/scaletest/runs, else ~/.local/share/scaletest/runs."""
    base = environment.get("XDG_DATA_HOME", "")
    try:
        return (Path(base) if base else Path.home() / ".local" / "share") / "scaletest" / "runs"
    except RuntimeError as error:
        raise UsageError(
            "this user has no home directory to keep runs in", hint="give --run-dir DIR"
        ) from error


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as it lies on disk. records: of complete steps, by (workers, repeat). result: {} when
    there is none.

    background: records of the other queues, of complete steps as well. samples: of the nodes, in
    the order in which they came; none where nobody sampled. damaged: why samples are missing, ""
    when none are.
    """

    plan: Plan
    environment: dict[str, Any]
    measurements: list[Measurement]
    records: dict[tuple[int, int], list[Record]]
    background: list[Record]
    result: dict[str, Any]
    samples: list[NodeSample] = field(default_factory=list)
    damaged: str = ""


class RunFolder:
    """One run on disk. plan_file: marks its folder. files: of the run. locks: of its writers."""

    plan_file: str = PLAN
    files: tuple[str, ...] = FILES
    locks: tuple[str, ...] = (LOCK,)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Create an empty folder that only its owner may enter; UsageError if it has content."""
        try:
            make_folder(path)
            if any(path.iterdir()):
                raise UsageError(
                    f"the run folder {path} is not empty", hint="give another --run-dir"
                )
        except OSError as error:
            raise UsageError(
                f"the run folder {path} cannot be made: {error.strerror}",
                hint="give another --run-dir",
            ) from error
        return cls(path)

    @property
    def name(self) -> str:
        """The run's name."""
        return self.path.name

    @property
    def began(self) -> str:
        """When it was made, ISO 8601 in UTC; "" when its environment.json cannot be read."""
        try:
            return str(self._read(ENVIRONMENT).get("began", ""))
        except (InvalidValue, OSError):
            return ""

    @property
    def kind(self) -> str:
        """What kind of run it is: validation, or what its plan says."""
        with self._trouble("read"):
            return str(self._read(PLAN).get("kind", VALIDATION))

    @property
    def log(self) -> Path:
        """Where local workers write."""
        return self.path / LOG

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        """Turn errors of files into UsageError: a full disk, a missing or read-only folder."""
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"run {self.name} cannot be {what}: {error.strerror or error}",
                hint=f"look into {self.path}",
            ) from error
        except InvalidValue as error:
            raise InvalidValue(
                error.message, hint=error.hint or f"look into {self.path}"
            ) from error

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What is wrong with a file of it, as a UsageError that names the run."""
        try:
            with self._trouble("read"):
                yield
        except InvalidValue as error:
            raise UsageError(
                f"run {self.name} cannot be read: {error.message}", hint=f"look into {self.path}"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run while it is measured: no other process resumes or deletes it."""
        with ExitStack() as held:
            for name in self.locks:
                with self._trouble("locked"):
                    file = held.enter_context(open_private(self.path / name, "a"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise UsageError(
                        f"run {self.name} is in use by another process",
                        hint="wait until it has ended, or end it",
                    ) from error
            yield

    @property
    def in_use(self) -> bool:
        """Whether somebody holds the run just now."""
        return any(self._held(name) for name in self.locks)

    def _held(self, lock: str) -> bool:
        try:
            with (self.path / lock).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def remove(self) -> bool:
        """Delete the run's files, and the folder unless others lie in it; whether the folder is
        gone.

        UsageError when the run is held by somebody, or cannot be deleted.
        """
        try:
            with self.locked():
                # the plan goes last: a rest can still be found and deleted again
                for name in self._own():
                    (self.path / name).with_suffix(".new").unlink(missing_ok=True)
                    (self.path / f".{name}.new").unlink(missing_ok=True)
                    (self.path / name).unlink(missing_ok=True)
                shutil.rmtree(self.path / LOGS, ignore_errors=True)
            if any(self.path.iterdir()):
                return False
            self.path.rmdir()
        except OSError as error:
            raise UsageError(f"run {self.name} cannot be deleted: {error.strerror}") from error
        return True

    def _own(self) -> tuple[str, ...]:
        """The names of all its files in the order in which they are deleted."""
        return (*reversed(FILES), LOG, *self.locks)

    def begin(self, plan: AnyPlan, command_line: Sequence[str]) -> None:
        """Write plan and environment."""
        self._write(PLAN, plan.to_dict())
        self._write(
            ENVIRONMENT,
            environment(command_line, plan.device_glob if isinstance(plan, Plan) else ""),
        )

    def add(self, measurement: Measurement, records: Sequence[Record]) -> None:
        """Append a complete step and its records, and make sure they are on disk in this order."""
        with self._trouble("written"):
            self._append(RECORDS, (record.to_json() for record in records))
            self._append(STEPS, [measurement.to_json()])

    def add_samples(self, samples: Sequence[NodeSample]) -> None:
        """Append samples of nodes. They need not be on disk at once: a run can be judged without
        the last of them.
        """
        with (
            self._trouble("written"),
            open_private(self.path / SAMPLES, "a", encoding="utf-8") as file,
        ):
            file.writelines(sample.to_json() + "\n" for sample in samples)

    def replace_samples(self, samples: Sequence[NodeSample]) -> None:
        """Keep these samples of nodes and no others."""
        with self._trouble("written"):
            self._replace(SAMPLES, (sample.to_json() for sample in samples))

    def result(self, data: Mapping[str, Any]) -> None:
        """Write the result so far."""
        self._write(RESULT, data)

    def summary(self) -> tuple[AnyPlan, dict[str, Any], dict[str, Any]]:
        """Plan, environment and result, without the records; UsageError when this is no run."""
        if not (self.path / self.plan_file).is_file():
            raise UsageError(f"{self.path} holds no run", hint="see: scaletest runs list")
        with self._trouble("read"):
            return self._plan(), self._read(ENVIRONMENT), self._read(RESULT)

    def _plan(self) -> AnyPlan:
        row = self._read(PLAN)
        kind = row.get("kind")
        if kind == BENCHMARK:
            return BenchmarkPlan.from_dict(row)
        return SaturationPlan.from_dict(row) if kind == SATURATION else Plan.from_dict(row)

    def load(self) -> Stored:
        """Read everything; UsageError when this is no run, or no validation."""
        plan, environment, result = self.summary()
        if not isinstance(plan, Plan):
            raise UsageError(
                f"run {self.name} is no validation: it is a {self.kind} run",
                hint=f"see: scaletest {_SHOWN_BY[self.kind]} {self.name}",
            )
        measurements = self._measurements()
        complete = {one.key for one in measurements}
        records: dict[tuple[int, int], list[Record]] = defaultdict(list)
        background: list[Record] = []
        for record in self._records():
            if (record.step, record.repeat) in complete:
                own = record.queue == plan.queue
                (records[record.step, record.repeat] if own else background).append(record)
        samples, damaged = self._readable_samples()
        return Stored(
            plan, environment, measurements, dict(records), background, result, samples, damaged
        )

    def _readable_samples(self) -> tuple[list[NodeSample], str]:
        """The samples up to the first that cannot be read, and why that one cannot; "" when all
        can.

        A run is judged without them: they only say why it went as it did.
        """
        samples: list[NodeSample] = []
        try:
            for sample in self._node_samples():
                samples.append(sample)
        except (UsageError, InvalidValue) as error:
            return samples, f"{SAMPLES} of {self.name}: {error.message}"
        return samples, ""

    def check(self) -> None:
        """UsageError or InvalidValue unless the run is readable; holds one record at a time."""
        self.summary()
        self._measurements()
        for _ in itertools.chain(self._records(), self._node_samples()):
            pass

    def _measurements(self) -> list[Measurement]:
        with self._trouble("read"):
            measurements = [Measurement.from_json(line) for line in self._lines(STEPS)]
        if len({measurement.key for measurement in measurements}) < len(measurements):
            raise InvalidValue(f"{STEPS} of run {self.name} holds a step twice")
        return measurements

    def _records(self) -> Iterator[Record]:
        with self._trouble("read"):
            for line in self._lines(RECORDS):
                yield Record.from_json(line)

    def _node_samples(self) -> Iterator[NodeSample]:
        with self._trouble("read"):
            for line in self._lines(SAMPLES):
                yield NodeSample.from_dict(wire.load(line, f"{SAMPLES} of run {self.name}"))

    def forget_unfinished(self, stored: Stored) -> None:
        """Rewrite steps, records and samples to `stored`; nothing of a cut line remains."""
        whole = {one.key for one in stored.measurements}
        rows = itertools.chain(*stored.records.values(), stored.background)
        with self._trouble("written"):
            self._replace(
                RECORDS, (row.to_json() for row in rows if (row.step, row.repeat) in whole)
            )
            self._replace(STEPS, (one.to_json() for one in stored.measurements))
            if (self.path / SAMPLES).exists():
                self._replace(SAMPLES, (sample.to_json() for sample in stored.samples))

    def _lines(self, name: str) -> Iterator[str]:
        """Whole lines; a last one without its end was being written when the run was killed."""
        try:
            with (self.path / name).open(encoding="utf-8") as file:
                yield from (line for line in file if line.endswith("\n") and line.strip())
        except FileNotFoundError:
            return
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{name} of run {self.name} is not text") from error

    def _append(self, name: str, lines: Iterator[str] | Sequence[str]) -> None:
        with open_private(self.path / name, "a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())

    def _replace(self, name: str, lines: Iterator[str]) -> None:
        path = self.path / name
        fresh = path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        with open_private(fresh, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            return wire.load(
                (self.path / name).read_text(encoding="utf-8"), f"{name} of run {self.name}"
            )
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{name} of run {self.name} is not text") from error

    def _write(self, name: str, data: Mapping[str, Any]) -> None:
        """Whole or not at all: a reader never sees half a file."""
        with self._trouble("written"):
            self._replace(name, iter([json.dumps(data, indent=2, allow_nan=False)]))
