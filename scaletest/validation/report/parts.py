"""What several forms of a report show of a validation: each made once, when it is asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scaletest.render.blocks import Figure, Table, Text
from scaletest.render.numbers import leading_names, plural
from scaletest.report import words as common_words
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step
from scaletest.validation.report.figures import throughput_figure
from scaletest.validation.report.law import law_sentence
from scaletest.validation.report.rows import Row, common_quantile, rows_of
from scaletest.validation.report.words import best_share_text, intervals_text
from scaletest.validation.run_type import ValidationRun

# Columns that only a run tells that doubles its workers, and that only one tells that compares
# numbers of workers on each device.
DOUBLING = ("ratio",)
SHARING = ("per device", "fair", "fair workers", "fair devices", "memory limit")
MOST_SPREAD = 8


@dataclass(frozen=True)
class ReportParts:
    """A run, and what more than one form of its report shows of it."""

    run: ValidationRun

    @property
    def result(self) -> Evaluation:
        """The result of the run."""
        return self.run.result

    @cached_property
    def quantile(self) -> str:
        """The percentile that all steps can report."""
        return common_quantile(self.result.steps)

    @cached_property
    def rows(self) -> Sequence[Row]:
        """A row for each step."""
        return rows_of(self.result, self.quantile)

    @cached_property
    def law(self) -> str:
        """What limits growth; "" when one step alone leaves nothing to tell."""
        return law_sentence(self.result)

    @cached_property
    def best_share(self) -> str:
        """How many workers should share a device; "" without an answer."""
        return best_share_text(self.result)

    @cached_property
    def intervals(self) -> str:
        """Which intervals the tables show; "" without a step."""
        return intervals_text(self.result.steps) if self.result.steps else ""

    @cached_property
    def warnings(self) -> Sequence[str]:
        """The warnings, and what they leave of the verdict."""
        result = self.result
        return common_words.run_warnings(result.verdict, result.interrupted, result.warnings)

    @cached_property
    def spread(self) -> Sequence[Text]:
        """On which nodes and devices the last step that did anything ran."""
        return spread_texts(self.result.steps)

    @cached_property
    def scaling_chart(self) -> Figure | None:
        """Throughput against the number of workers."""
        return throughput_figure(self.run)

    def table(self, left_out: Collection[str], short: Mapping[str, str] | None = None) -> Table:
        """Return a row for each step, in short. left_out: titles. short: shorter titles."""
        unshown = {*left_out, *(DOUBLING if self.result.plan.compares else SHARING)}
        names = short or {}
        cells = [
            {
                names.get(title, title): row.cells[title]
                for title in row.cells
                if title not in unshown
            }
            for row in self.rows
        ]
        spare = ("speed-up", names.get("efficiency", "efficiency"), f"wait {self.quantile}")
        return Table.of_rows(cells, spare=spare)


def spread_texts(measured: Sequence[Step]) -> list[Text]:
    """Return on which nodes and devices the last step that did anything ran; none of one node."""
    steps = [step for step in measured if step.nodes]
    if not steps:
        return []
    counted = {"nodes": steps[-1].nodes, "devices": steps[-1].devices}
    if len(steps[-1].nodes) < 2:
        del counted["nodes"]
    workers = plural(steps[-1].workers, "worker")
    return [
        Text([leading_names(counts, MOST_SPREAD)], label=f"{kind}, {workers}")
        for kind, counts in counted.items()
        if counts
    ]


def as_sentence(text: str, beginning: str = "") -> str:
    """Return a whole sentence; "" where there is nothing to say."""
    return f"{beginning}{text}." if text else ""
