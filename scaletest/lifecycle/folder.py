"""The folder of a lifecycle run.

    plan.json           the plan, template and all     written once
    environment.json    machine, versions, command     written once, as in the archive of
                                                       validations
    submissions.jsonl   one line for each submission   appended as answers come, so that an
                                                       interrupted submit resumes
    records.jsonl       workloads and their pods       replaced as a whole by each sample
    submitted.json, sampled.json                       as the Run:ai scale test tool writes them

Submitting and sampling may be different processes that work at the same time: each file has one
writer, under a lock of its own.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, ClassVar

from scaletest.lifecycle import runai
from scaletest.lifecycle.judging.timeline import timeline_of
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import LifecycleObject, Submission, read_line
from scaletest.runs.folder import (
    LIFECYCLE,
    RECORDS,
    SAMPLED,
    SUBMISSIONS,
    SUBMITTED,
    TypedFolder,
)
from scaletest.runs.private_files import open_private


class LifecycleFolder(TypedFolder[LifecyclePlan]):
    """The submissions and the sampled workloads of one lifecycle on disk."""

    option = "--output-dir"
    run_type = LIFECYCLE
    plan_type = LifecyclePlan
    readers: ClassVar = {SUBMISSIONS: Submission.from_json}
    expected = "lifecycle run"
    remedy = "give the <output_dir> of: scaletest lifecycle submit"

    @contextmanager
    def open_submissions(self) -> Iterator[IO[str]]:
        """Open submissions.jsonl to append to it; it is on disk at the end."""
        with self.trouble("written"):
            path = self.path / SUBMISSIONS
            if path.exists():
                # a process that was killed may have left a part of a line
                os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
            file = open_private(path, "a", encoding="utf-8", buffering=1)
        with file:
            try:
                yield file
            finally:
                os.fsync(file.fileno())

    def submissions(self) -> list[Submission]:
        """Return what was submitted so far; the last line about a name counts.

        A folder of the Run:ai scale test tool has submitted.json alone.
        """
        if not (self.path / SUBMISSIONS).exists() and (self.path / SUBMITTED).exists():
            return runai.read_submitted(self._text(SUBMITTED))
        return list({row.name: row for row in self.rows(SUBMISSIONS)}.values())

    def workloads(self) -> dict[str, LifecycleObject]:
        """Return the workloads that were sampled so far, by name.

        A folder of the Run:ai scale test tool has sampled.json alone.
        """
        if not (self.path / RECORDS).exists() and (self.path / SAMPLED).exists():
            return {row.name: row for row in runai.read_sampled(self._text(SAMPLED))}
        workloads: dict[str, LifecycleObject] = {}
        for line in self.lines(RECORDS):
            read_line(line, workloads)
        return workloads

    def keep(self, workloads: Mapping[str, LifecycleObject], *, project: str) -> None:
        """Write what was sampled, in our form and in that of the Run:ai scale test tool."""
        self.replace(RECORDS, chain.from_iterable(row.lines() for row in workloads.values()))
        self.put(SAMPLED, runai.write_sampled(map(timeline_of, workloads.values()), project))

    def keep_submitted(self) -> None:
        """Write submitted.json again, with all submissions so far."""
        self.put(SUBMITTED, runai.write_submitted(self.submissions()))

    def put(self, name: str, content: str | bytes) -> Path:
        """Write a file that is made of the others, whole or not at all, and return its path."""
        self.replace_whole(name, [content.encode() if isinstance(content, str) else content])
        return self.path / name

    def _text(self, name: str) -> str:
        with self.trouble("read"):
            return self.text(name, errors="replace")
