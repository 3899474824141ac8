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

# Columns that only a run tells that doubles its workers, and that only one tells that compares
# numbers of workers on each device.
DOUBLING = ("ratio",)
SHARING = ("per device", "fair workers/devices", "memory limit")
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
        unshown = {*left_out, *(DOUBLING if self.result.plan.compares else SHARING)}
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
        texts.append(Text([leading_names(step.nodes, MOST_SPREAD)], label=f"nodes, {workers}"))
    if step.devices:
        texts.append(Text([leading_names(step.devices, MOST_SPREAD)], label=f"devices, {workers}"))
    return texts


def as_sentence(text: str, beginning: str = "") -> str:
    """Return a whole sentence; "" where there is nothing to say."""
    return f"{beginning}{text}." if text else ""
