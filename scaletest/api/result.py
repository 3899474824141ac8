"""A run as Python code sees it: verdict, numbers, records and report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from scaletest.analysis.causes import Causes
from scaletest.analysis.comparison import Measure
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.growth import DescribedLaw
from scaletest.analysis.steps import Step
from scaletest.model.errors import NotPassed, UsageError, suggestion
from scaletest.model.record import Record
from scaletest.model.verdict import Verdict, VerdictKind
from scaletest.render.contents import Report, ThresholdLine
from scaletest.report import formats
from scaletest.report.formats import html
from scaletest.report.suffixes import form_of
from scaletest.runs import places, registry
from scaletest.runs.folder import RECORDS, RunFolder
from scaletest.validation.folder import ValidationFolder


class Result:
    """A run of any type that lies on disk, judged.

    `steps`, `law`, `causes` and `records` are those of a validation; other runs have none, and
    their numbers are in `measures`.

        result = scaletest.load_run("LAST")
        assert result.verdict.kind == "PASS", result.verdict.reason
    """

    def __init__(self, folder: RunFolder) -> None:
        """UsageError when the run cannot be read."""
        self._folder = folder
        self._type = registry.type_of(folder)
        self._judged: Any = registry.judge(folder)

    @cached_property
    def _report(self) -> Report:
        return registry.report_of(self._folder, self._judged)

    @property
    def _validation(self) -> Evaluation | None:
        judged = self._judged
        return judged.result if self.run_type == ValidationFolder.run_type else None

    @property
    def name(self) -> str:
        """The name of the run, by which commands and `load_run` find it."""
        return self._folder.name

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._folder.path

    @property
    def run_type(self) -> str:
        """validation, saturation, lifecycle or benchmark."""
        return self._type.name

    @property
    def plan(self) -> Mapping[str, Any]:
        """What was asked for, as plan.json has it."""
        return self._folder.read(self._folder.layout.plan)

    @property
    def verdict(self) -> Verdict:
        """PASS, FAIL or INVALID, with the reason and what to do; RUNNING while it is measured."""
        verdict: Verdict = self._judged.verdict
        return verdict

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of a validation, by number of workers."""
        return self._validation.steps if self._validation else ()

    @property
    def law(self) -> DescribedLaw | None:
        """The law by which throughput grows, with its intervals; None where steps are too few."""
        return self._validation.growth.law if self._validation else None

    @property
    def causes(self) -> Causes | None:
        """What keeps throughput from growing; None where no requests were sampled."""
        return self._validation.causes if self._validation else None

    @property
    def measures(self) -> Sequence[Measure]:
        """All numbers of the run, with their intervals, units and places."""
        return self._type.measures(self._judged)

    @property
    def thresholds(self) -> Sequence[ThresholdLine]:
        """Each threshold of the plan, with its verdict and what was measured."""
        return self._report.head.thresholds

    @property
    def warnings(self) -> Sequence[str]:
        """Remarks that do not change the verdict."""
        return self._report.head.warnings

    @property
    def records(self) -> Iterator[Record]:
        """The requests of a validation, each read from disk when it is asked for.

        UsageError for a file that cannot be read.
        """
        if self._validation is None:
            return iter(())
        return ValidationFolder(self.path).rows(RECORDS)

    def require(self) -> None:
        """Raise NotPassed with the reasons unless the verdict is PASS. It is an AssertionError,
        too, which tests report as a failure.
        """
        verdict = self.verdict
        if verdict.kind is VerdictKind.PASS:
            return
        missed = (line for line in self.thresholds if line.kind is not VerdictKind.PASS)
        reasons = (f"threshold {line.text} is {line.kind}: {line.reason}" for line in missed)
        error = NotPassed(
            "\n".join((f"{self.name} is {verdict.kind}: {verdict.reason}", *reasons)),
            hint=verdict.remedy,
        )
        error.exit_code = verdict.kind.exit_code
        raise error

    def report(self, file: str | os.PathLike[str]) -> Path:
        """Write the report in the form that the suffix names: html, md, csv, json, junit (or xml),
        png, txt. UsageError for another suffix, or a file that cannot be written.
        """
        path = Path(file)
        form = form_of(path)
        if form not in formats.names():
            raise UsageError(
                f"there is no report in the form of {path}", hint=suggestion(form, formats.names())
            )
        content = formats.content(self._report, form)
        try:
            path.write_bytes(content)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written: {error.strerror or error}", hint="give another file"
            ) from error
        return path

    def text(self, form: str = "text") -> str:
        """The report as text, as a terminal shows it, or in another form: html, md, csv, json,
        junit, brief. UsageError for a form that is none.
        """
        if form not in formats.texts():
            raise UsageError(
                f"there is no report in the form {form!r}", hint=suggestion(form, formats.texts())
            )
        return formats.render(self._report, form)

    def to_dict(self) -> Mapping[str, Any]:
        """All of it as plain values for JSON, as result.json has it."""
        return self._report.data()

    def __repr__(self) -> str:
        return f"<Result of {self.run_type} {self.name}: {self.verdict.kind}>"

    def _repr_html_(self) -> str:
        """Verdict and charts, for notebooks."""
        return str(html.notebook(self._report))


def load_run(name: str | os.PathLike[str] = "LAST") -> Result:
    """A stored run of any type, judged anew from its records.

    name: of the run or its label, the end of one, the path of its folder, or LAST for the newest.
    UsageError when there is none, or it cannot be read.

        scaletest.load_run("LAST").require()
    """
    return Result(places.find(os.fspath(name), os.environ))
