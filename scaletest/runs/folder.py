"""The folder of a run, which every run type writes in one way.

Small files are replaced whole or not at all, lines are appended and on disk before the next file is
written, and whoever writes holds a lock. All of it is for its owner's eyes.
"""

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, Protocol, Self, TypeVar

from scaletest.model import wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.private_files import (
    make_folder,
    open_private,
    open_regular,
    path_of_new_version,
    replace_private,
)

PLAN = "plan.json"
ENVIRONMENT = "environment.json"
STEPS = "steps.jsonl"
RECORDS = "records.jsonl"
SAMPLES = "samples.jsonl"
RESULT = "result.json"
# A file of what the workers wrote, and a folder of such files.
LOG = "workers.log"
LOGS = "logs"
# LOCK is held by whoever measures. Of a lifecycle, whoever submits holds it, and whoever samples
# holds SAMPLER_LOCK: these may be two processes.
LOCK = ".lock"
SAMPLER_LOCK = ".sampler.lock"
LOCKS = (LOCK, SAMPLER_LOCK)
# The progress of a run that is being measured; see model/run_progress.py.
PROGRESS = "progress.json"
# It may change while a run is measured.
LABELS = "labels.json"
# In a file that is read whole, and in a line of the others: the objects that Python makes of it
# take up to 25 times as much.
MOST_CHARACTERS = 16 * 1024**2
VALIDATION = "validation"
LIFECYCLE = "lifecycle"
# Files of lifecycles alone.
SUBMISSIONS = "submissions.jsonl"
# As the Run:ai scale test tool writes them. A folder without a plan that has the second is a run of
# that tool.
SUBMITTED = "submitted.json"
SAMPLED = "sampled.json"
# The files that make up a run of any type. Steps come before records: of a run that is still
# measured, whoever copies the files in this order has the records of every step that is listed.
FILES = (PLAN, ENVIRONMENT, STEPS, SUBMISSIONS, RECORDS, SAMPLES, RESULT, LABELS)
PlanT = TypeVar("PlanT", bound="AnyPlan")


class AnyPlan(Protocol):
    """What plans of all run types have in common: how they are written, read and named."""

    @property
    def workload(self) -> str:
        """A short text about what is measured."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that are known before."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the `kind` of any run but a validation."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; InvalidValue for anything else."""


