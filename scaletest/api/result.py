"""A run as Python code sees it: verdict, numbers, records and report."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from scaletest.api.words import python_names
from scaletest.causes.causes import Causes
from scaletest.model import Record, Verdict, VerdictKind
from scaletest.model.errors import NotPassed, UsageError, suggestion
from scaletest.model.wording import as_arguments
from scaletest.render.contents import Report, ThresholdLine
from scaletest.report import formats
from scaletest.report.formats import form_of, html
from scaletest.runs import places, registry
from scaletest.runs.folder import PLAN, RECORDS, RunFolder
from scaletest.stats.measure import Measure
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.growth import DescribedLaw
from scaletest.validation.judging.steps import Step


class Result:
    """A run of any type that lies on disk, judged: what `validate` and `load_run` return.

    `steps`, `law`, `causes` and `records` are those of a validation; other runs have none, and
    their numbers are in `measures`. Below a notebook's cell it shows the report.

    Example:
        result = scaletest.load_run("LAST")
        print(result.verdict.kind, [step.throughput.per_s for step in result.steps])

    Raises:
        UsageError: a file of the run cannot be read.
    """

    def __init__(self, _folder: RunFolder) -> None:
        self._folder = _folder
        self._type = registry.type_of(_folder)
        self._judged: Any = registry.judge_run(_folder)

    @cached_property
    def _report(self) -> Report:
        return registry.report_of(self._folder, self._judged)

    @property
    def _validation(self) -> Evaluation | None:
        return self._judged.result if self.run_type == ValidationFolder.run_type else None

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
        return self._folder.read(PLAN)

    @property
    def verdict(self) -> Verdict:
        """PASS, FAIL or INVALID, with the reason and what to do; RUNNING while it is measured."""
        verdict: Verdict = self._judged.verdict
        reason, remedy = map(as_arguments, (verdict.reason, verdict.remedy))
        return replace(verdict, reason=reason, remedy=remedy)

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
        return list(map(as_arguments, self._report.head.warnings))

    @property
    def records(self) -> Iterator[Record]:
        """The requests of a validation, each read from disk when it is asked for.

        UsageError for a file that cannot be read.
        """
        return ValidationFolder(self.path).rows(RECORDS) if self._validation else iter(())

    def require(self) -> None:
        """Raise an error unless the verdict is PASS.

        Example:
            scaletest.validate(["sleep", "0.2"], limit=4).require()

        Raises:
            NotPassed: with the reason, every threshold that is not met, and what to do. It is an
                AssertionError, too, which tests report as a failure.
        """
        verdict = self.verdict
        if verdict.kind is VerdictKind.PASS:
            return
        lines = [f"{self.name} is {verdict.kind}: {verdict.reason}"]
        for threshold in self.thresholds:
            if threshold.kind is not VerdictKind.PASS:
                reason = as_arguments(threshold.reason)
                lines.append(f"threshold {threshold.text} is {threshold.kind}: {reason}")
        error = NotPassed("\n".join(lines), hint=verdict.remedy)
        error.exit_code = verdict.kind.exit_code
        raise error

    def report(self, file: str | os.PathLike[str]) -> Path:
        """Write the report to a file, and return its path.

        file: its suffix names the form: html, md, csv, json, junit (or xml), png, txt.

        Example:
            result.report("scaling.html")

        Raises:
            UsageError: the suffix is none of these.
        """
        path = Path(file)
        form = form_of(path)
        if form not in formats.names():
            raise UsageError(
                f"unsupported report format: {path}", hint=suggestion(form, formats.names())
            )
        path.write_bytes(formats.content(self._report, form))
        return path

    def text(self, form: str = "text") -> str:
        """Return the report as text.

        form: text, as a terminal shows it, or html, md, csv, json, junit, brief.

        Example:
            print(result.text("md"))

        Raises:
            UsageError: there is no such form.
        """
        if form not in formats.texts():
            raise UsageError(
                f"unknown report format {form!r}", hint=suggestion(form, formats.texts())
            )
        return formats.render(self._report, form)

    def to_dict(self) -> Mapping[str, Any]:
        """Return all of it as plain values for JSON, as result.json has it.

        Example:
            print(json.dumps(result.to_dict(), indent=2))

        Raises: nothing
        """
        return self._report.data()

    def __repr__(self) -> str:
        return f"<Result of {self.run_type} {self.name}: {self.verdict.kind}>"

    def _repr_html_(self) -> str:
        """Return the report in a frame, as HTML; a notebook calls it."""
        return str(html.render_notebook(self._report))


def load_run(name: str | os.PathLike[str] = "LAST") -> Result:
    """Load a stored run of any type, judged anew from its records.

    name: of the run or its label, the end of one, the path of its folder, or LAST for the newest.

    Example:
        scaletest.load_run("LAST").require()

    Raises:
        UsageError: there is no such run, or it cannot be read.
    """
    with python_names():
        return Result(places.find(os.fspath(name), os.environ))
