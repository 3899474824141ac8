"""A lifecycle run's folder.

    lifecycle.json      the plan, template and all     written once
    environment.json    machine, versions, command     written once, as in the archive of
                                                       validations
    submissions.jsonl   one line for each submission   appended as answers come, so that an
                                                       interrupted submit goes on
    records.jsonl       workloads and their pods       replaced as a whole by each sample
    sampling.json       where and how it was sampled   requests, events, memory
    submitted.json, sampled.json                       as the Run:ai scale test tool writes them

All of it is for its owner's eyes: a template may hold secrets. Submitting and sampling are
different processes that work at the same time: each file has one writer, under a lock.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from scaletest.analysis.lifecycle.phases import timeline
from scaletest.archive.environment import environment
from scaletest.archive.folder import ENVIRONMENT, RECORDS
from scaletest.archive.lifecycles import PLAN, SAMPLING, SUBMISSIONS
from scaletest.archive.private import make_folder, open_private
from scaletest.compat import runai
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.lifecycle import LifecycleObject, Submission, read_line

SUBMITTED, SAMPLED = "submitted.json", "sampled.json"


class Store:
    """The folder of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make the folder, and those above it. UsageError when that cannot be."""
        try:
            make_folder(self.path)
        except OSError as error:
            raise UsageError(
                f"the output folder {self.path} cannot be made: {error.strerror}",
                hint="give another --output-dir",
            ) from error

    @contextmanager
    def locked(self, who: str) -> Iterator[None]:
        """Be the only submitter, or sampler, of this folder."""
        with self._trouble("locked"):
            file = open_private(self.path / f".{who}.lock", "a")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UsageError(
                    f"another {who} works in {self.path}",
                    hint="wait until it has ended, or give another --output-dir",
                ) from error
            yield

    @property
    def planned(self) -> bool:
        """Whether the folder has a plan."""
        return (self.path / PLAN).is_file()

    def plan(self) -> LifecyclePlan:
        """UsageError when the folder holds no run."""
        try:
            text = (self.path / PLAN).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{self.path} holds no lifecycle run",
                hint="give the --output-dir of: scaletest lifecycle submit",
            ) from error
        return LifecyclePlan.from_dict(wire.load(text, PLAN))

    def begin(self, plan: LifecyclePlan, command_line: Sequence[str]) -> None:
        """Write down what is to be done, and where."""
        self.write(ENVIRONMENT, json.dumps(environment(command_line), indent=2))
        self._replace(PLAN, [json.dumps(plan.to_dict(), indent=2)])

    def environment(self) -> dict[str, Any]:
        """Where the run was made; {} when nobody says."""
        return (
            wire.load(self._read(ENVIRONMENT), ENVIRONMENT)
            if (self.path / ENVIRONMENT).exists()
            else {}
        )

    @contextmanager
    def submitting(self) -> Iterator[IO[str]]:
        """submissions.jsonl, to append to; a last line that was cut off is taken away first."""
        with self._trouble("written"):
            path = self.path / SUBMISSIONS
            if path.exists():
                whole = path.read_bytes().rpartition(b"\n")
                if whole[2]:
                    os.truncate(path, len(whole[0]) + len(whole[1]))
            file = open_private(path, "a", encoding="utf-8", buffering=1)
        with file:
            yield file

    def submissions(self) -> list[Submission]:
        """What was submitted so far; the last word about a name counts. From submitted.json where
        there is no other.
        """
        path = self.path / SUBMISSIONS
        if not path.exists() and (self.path / SUBMITTED).exists():
            return runai.read_submitted(self._read(SUBMITTED))
        rows = {row.name: row for row in map(Submission.from_json, self._lines(SUBMISSIONS))}
        return list(rows.values())

    def workloads(self) -> dict[str, LifecycleObject]:
        """What was sampled so far, by name. From sampled.json where there is no other."""
        if not (self.path / RECORDS).exists() and (self.path / SAMPLED).exists():
            return {one.name: one for one in runai.read_sampled(self._read(SAMPLED))}
        found: dict[str, LifecycleObject] = {}
        for line in self._lines(RECORDS):
            read_line(line, found)
        return found

    def sampling(self) -> dict[str, Any]:
        """What is known of the sampling; {} when nothing is."""
        return wire.load(self._read(SAMPLING), SAMPLING) if (self.path / SAMPLING).exists() else {}

    def keep(
        self, workloads: Mapping[str, LifecycleObject], sampling: Mapping[str, Any], *, project: str
    ) -> None:
        """Write what was sampled, in our form and in the original tool's."""
        self._replace(RECORDS, (line + "\n" for one in workloads.values() for line in one.lines()))
        self.write(SAMPLED, runai.sampled(map(timeline, workloads.values()), project))
        self.write(SAMPLING, json.dumps(sampling, indent=2, allow_nan=False))

    def keep_submitted(self) -> None:
        """Write submitted.json anew."""
        self.write(SUBMITTED, runai.submitted(self.submissions()))

    def write(self, name: str, text: str) -> Path:
        """Whole or not at all: a reader never sees half a file."""
        self._replace(name, [text])
        return self.path / name

    def _replace(self, name: str, parts: Iterable[str]) -> None:
        with self._trouble("written"):
            fresh = self.path / f".{name}.new"
            fresh.unlink(missing_ok=True)
            with open_private(fresh, "x", encoding="utf-8", newline="") as file:
                file.writelines(parts)
            fresh.replace(self.path / name)

    def _lines(self, name: str) -> Iterator[str]:
        """Whole lines; a last one without its end was being written when its writer was killed."""
        try:
            with (self.path / name).open(encoding="utf-8") as file:
                yield from (line for line in file if line.endswith("\n") and line.strip())
        except FileNotFoundError:
            return
        except UnicodeDecodeError as error:
            raise InvalidValue(f"{name} in {self.path} is not text") from error

    def _read(self, name: str) -> str:
        with self._trouble("read"):
            return (self.path / name).read_text("utf-8", errors="replace")

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"the run in {self.path} cannot be {what}: {error.strerror or error}",
                hint="look at the folder",
            ) from error
