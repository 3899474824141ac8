"""What several forms of a report show of a validation: each made once, when it is asked for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scaletest.render.blocks import Figure, Table, Text
from scaletest.render.numbers import leading_names, plural
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step
from scaletest.validation.report.rows import Row, common_quantile, rows_of
from scaletest.validation.report.throughput_chart import throughput_figure
from scaletest.validation.run_type import ValidationRun

# Columns of runs that double their workers, and of those that compare numbers of workers on each
# device.
COLUMNS_OF_DOUBLING = ("ratio",)
COLUMNS_OF_SHARING = ("per device", "fair workers/devices", "memory limit")
# Nodes and devices in a line.
MOST_NAMES = 8


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
        """Return the percentile that all steps can report."""
        return common_quantile(self.result.steps)

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Return a row for each step."""
        return rows_of(self.result, self.quantile)

    @cached_property
    def scaling_chart(self) -> Figure | None:
        """Return the chart of throughput against the number of workers; None without throughput."""
        return throughput_figure(self.result)

    def table(self, left_out: Collection[str], short: Mapping[str, str] | None = None) -> Table:
        """Return a row for each step, in short. left_out: titles. short: shorter titles."""
        compares = self.result.plan.compares
        unshown = {*left_out, *(COLUMNS_OF_DOUBLING if compares else COLUMNS_OF_SHARING)}
        names = short or {}
        rows = []
        for row in self.rows:
            cells = {title: cell for title, cell in row.cells.items() if title not in unshown}
            rows.append({names.get(title, title): cell for title, cell in cells.items()})
        spare = ("speed-up", names.get("efficiency", "efficiency"), f"wait {self.quantile}")
        return Table.of_rows(rows, spare=spare)


def spread_texts(measured: Sequence[Step]) -> list[Text]:
    """Return on which nodes and devices the last step that did anything ran; none of one node."""
    steps = [step for step in measured if step.nodes]
    if not steps:
        return []
    step = steps[-1]
    workers = plural(step.workers, "worker")
    texts = []
    if len(step.nodes) > 1:
        texts.append(Text([leading_names(step.nodes, MOST_NAMES)], label=f"nodes, {workers}"))
    if step.devices:
        texts.append(Text([leading_names(step.devices, MOST_NAMES)], label=f"devices, {workers}"))
    return texts


def as_sentence(text: str, beginning: str = "") -> str:
    """Return a whole sentence; "" where there is nothing to say."""
    return f"{beginning}{text}." if text else ""