class RunFolder:
    """The folder of one run of any type: its files, its locks and its labels."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make a new, empty folder that only its owner may enter.

        UsageError when there is something in it.
        """
        folder = cls(path)
        folder.make(empty=True)
        return folder

    def make(self, *, empty: bool = False) -> None:
        """Make the folder, and those above it.

        UsageError when that cannot be; with `empty` also when there is something in it.
        """
        try:
            make_folder(self.path)
            if empty and any(self.path.iterdir()):
                raise UsageError(
                    f"the run folder {self.path} is not empty", hint="give another <run_dir>"
                )
        except OSError as error:
            raise UsageError(
                f"the run folder {self.path} cannot be made: {error.strerror}",
                hint="choose a folder that you may write to (XDG_DATA_HOME, for all runs)",
            ) from error

    @property
    def name(self) -> str:
        """The name of the folder, by which commands find the run."""
        return self.path.name

    @property
    def exists(self) -> bool:
        """Whether there is a run, which has a plan."""
        return (self.path / PLAN).is_file()

    @property
    def began(self) -> str:
        """When it was made, ISO 8601 in UTC; "" when its environment.json cannot be read."""
        return str(self._read_if_sound(ENVIRONMENT).get("began", ""))

    @property
    def kind(self) -> str:
        """The name of its run type."""
        if not self.exists and (self.path / SAMPLED).is_file():
            return LIFECYCLE
        return str(self.read(PLAN).get("kind", VALIDATION))

    @property
    def stored_verdict(self) -> str:
        """The verdict that it got when it was measured; "" where none is stored."""
        verdict = self._read_if_sound(RESULT).get("verdict")
        return str(verdict.get("kind") or "") if isinstance(verdict, dict) else ""

    @contextmanager
    def trouble(self, verb: str) -> Iterator[None]:
        """Raise a UsageError for files that cannot be used, as on a full disk.

        verb: as the message has it, such as "read" in "cannot be read".
        """
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"run {self.name} cannot be {verb}: {error.strerror or error}",
                hint=f"free some space, or check the permissions of {self.path}",
            ) from error

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Raise a UsageError that names the run for any fault of its files."""
        try:
            with self.trouble("read"):
                yield
        except InvalidValue as error:
            raise UsageError(
                f"run {self.name} cannot be read: {error.message}", hint=f"look into {self.path}"
            ) from error

    @contextmanager
    def locked(self, *locks: str) -> Iterator[None]:
        """Hold the run, or these locks of it, while it is measured.

        Nobody else goes on with it or deletes it meanwhile.
        """
        with ExitStack() as held_locks:
            for name in locks or (LOCK,):
                with self.trouble("locked"):
                    file = held_locks.enter_context(open_private(self.path / name, "a"))
                try:
                    _lock_alone(file)
                except OSError as error:
                    raise UsageError(
                        f"run {self.name} is in use by another process",
                        hint="wait until it has ended, or end it",
                    ) from error
            yield

    @property
    def in_use(self) -> bool:
        """Whether somebody holds the run just now."""
        for lock in LOCKS:
            try:
                # thousands of runs are listed: a Path costs more than the call
                with open_regular(f"{self.path}/{lock}", "rb", buffering=0) as file:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:  # nobody ever held it
                continue
        return False

    def remove(self) -> bool:
        """Delete the run's files, and the folder unless others lie in it.

        Return whether the folder is gone. UsageError when the run is held by somebody, or cannot be
        deleted.
        """
        try:
            with self.locked(*LOCKS):
                # what a lifecycle makes of its files is deleted with them; a file of such a name in
                # a run of another type belongs to its user
                derived = [LOG, PROGRESS]
                # a damaged plan does not tell its type; the run is deleted all the same
                with suppress(UsageError):
                    if self.kind == LIFECYCLE:
                        pictures = ("general.png", "detailed.png")
                        derived += (SUBMITTED, SAMPLED, "times.csv", "report.html", *pictures)
                # the plan goes last of FILES: what an interrupted deletion leaves is still found as
                # a run, and can be deleted again
                for name in (*derived, *reversed(FILES), *LOCKS):
                    for path in (self.path / name, path_of_new_version(self.path / name)):
                        path.unlink(missing_ok=True)
                shutil.rmtree(self.path / LOGS, ignore_errors=True)
            if any(self.path.iterdir()):
                return False
            self.path.rmdir()
        except OSError as error:
            raise UsageError(f"run {self.name} cannot be deleted: {error.strerror}") from error
        return True

    def begin(
        self, plan: AnyPlan, environment: Mapping[str, Any], labels: Labels = UNLABELLED
    ) -> None:
        """Write environment, labels, and at last the plan: with it the folder holds a run."""
        self.write(ENVIRONMENT, environment)
        if labels != UNLABELLED:
            self.set_labels(labels)
        self.write(PLAN, plan.to_dict())

    @property
    def labels(self) -> Labels:
        """The labels of the run; UNLABELLED where its file holds none."""
        with suppress(InvalidValue, UsageError):
            return Labels.from_dict(self.read(LABELS))
        return UNLABELLED

    def set_labels(self, labels: Labels) -> None:
        """Replace the labels, also while the run is measured."""
        self.write(LABELS, labels.to_dict())

    def read(self, name: str) -> dict[str, Any]:
        """Read a file of JSON, {} when it is not there.

        UsageError or InvalidValue when it cannot be read.
        """
        with self.trouble("read"):
            try:
                content = self.text(name)
            except FileNotFoundError:
                return {}
            return wire.load(content, f"{name} of run {self.name}")

    def _read_if_sound(self, name: str) -> dict[str, Any]:
        """Read a file of JSON, {} when it cannot be read."""
        with suppress(InvalidValue, UsageError):
            return self.read(name)
        return {}

    def text(self, name: str, errors: str = "strict") -> str:
        """Read all that a short file holds. errors: as `open` has them.

        InvalidValue for one that is too long or no text, OSError for one that cannot be read.
        """
        try:
            with open_regular(self.path / name, encoding="utf-8", errors=errors) as file:
                return self._check_length(name, file.read(MOST_CHARACTERS + 1))
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{name} of run {self.name} is not text") from error

    def _check_length(self, name: str, text: str) -> str:
        """Return the text of a file, or a line of it; InvalidValue when it is too long."""
        if len(text) > MOST_CHARACTERS:
            part = "a line of it" if name.endswith(".jsonl") else "it"
            raise InvalidValue(
                f"{name} of run {self.name} is damaged: {part} has more than {MOST_CHARACTERS}"
                " characters"
            )
        return text

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write a file of JSON whole or not at all."""
        self.replace(name, [json.dumps(document, indent=2, allow_nan=False)])

    def size(self, name: str) -> int:
        """Return the bytes of a file; 0 when it is not there."""
        try:
            return (self.path / name).stat().st_size
        except OSError:
            return 0

    def lines(self, name: str) -> Iterator[str]:
        """Yield the whole lines of a file; none when it is not there."""
        with self.trouble("read"):
            try:
                with open_regular(self.path / name, encoding="utf-8") as file:
                    for line in iter(partial(file.readline, MOST_CHARACTERS + 1), ""):
                        # one without its end was being written when the run was killed
                        if self._check_length(name, line).endswith("\n") and line.strip():
                            yield line
            except FileNotFoundError:
                return
            except UnicodeDecodeError as error:
                raise InvalidValue(f"{name} of run {self.name} is not text") from error

    def append(self, name: str, lines: Iterable[str], *, durable: bool = True) -> None:
        """Append lines. durable: return when they are on disk."""
        with (
            self.trouble("written"),
            open_private(self.path / name, "a", encoding="utf-8") as file,
        ):
            file.writelines(line + "\n" for line in lines)
            if durable:
                file.flush()
                os.fsync(file.fileno())

    def replace(self, name: str, lines: Iterable[str], *, durable: bool = True) -> None:
        """Write a file of these lines; a reader sees the old one or the new one, never a part."""
        self.replace_whole(name, ((line + "\n").encode() for line in lines), durable=durable)

    def replace_whole(self, name: str, parts: Iterable[bytes], *, durable: bool = True) -> None:
        """Write a file of these parts; a reader sees the old one or the new one, never a part."""
        with self.trouble("written"):
            replace_private(self.path / name, parts, durable=durable)


def _lock_alone(file: IO[Any]) -> None:
    """Hold the lock of a file alone; OSError when another process holds it alone."""
    # `in_use` of another process shares it for a moment, which is no reason to give up
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def elapsed_s(result: Mapping[str, Any]) -> float:
    """Return the seconds that a run took, by its result; 0 where they are unknown."""
    recorded = result.get("elapsed_s")
    if isinstance(recorded, int | float) and 0 <= recorded <= sys.float_info.max:
        return float(recorded)
    return 0.0


class TypedFolder(RunFolder, Generic[PlanT]):
    """The folder of a run of one type, whose plan and lines it reads."""

    run_type: ClassVar[str]  # its name
    plan_type: type[PlanT]
    readers: ClassVar[Mapping[str, Callable[[str], Any]]]  # of a line, by the file that has it
    expected: ClassVar[str] = "run"  # as the error for a folder without a run calls it
    remedy: ClassVar[str] = "see: scaletest runs list"  # how to find one

    def plan(self) -> PlanT:
        """Read the plan; UsageError when there is no run, or one of another type."""
        if not self.exists:
            raise UsageError(f"{self.path} holds no {self.expected}", hint=self.remedy)
        if self.kind != self.run_type:
            raise UsageError(
                f"run {self.name} is not a {self.run_type} run: it is a {self.kind} run",
                hint=f"see: scaletest report {self.name}",
            )
        return self.plan_type.from_dict(self.read(PLAN))

    def forget_empty(self) -> None:
        """Delete a run of which nothing is known: its first call failed, or no agent came."""
        if not (self.path / STEPS).exists() and not (self.path / RESULT).exists():
            with suppress(UsageError):
                self.remove()

    def rows(self, name: str) -> Iterator[Any]:
        """Yield the values of the whole lines of a file, each read when it is asked for."""
        for line in self.lines(name):
            try:
                yield self.readers[name](line)
            except InvalidValue as error:
                raise InvalidValue(f"{name}: {error.message}", hint=error.hint) from error

    def steps(self) -> list[Any]:
        """Read the steps that are complete; InvalidValue when one is listed twice."""
        steps = list(self.rows(STEPS))
        if len({step.key for step in steps}) < len(steps):
            raise InvalidValue(f"{STEPS} of run {self.name} contains a step twice")
        return steps
